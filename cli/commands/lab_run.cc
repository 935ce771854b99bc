#include "greynic/lab/lab_run.h"

#include <charconv>
#include <memory>
#include <optional>
#include <sstream>

#include "command.h"
#include "greynic/target/target.h"

namespace greynic::cli {
namespace {

struct LabRunFlags {
  std::string target;
  std::vector<std::string> words;
  bool pair = false, virtual_time = false;
  std::string session, server, client, server_groups, client_groups;
  int host = 0;
};

/// By which drivers and programs know the models.
std::uint32_t part_of(const std::string& model) {
  static const std::vector<std::pair<std::string, std::uint32_t>> parts = {
      {"ConnectX-3", 4099}, {"ConnectX-4", 4115},   {"ConnectX-5", 4119},
      {"ConnectX-6", 4123}, {"ConnectX-7", 4129},   {"BlueField-3", 41692}};
  for (const auto& [name, part] : parts) {
    if (model.find(name) != std::string::npos) return part;
  }
  return 0;
}

/// The RNIC of the twin that `spec` names.
Result<lab::Device> device_of(const std::string& spec) {
  auto opened = target::open(spec);
  if (!opened) return pass_on(opened);
  const target::Info info = (*opened)->info();
  lab::Device device;
  // "virtual ConnectX-6 pair, profile logs"
  const std::string_view before = "virtual ";
  const std::size_t end = info.description.find(" pair");
  device.model = info.description.starts_with(before) && end != std::string::npos
                     ? info.description.substr(before.size(), end - before.size())
                     : spec;
  device.part = part_of(device.model);
  for (const auto& row : info.facts) {
    if (row.size() > 1 && row[0] == "link_rate_gbps") {
      std::from_chars(row[1].data(), row[1].data() + row[1].size(), device.link_gbps);
    }
  }
  return device;
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The fabric's RNIC; options that only `measure` has are refused.
Result<lab::PairOptions::VirtualTime> time_of(const std::string& spec) {
  const auto parsed = target::parse_specs(spec);
  if (!parsed) return pass_on(parsed);
  const target::Spec& twin = parsed->front();
  lab::PairOptions::VirtualTime time{twin.place.empty() ? "cx6" : twin.place, ""};
  for (const auto& [name, value] : twin.options) {
    if (name != "profile") {
      return fail(ErrorCode::kBadInput, "--virtual-time: twin:MODEL?profile=NAME is all it takes; "
                                        "remove the option '" + name + "'");
    }
    time.profile = value;
  }
  return time;
}

/// "0,20": groups out and in.
Result<lab::PairOptions::VirtualTime::Groups> groups_of(const std::string& flag,
                                                        const std::string& text) {
  lab::PairOptions::VirtualTime::Groups groups;
  if (text.empty()) return groups;
  std::istringstream stream(text);
  char comma = 0;
  if (stream >> groups.out >> comma >> groups.in && comma == ',' && stream.eof()) return groups;
  return fail(ErrorCode::kBadInput,
              flag + ": two numbers, of groups out and in, as in 20,0; not '" + text + "'");
}

int run_lab(LabRunFlags flags) {
  // Without a target its place holds the first word of the command.
  std::string spec = "twin:cx6";
  if (flags.target.starts_with("twin:")) {
    spec = flags.target;
  } else if (!flags.target.empty()) {
    flags.words.insert(flags.words.begin(), flags.target);
  }
  if (flags.words.empty()) {
    return tell({ErrorCode::kBadInput, "name the command: greynic lab-run twin:cx6 --pair -- COMMAND"});
  }
  if (flags.pair == !flags.session.empty()) {
    return tell({ErrorCode::kBadInput,
                 "say where: --pair runs server and client, --session NAME --host N one of them"});
  }
  const auto device = device_of(spec);
  if (!device) return tell(device.error());
  std::optional<lab::PairOptions::VirtualTime> time;
  if (flags.virtual_time) {
    auto found = time_of(spec);
    if (!found) return tell(found.error());
    time = std::move(*found);
    const auto server = groups_of("--server-groups", flags.server_groups);
    const auto client = groups_of("--client-groups", flags.client_groups);
    if (!server) return tell(server.error());
    if (!client) return tell(client.error());
    time->server = *server;
    time->client = *client;
  }
  const auto code =
      flags.pair
          ? lab::run_pair({*device, flags.words, split(flags.server), split(flags.client), time})
          : lab::run_in_session({*device, flags.session, static_cast<std::uint32_t>(flags.host),
                                 flags.words});
  return code ? *code : tell(code.error());
}

}  // namespace

void add_lab_run(Program& program) {
  auto flags = std::make_shared<LabRunFlags>();
  Command command = program.command(
      "lab-run", "Run stock verbs programs, unmodified, on virtual RNICs",
      "  greynic lab-run twin:cx6 --pair -- ib_write_bw -s 65536 -q 4\n"
      "  greynic lab-run twin:cx6 --virtual-time --pair -- ib_send_lat -a\n"
      "  greynic lab-run --session lab --host 0 -- ib_send_lat              # in one shell\n"
      "  greynic lab-run --session lab --host 1 -- ib_send_lat localhost    # in another\n"
      "  greynic lab-run --session lab --host 0 -- ibv_devinfo -v");
  command.option("target", flags->target, "A twin; twin:cx6 when none is named");
  command.option("command", flags->words, "After --: the program and its words").list();
  const Option pair = command.flag(
      "--pair", flags->pair,
      "The command is the server on host 0 and, with its address added, the client on host 1");
  const Option virtual_time =
      command.flag("--virtual-time", flags->virtual_time,
                   "Clocks of the programs show the twin's time, not that of this machine");
  virtual_time.needs(pair);
  command.option("--server-groups", flags->server_groups,
                 "OUT,IN: groups of flow rules that the server's packets are checked against")
      .needs(virtual_time);
  command.option("--client-groups", flags->client_groups, "The same of the client")
      .needs(virtual_time);
  const Option session =
      command.option("--session", flags->session,
                     "Join these virtual hosts; others join from other shells");
  session.excludes(pair);
  command.option("--host", flags->host, "Which host of the session").range(0, 65000).needs(session);
  command.option("--server", flags->server, "Words that the server of a pair gets more")
      .needs(pair);
  command.option("--client", flags->client,
                 "Words that the client of a pair gets before the address")
      .needs(pair);
  command.run([flags] { return run_lab(*flags); });
}

}  // namespace greynic::cli
