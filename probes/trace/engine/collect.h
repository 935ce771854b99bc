#pragma once

/// Reads what programs in the kernel have added up, and gives it names.

#include <map>
#include <string>
#include <vector>

#include "engine/tables.h"
#include "greynic/bpf/hooks.h"

namespace greynic::trace {

inline constexpr std::uint32_t kMostFlows = 4096;

struct Counted {
  std::vector<Hop> hops;
  std::vector<Begin> begins;
  std::uint64_t events = 0;        ///< packets at points
  std::uint64_t without_room = 0;  ///< of them, those whose pair of points found none
};

class Collector {
 public:
  [[nodiscard]] static Result<Collector> open(const bpf::Object& object);
  [[nodiscard]] greynic_counters counters() const;
  [[nodiscard]] Counted hops(const DeviceNumbers& numbers,
                             const std::vector<std::string>& rules) const;
  [[nodiscard]] JourneyEvent event(const greynic_record& record, const DeviceNumbers& numbers,
                                   const std::vector<std::string>& rules);
  /// Was a packet that the kernel freed so no loss, but at its receiver?
  [[nodiscard]] bool used_up(std::uint64_t place, std::uint32_t reason) const;

 private:
  using FlowNames = std::map<std::uint32_t, FlowName>;
  explicit Collector(const bpf::Object& object) : object_(&object) {}
  [[nodiscard]] FlowNames flow_names(const std::vector<std::string>& rules) const;
  [[nodiscard]] std::string reason_name(std::uint32_t reason) const;

  const bpf::Object* object_;
  std::vector<std::string> reasons_;
  bpf::KernelSymbols symbols_;
  FlowNames known_flows_;
};

}  // namespace greynic::trace
