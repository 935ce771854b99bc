#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "greynic/broker_service/service.h"
#include "greynic/broker_sockets/run.h"
#include "greynic/core/units.h"
#include "greynic/daemon/ending.h"
#include "greynic/daemon/log.h"
#include "greynic/sharing/sharing.h"

namespace greynic::cli {
namespace {

struct BrokerFlags {
  broker::ServiceOptions options;
  std::optional<int> latency_qps, bulk_qps;
  std::string advice;
  std::optional<int> cpu;
  std::string register_from = "auto", registered_memory = "1GiB";
  std::string segment_quota = "4GiB", outstanding_quota = "1GiB";
  std::chrono::nanoseconds poll_for = std::chrono::microseconds(50);
};

/// By the advice, and by hand where a flag says so.
Result<void> set_sharing(const BrokerFlags& flags, broker::CoreOptions& core) {
  if (!flags.advice.empty()) {
    const auto advice = sharing::read_advice(flags.advice);
    if (!advice) return pass_on(advice);
    if (advice->choice != sharing::Choice::kShare) {
      say(flags.advice +
          ": the advice is not to share: programs that use verbs by themselves lose "
          "nothing");
    }
    core.latency_lanes = static_cast<std::uint16_t>(advice->setting.latency_qps);
    core.bulk_lanes = static_cast<std::uint16_t>(advice->setting.bulk_qps);
    core.bulk_bytes = advice->setting.bulk_bytes;
    core.in_flight_bytes = advice->setting.in_flight_bytes;
  }
  if (flags.latency_qps) core.latency_lanes = static_cast<std::uint16_t>(*flags.latency_qps);
  if (flags.bulk_qps) core.bulk_lanes = static_cast<std::uint16_t>(*flags.bulk_qps);
  return {};
}

int serve(BrokerFlags flags) {
  broker::ServiceOptions& options = flags.options;
  if (options.device.empty()) {
    return tell(
        {ErrorCode::kBadInput, "name the device: --device DEVICE (`greynic devices` lists them)"});
  }
  struct Size {
    const char* flag;
    const std::string& text;
    std::uint64_t& into;
  };
  for (const Size& one :
       {Size{"--quota-memory", flags.segment_quota, options.quota.segment_bytes},
        Size{"--quota-outstanding", flags.outstanding_quota, options.quota.outstanding_bytes},
        Size{"--registered-memory", flags.registered_memory, options.core.registered_bytes}}) {
    const auto bytes = parse_bytes(one.text);
    if (!bytes) {
      return tell({ErrorCode::kBadInput, std::string(one.flag) + ": " + bytes.error().message});
    }
    one.into = bytes->count;
  }
  options.measures_crossover = flags.register_from == "auto";
  if (!options.measures_crossover && flags.register_from != "never") {
    const auto bytes = parse_bytes(flags.register_from);
    if (!bytes) {
      return tell({ErrorCode::kBadInput,
                   "--register-from (auto, never, or a size): " + bytes.error().message});
    }
    options.register_from = bytes->count;
  }
  if (const auto set = set_sharing(flags, options.core); !set) return tell(set.error());
  options.cpu = flags.cpu.value_or(-1);
  options.poll_for = std::chrono::ceil<std::chrono::microseconds>(flags.poll_for);
  // Before any other thread, which would take the signals.
  const daemon::Ending ending("greynic broker");
  daemon::Log log("greynic broker");
  options.tell = [&log](std::string_view line) { log.line(line); };
  auto service = ending.at_once_during([&] { return broker::Service::start(options); });
  if (!service) return tell(service.error());
  if (options.listen.empty()) say("no --listen: other brokers cannot connect to this one");
  print("{}\n", options.socket);
  if (!(*service)->address().empty()) print("{}\n", (*service)->address());
  flush_output();
  const auto served = (*service)->serve(ending.asked());
  service->reset();
  return served ? 0 : tell(served.error());
}

Result<void> take_lid(const std::string& text, broker::ServiceOptions& options) {
  char* end = nullptr;
  const unsigned long lid = std::strtoul(text.c_str(), &end, 0);
  constexpr unsigned long kLastUnicast = 0xbfff;
  if (end == text.c_str() || *end != '=' || lid < 1 || lid > kLastUnicast) {
    return fail(ErrorCode::kBadInput, text + ": give LID=ADDRESS:PORT, with a LID of 1 to 49151");
  }
  options.lids[static_cast<std::uint16_t>(lid)] = end + 1;
  return {};
}

struct BrokerStatusFlags {
  std::string socket = broker::kUsualSocket;
  bool decisions = false, json = false;
};

int show_status(const BrokerStatusFlags& flags) {
  const auto answer =
      flags.decisions ? broker::ask_decisions(flags.socket) : broker::ask_status(flags.socket);
  if (!answer) return tell(answer.error());
  const bool as_table = flags.decisions && !flags.json;
  print("{}\n", as_table ? broker::decisions_table(*answer) : *answer);
  return 0;
}

Result<void> take_via(const std::string& text, broker::RunOptions& options) {
  const std::size_t sign = text.find('=');
  const std::string from = sign == std::string::npos ? "*" : text.substr(0, sign);
  const std::string to = sign == std::string::npos ? text : text.substr(sign + 1);
  if (from.empty() || to.find(':') == std::string::npos) {
    return fail(ErrorCode::kBadInput,
                text + ": give ADDRESS:PORT of a broker, or FROM=ADDRESS:PORT");
  }
  options.via[from] = to;
  return {};
}

int run_command(const broker::RunOptions& options) {
  const auto code = broker::run_over_broker(options);
  return code ? *code : tell(code.error());
}

}  // namespace

void add_broker(Program& program) {
  auto flags = std::make_shared<BrokerFlags>();
  broker::ServiceOptions& options = flags->options;
  Command command = program.command(
      "broker", "Carry the connections of all programs of this host over few shared QPs",
      "  greynic broker --device mlx5_0 --listen 10.0.0.7:18700 --certificates /etc/greynic/lab\n"
      "  greynic broker status\n"
      "  greynic broker run --via 10.0.0.8:18700 -- redis-benchmark -h 10.0.0.8");
  command.option("--device", options.device, "RDMA device that carries them");
  command.option("--socket", options.socket, "Unix socket at which programs attach");
  command.option("--listen", options.listen,
                 "ADDRESS:PORT for other brokers; port 0 takes a free one");
  command.option("--certificates", options.certificates,
                 "Directory made by `greynic agent init`; without it links stay on loopback");
  command.option(
      "--lid", [flags](const std::string& text) { return take_lid(text, flags->options); },
      "LID=ADDRESS:PORT: where the broker listens whose port has this LID; those that were met are "
      "known");
  command.option("--port", options.port, "Port of the device");
  command.option("--gid", options.gid_rule, "auto, ipv4, ipv6, an index or an address");
  command.option("--advice", flags->advice,
                 "What `greynic optimize --connections` wrote: how many QPs, for what");
  command
      .option(
          "--latency-qps", flags->latency_qps,
          "QPs to each peer for small messages, standard 1; made as connections come, so that 4096 "
          "with --bulk-qps 0 are one a connection")
      .range(1, 4096);
  command
      .option("--bulk-qps", flags->bulk_qps,
              "QPs to each peer for large ones, standard 1; 0: they go with the small")
      .range(0, 1024);
  command.option("--quota-connections", options.quota.connections, "Most connections of one user");
  command.option("--quota-memory", flags->segment_quota, "Most memory of one user's segments");
  command.option("--quota-outstanding", flags->outstanding_quota,
                 "Most bytes of one user's send rings: so much can be on its way");
  command.option("--register-from", flags->register_from,
                 "From which length on lent memory is registered and not copied: a size, never, or "
                 "auto: as measured when the broker starts");
  command
      .option("--registrations", options.core.registrations,
              "Most registrations of lent memory that are kept")
      .range(1, 100000);
  command.option("--registered-memory", flags->registered_memory,
                 "Most lent memory that is registered at a time");
  constexpr int kLastCpu = 1023;
  command.option("--cpu", flags->cpu, "Processor to which the serving thread is bound")
      .range(0, kLastCpu);
  command.option("--poll-for", flags->poll_for, "How long it polls after the last work");
  command.run([flags] { return serve(*flags); });

  Command status = command.command("status", "Show what a broker does, as JSON");
  auto asked = std::make_shared<BrokerStatusFlags>();
  status.option("--socket", asked->socket, "Unix socket of the broker");
  status.flag("--decisions", asked->decisions,
              "The last 256 pieces of streams: by which verb and QP each went, and why");
  status.flag("--json", asked->json, "The decisions as JSON");
  status.run([asked] { return show_status(*asked); });

  Command over = command.command("run", "Run a TCP program, unmodified, over a broker");
  auto run_options = std::make_shared<broker::RunOptions>();
  run_options->socket = broker::kUsualSocket;
  over.option("command", run_options->words, "The program and its words, after --")
      .required()
      .list();
  over.option("--socket", run_options->socket, "Unix socket of the broker");
  over.option(
      "--via", [run_options](const std::string& text) { return take_via(text, *run_options); },
      "ADDRESS:PORT of the broker behind every address that the program connects to, or "
      "FROM=ADDRESS:PORT for one of them; without it, the usual port of that address");
  over.option("--connections", run_options->connections,
              "Most connections at the same time; beyond 1000 each has smaller rings")
      .range(1, 100000);
  over.run([run_options] { return run_command(*run_options); });
}

}  // namespace greynic::cli
