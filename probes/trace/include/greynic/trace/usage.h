#pragma once

/// What containers take of this host, beside the hops of their packets: a slow hop is often a container
/// that waits for a CPU.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/trace/topology.h"

namespace greynic::trace {

struct Usage {
  std::string container;   ///< name of the place
  std::string source;      ///< "cgroup", or "processes" where a namespace has no cgroup
  double cpu_seconds = 0;  ///< since it began
  std::optional<double> throttled_seconds;  ///< that it was kept from the CPUs by its limit
  std::optional<std::uint64_t> memory_bytes;
};

/// Of all places but the host that have processes. `cgroup_root`: where control groups are mounted.
[[nodiscard]] std::vector<Usage> usage_of(const Topology& topology,
                                          const std::string& cgroup_root = "/sys/fs/cgroup");

/// The same, with times since a container was seen first.
class UsageMeter {
 public:
  [[nodiscard]] std::vector<Usage> read(const Topology& topology);

 private:
  std::map<std::string, Usage> first_;
};

}  // namespace greynic::trace
