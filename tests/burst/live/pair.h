#pragma once

/// Two network namespaces of our own, joined by a veth: "va" here, "vb" at the peer. They have no
/// name that others could see, and go with this object, and with the process however that ends.

#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "greynic/os/network_namespace.h"
#include "greynic/os/program.h"

namespace greynic::live {

/// Runs commands in a namespace, all of them; the first error.
inline Result<void> run_in(const os::NetworkNamespace& place,
                           const std::vector<std::string>& lines) {
  Result<void> out;
  auto entered = place.inside([&] {
    for (const std::string& line : lines) {
      os::Command command;
      std::istringstream words(line);
      for (std::string word; words >> word;) command.words.push_back(word);
      const auto ran = os::run(command);
      if (!ran && out) out = ran.error().while_doing(line);
    }
  });
  return entered ? out : entered;
}

class Pair {
 public:
  /// Runs `commands` here when the devices are there.
  static Result<Pair> make(const std::vector<std::string>& commands) {
    auto here = os::NetworkNamespace::create();
    if (!here) return pass_on(here);
    auto peer = os::NetworkNamespace::create();
    if (!peer) return pass_on(peer);
    Pair pair{std::move(*here), std::move(*peer)};
    const std::string there =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pair.peer.descriptor());
    std::vector<std::string> all = {"ip link add va type veth peer name vb",
                                    "ip link set vb netns " + there,
                                    "ip link set va addrgenmode none",  // nobody speaks but us
                                    "ip addr add 10.9.0.1/24 dev va",
                                    "ip link set va address 02:00:00:00:00:01 up",
                                    "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev va"};
    all.insert(all.end(), commands.begin(), commands.end());
    if (auto done = run_in(pair.here, all); !done) return pass_on(done);
    if (auto done = run_in(pair.peer, {"ip link set vb address 02:00:00:00:00:02 up"}); !done) {
      return pass_on(done);
    }
    return pair;
  }
  os::NetworkNamespace here, peer;

 private:
  Pair(os::NetworkNamespace a, os::NetworkNamespace b) : here(std::move(a)), peer(std::move(b)) {}
};

}  // namespace greynic::live
