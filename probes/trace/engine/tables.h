#pragma once

/// The tables that programs in the kernel read: devices by identity, rules. Two halves each: what is
/// new is written into the one that rests, then one number switches them.

#include <map>
#include <vector>

#include "greynic/bpf/object.h"
#include "greynic/trace/rules.h"
#include "greynic/trace/tracer.h"
#include "kernel/hops.h"

namespace greynic::trace {

/// Numbers of devices that last as long as the trace, so that counts of before keep their meaning.
class DeviceNumbers {
 public:
  /// kTooBig when there are more devices than numbers.
  [[nodiscard]] Result<void> take(const Topology& topology);
  [[nodiscard]] std::uint32_t of(const Topology& topology, std::size_t device) const;
  [[nodiscard]] Point point(std::uint32_t number) const;
  /// Number of the other end of a veth; 0 when there is none.
  [[nodiscard]] std::uint32_t peer(std::uint32_t number) const;

 private:
  struct Known {
    std::string label;
    std::uint32_t peer = 0;
  };
  std::map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<Known> known_ = {Known()};  ///< number 0 is nowhere
};

[[nodiscard]] std::uint64_t identity_of(const Topology& topology, std::size_t device);

/// A match as programs in the kernel take it. `slot`: the lasting number of its rule.
[[nodiscard]] greynic_rule kernel_rule(const KernelMatch& match, const Rule& rule,
                                       std::uint32_t slot);
/// The ports of this host's VXLAN tunnels.
void put_tunnel_ports(const Topology& topology, greynic_config& config);

class Tables {
 public:
  [[nodiscard]] static Result<Tables> open(const bpf::Object& object);
  /// Writes the resting half and switches to it. `slots`: the lasting number of each rule.
  [[nodiscard]] Result<void> put(const Topology& topology, const DeviceNumbers& numbers,
                                 const Rules& rules, const Plan& plan,
                                 const std::vector<std::uint32_t>& slots, bool new_rules);
  [[nodiscard]] Result<void> follow_one_in(std::uint32_t one_in);
  greynic_config& config() { return config_; }

 private:
  using Devices = bpf::Map<std::uint32_t, greynic_device_set>;
  using RuleMap = bpf::Map<std::uint32_t, greynic_rule>;
  using Config = bpf::Map<std::uint32_t, greynic_config>;
  struct KernelPlace {
    std::uint64_t identity;
    std::uint32_t peer;
    std::uint32_t kind;
  };
  using Places = bpf::Map<std::uint32_t, KernelPlace>;
  Tables(Devices devices, RuleMap rules, Config config, Places places)
      : devices_(devices), rules_(rules), config_map_(config), places_(places) {}

  Devices devices_;
  RuleMap rules_;
  Config config_map_;
  Places places_;
  greynic_config config_{};
  std::map<std::uint32_t, bool> used_sets_[2];  ///< by half, to clear them again
};

}  // namespace greynic::trace
