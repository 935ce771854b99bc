#include "greynic/agent/agent.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/daemon/ending.h"
#include "greynic/daemon/log.h"

namespace greynic::cli {
namespace {

struct AgentFlags {
  agent::AgentOptions options;
  std::string longest_run = "1h";
  std::string directory;
  std::string certificate;
  std::vector<std::string> clients;
  std::vector<std::string> names = {"localhost", "127.0.0.1"};
};

int make_certificates(const AgentFlags& flags) {
  const auto done = agent::create_certificates(flags.directory, flags.names, flags.clients);
  if (!done) return tell(done.error());
  say("copy this directory to every host of the lab; client.key is for hosts that run campaigns, "
      "agent.key for those that serve");
  print("{}\n", flags.directory);
  return 0;
}

int revoke(const AgentFlags& flags) {
  const auto done = agent::revoke_certificate(flags.directory, flags.certificate);
  if (!done) return tell(done.error());
  say("agents with this directory turn the certificate away within a second; copy the file "
      "`revoked` to every host");
  print("{}/revoked\n", flags.directory);
  return 0;
}

int serve(AgentFlags flags) {
  if (flags.options.device.empty()) {
    return tell(
        {ErrorCode::kBadInput, "name the device: --device DEVICE (`greynic devices` lists them)"});
  }
  const auto longest = parse_duration(flags.longest_run);
  if (!longest) return tell(longest.error());
  flags.options.longest_run = std::chrono::ceil<std::chrono::seconds>(*longest);
  // Before any other thread, which would take the signals.
  const daemon::Ending ending("greynic agent");
  daemon::Log log("greynic agent");
  flags.options.tell = [&log](std::string_view line) { log.line(line); };
  auto agent = ending.at_once_during([&] { return agent::Agent::start(flags.options); });
  if (!agent) return tell(agent.error());
  if (flags.options.certificates.empty()) {
    say("no certificates: listening on loopback only, for whoever may use this machine");
  }
  print("{}\n", (*agent)->address());
  flush_output();
  (*agent)->serve(ending.asked());
  agent->reset();
  return 0;
}

}  // namespace

void add_agent(Program& program) {
  auto flags = std::make_shared<AgentFlags>();
  Command command = program.command(
      "agent", "Serve the other end of verbs traffic to a greynic on another host",
      "  greynic agent --device mlx5_0 --listen 0.0.0.0:18600 --certificates /etc/greynic/lab\n"
      "  greynic agent init /etc/greynic/lab --name lab7.example --name 10.0.0.7\n"
      "  greynic agent revoke /etc/greynic/lab old_laptop/client.pem\n"
      "  greynic agent --device rxe1     # loopback only, without certificates");
  command.option("--device", flags->options.device, "RDMA device to serve");
  command.option("--listen", flags->options.listen, "ADDRESS:PORT; port 0 takes a free one");
  command.option("--certificates", flags->options.certificates,
                 "Directory made by `greynic agent init`");
  command.option("--port", flags->options.port, "Port of the device");
  command.option("--longest-run", flags->longest_run,
                 "No caller may hold the agent for longer without a word; a run says nothing while "
                 "it lasts");
  command.option("--gid", flags->options.gid_rule, "auto, ipv4, ipv6, an index or an address");
  command.run([flags] { return serve(*flags); });

  Command init = command.command("init", "Make a lab's certificates in a directory");
  init.option("directory", flags->directory, "New or empty directory").required();
  init.option("--name", flags->names,
              "Host name or address of an agent; give it once for each host");
  init.option("--client", flags->clients,
              "Name of a client that gets a directory of its own, with a certificate that can be "
              "revoked alone; give it once for each");
  init.run([flags] { return make_certificates(*flags); });

  Command revocation = command.command("revoke", "Turn a certificate away from now on");
  revocation.option("directory", flags->directory, "Directory of the agent").required();
  revocation.option("certificate", flags->certificate, "PEM file").required();
  revocation.run([flags] { return revoke(*flags); });
}

}  // namespace greynic::cli
