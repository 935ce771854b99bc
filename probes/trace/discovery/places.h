#pragma once

/// The network namespaces of this host and their names.

#include <map>
#include <string_view>
#include <vector>

#include "greynic/trace/topology.h"

namespace greynic::trace {

/// Our own first, then those with a name, then those of processes.
[[nodiscard]] std::vector<Place> find_places();

/// A container's names in the cgroup path of one of its processes, and its runtime: "docker" and
/// {"3f2a9c1d4b5e", the whole id}. Empty names for a process of the host.
struct ContainerName {
  std::string runtime;
  std::vector<std::string> names;
  std::string cgroup;  ///< the path of its control group
};
[[nodiscard]] ContainerName container_of(std::string_view cgroup_file);

/// Process numbers by the namespace that they are in, ascending.
[[nodiscard]] std::map<std::uint32_t, std::vector<int>> processes_by_namespace();

}  // namespace greynic::trace
