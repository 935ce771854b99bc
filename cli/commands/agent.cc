#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "command.h"
#include "greynic/agent/agent.h"

namespace greynic::cli {
namespace {

std::atomic<bool> stop_asked = false;

struct Flags {
  agent::AgentOptions options;
  std::string directory;
  std::vector<std::string> names = {"localhost", "127.0.0.1"};
};

int make_certificates(const Flags& flags) {
  const auto done = agent::create_certificates(flags.directory, flags.names);
  if (!done) return tell(done.error());
  say("copy this directory to every host of the lab; client.key is for hosts that run campaigns, "
      "agent.key for those that serve");
  fmt::print("{}\n", flags.directory);
  return 0;
}

int serve(const Flags& flags) {
  if (flags.options.device.empty()) {
    return tell(
        {ErrorCode::kBadInput, "name the device: --device DEVICE (`greynic devices` lists them)"});
  }
  auto agent = agent::Agent::start(flags.options);
  if (!agent) return tell(agent.error());
  if (flags.options.certificates.empty()) {
    say("no certificates: listening on loopback only, for whoever may use this machine");
  }
  fmt::print("{}\n", (*agent)->address());
  std::fflush(stdout);
  std::signal(SIGINT, [](int) { stop_asked = true; });
  std::signal(SIGTERM, [](int) { stop_asked = true; });
  (*agent)->serve(stop_asked);
  return 0;
}

}  // namespace

void add_agent(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "agent", "Serve the other end of verbs traffic to a greynic on another host",
      "  greynic agent --device mlx5_0 --listen 0.0.0.0:18600 --certificates /etc/greynic/lab\n"
      "  greynic agent init /etc/greynic/lab --name lab7.example --name 10.0.0.7\n"
      "  greynic agent --device rxe1     # loopback only, without certificates");
  command.option("--device", flags->options.device, "RDMA device to serve");
  command.option("--listen", flags->options.listen, "ADDRESS:PORT; port 0 takes a free one");
  command.option("--certificates", flags->options.certificates,
                 "Directory made by `greynic agent init`");
  command.option("--port", flags->options.port, "Port of the device");
  command.option("--gid", flags->options.gid_rule, "auto, ipv4, ipv6, an index or an address");
  command.run([flags] { return serve(*flags); });

  Command init = command.command("init", "Make a lab's certificates in a directory");
  init.option("directory", flags->directory, "New or empty directory").required();
  init.option("--name", flags->names,
              "Host name or address of an agent; give it once for each host");
  init.run([flags] { return make_certificates(*flags); });
}

}  // namespace greynic::cli
