#pragma once

/// Which hosts a collector reads (docs/formats/zero_hosts.md).

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::monitor {

enum class Priority : std::uint8_t { kHigh, kNormal, kLow };

struct HostSpec {
  std::string name;
  // One of these is set.
  std::string agent;   ///< socket of the host's agent
  std::string remote;  ///< HOST:PORT of the agent of another host
  std::string region;  ///< an arena in a file
  int pid = 0;         ///< a process without an agent
  std::chrono::nanoseconds interval{std::chrono::milliseconds(100)};
  Priority priority = Priority::kNormal;
  std::uint32_t classes = 7;  ///< a bit for each class
  std::string certificates;   ///< directory, for `remote`
  std::string device;         ///< RDMA device of this host that READs `remote`; empty: over TCP
};

/// kBadInput names the file, the place in it and the remedy.
[[nodiscard]] Result<std::vector<HostSpec>> read_hosts(const std::string& path);

}  // namespace greynic::monitor
