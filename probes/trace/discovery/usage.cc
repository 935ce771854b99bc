#include "greynic/trace/usage.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "discovery/places.h"

namespace greynic::trace {
namespace {

constexpr double kMicrosecondInSeconds = 1e-6, kNanosecondInSeconds = 1e-9;

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// "throttled_usec 17" among other lines.
std::optional<std::uint64_t> number_of(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string key;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == wanted) return value;
  }
  return std::nullopt;
}

std::optional<double> scaled(std::optional<std::uint64_t> value, double unit) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) * unit;
}

/// By the control group of a container: version 2, else 1.
std::optional<Usage> by_cgroup(const Place& place, const std::string& root) {
  Usage made{.container = place.name, .source = "cgroup"};
  const std::string group = root + place.cgroup;
  if (const auto used = number_of(group + "/cpu.stat", "usage_usec")) {
    made.cpu_seconds = static_cast<double>(*used) * kMicrosecondInSeconds;
    made.throttled_seconds =
        scaled(number_of(group + "/cpu.stat", "throttled_usec"), kMicrosecondInSeconds);
    made.memory_bytes = number_in(group + "/memory.current");
    return made;
  }
  const auto used = number_in(root + "/cpuacct" + place.cgroup + "/cpuacct.usage");
  if (!used) return std::nullopt;
  made.cpu_seconds = static_cast<double>(*used) * kNanosecondInSeconds;
  made.throttled_seconds =
      scaled(number_of(root + "/cpu" + place.cgroup + "/cpu.stat", "throttled_time"),
             kNanosecondInSeconds);
  made.memory_bytes = number_in(root + "/memory" + place.cgroup + "/memory.usage_in_bytes");
  return made;
}

/// By the processes of a namespace that has no control group of its own. Those that end take their
/// time with them.
Usage by_processes(const Place& place, const std::vector<int>& members) {
  static const auto kTicks = static_cast<double>(sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  Usage made{.container = place.name, .source = "processes", .memory_bytes = 0};
  for (const int process : members) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // a name may hold anything
    if (name_end == std::string::npos) continue;
    std::istringstream rest(text.substr(name_end + 1));
    std::string word;
    for (int field = 3; field <= 24 && rest >> word; ++field) {
      const bool time = field == 14 || field == 15;
      if (time) made.cpu_seconds += static_cast<double>(std::stoull(word)) / kTicks;
      if (field == 24) *made.memory_bytes += std::stoull(word) * kPage;
    }
  }
  return made;
}

}  // namespace

std::vector<Usage> usage_of(const Topology& topology, const std::string& cgroup_root) {
  std::vector<Usage> made;
  std::optional<std::map<std::uint32_t, std::vector<int>>> members;
  for (std::size_t i = 1; i < topology.places.size(); ++i) {  // the first is the host
    const Place& place = topology.places[i];
    if (!place.cgroup.empty()) {
      if (auto found = by_cgroup(place, cgroup_root)) {
        made.push_back(std::move(*found));
        continue;
      }
    }
    if (!members) members = processes_by_namespace();
    const auto found = members->find(place.inode);
    if (found != members->end()) made.push_back(by_processes(place, found->second));
  }
  return made;
}

std::vector<Usage> UsageMeter::read(const Topology& topology) {
  std::vector<Usage> made = usage_of(topology);
  for (Usage& usage : made) {
    const Usage& first = first_.try_emplace(usage.container, usage).first->second;
    usage.cpu_seconds = std::max(0.0, usage.cpu_seconds - first.cpu_seconds);
    if (usage.throttled_seconds) *usage.throttled_seconds -= first.throttled_seconds.value_or(0);
  }
  return made;
}

}  // namespace greynic::trace
