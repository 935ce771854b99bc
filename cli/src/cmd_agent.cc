#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "greynic/agent/agent.h"

namespace greynic::cli {
namespace {

std::atomic<bool> stop_asked = false;

struct Flags {
  agent::AgentOptions options;
  std::string directory;
  std::vector<std::string> names = {"localhost", "127.0.0.1"};
};

int serve(const Flags& flags) {
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

void add_agent(CLI::App& root, Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(
      root, "agent", "Serve the other end of verbs traffic to a greynic on another host",
      "  greynic agent --device mlx5_0 --listen 0.0.0.0:18600 --certificates /etc/greynic/lab\n"
      "  greynic agent init /etc/greynic/lab --name lab7.example --name 10.0.0.7\n"
      "  greynic agent --device rxe1     # loopback only, without certificates");
  command->add_option("--device", flags->options.device, "RDMA device to serve");
  command->add_option("--listen", flags->options.listen, "ADDRESS:PORT; port 0 takes a free one")
      ->capture_default_str();
  command->add_option("--certificates", flags->options.certificates,
                      "Directory made by `greynic agent init`");
  command->add_option("--port", flags->options.port, "Port of the device")->capture_default_str();
  command->add_option("--gid", flags->options.gid_rule, "auto, ipv4, ipv6, an index or an address")
      ->capture_default_str();
  CLI::App* init = command->add_subcommand("init", "Make a lab's certificates in a directory");
  init->add_option("directory", flags->directory, "New or empty directory")->required();
  init->add_option("--name", flags->names,
                   "Host name or address of an agent; give it once for each host")
      ->capture_default_str();
  command->require_subcommand(0, 1);
  command->callback([flags, init, &program] {
    if (*init) {
      const auto done = agent::create_certificates(flags->directory, flags->names);
      if (!done) {
        program.exit_code = tell(done.error());
        return;
      }
      say("copy this directory to every host of the lab; client.key is for hosts that run "
          "campaigns, "
          "agent.key for those that serve");
      fmt::print("{}\n", flags->directory);
      return;
    }
    if (flags->options.device.empty()) {
      program.exit_code = tell(Error{
          ErrorCode::kBadInput, "name the device: --device DEVICE (`greynic devices` lists them)"});
      return;
    }
    program.exit_code = serve(*flags);
  });
}

}  // namespace greynic::cli
