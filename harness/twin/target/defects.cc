#include "target/defects.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic::twin {
namespace {

using Kind = Condition::Kind;

/// Slower than any thread posts and any port sends: whoever meets it feels it.
constexpr double kStallNs = 600;

constexpr Condition at_least(std::string_view factor, double number) {
  return {factor, Kind::kAtLeast, number};
}
constexpr Condition at_most(std::string_view factor, double number) {
  return {factor, Kind::kAtMost, number};
}
constexpr Condition is(std::string_view factor, std::string_view text) {
  return {factor, Kind::kIs, 0, text};
}
/// QPs of both directions together.
constexpr Condition qps_in_all(double number) {
  return {"qp_count", Kind::kAtLeast, number, {}, true};
}

void pauses(Effects& effects) { effects.receive_stall_ns = kStallNs; }
void slow(Effects& effects) { effects.transmit_stall_ns = kStallNs; }

constexpr Condition kRc = is("transport", "RC");
constexpr Condition kUd = is("transport", "UD");
constexpr Condition kSend = is("operation", "SEND");
constexpr Condition kWrite = is("operation", "WRITE");
constexpr Condition kRead = is("operation", "READ");
constexpr Condition kBoth = is("direction", "bidirectional");
constexpr Condition kAmd = is("host_platform", "amd");
constexpr Condition kMtu1024 = {"mtu_bytes", Kind::kIs, 1024};
constexpr Condition kMtu4096 = {"mtu_bytes", Kind::kIs, 4096};
constexpr Condition kReceivesInBatches = at_least("receive_post_batch", 2);

/// ScalaCN's symptoms: faults of switch and driver.
std::vector<Defect> symptoms() {
  return {
      {"S1", "Late counters make the switch delete live flows", &SwitchFaults::late_counters},
      {"S2", "An operation that times out stalls the kernel", &SwitchFaults::stalls_on_timeout},
      {"S3", "A creation that fails crashes the driver", &SwitchFaults::crashes_on_failure},
      {"S4", "Deletion is nine times slower past a threshold", &SwitchFaults::slow_deletion},
      {"S5", "Stale counters kSend flows to software", &SwitchFaults::stale_is_slow},
      {"S6", "Masks are queried one after another", nullptr},
      {"S7", "A race on VF unbind takes the link down", &SwitchFaults::racy_unbind},
      {"S8", "Encapsulation contexts over the buffer make the RNIC unresponsive",
       &SwitchFaults::unchecked_contexts},
      {"S9", "After an overload flows stay in software until the device is reset",
       &SwitchFaults::offload_stays_off},
  };
}

/// Collie's anomalies, the first half.
std::vector<Defect> anomalies_1_to_9() {
  return {
      {"C1",
       "UD SEND, large batches, deep queues: pauses",
       nullptr,
       {kUd, kSend, at_least("post_batch", 64), at_least("send_queue_depth", 256),
        at_least("receive_queue_depth", 256)},
       pauses},
      {"C2",
       "UD SEND, small batches, very deep receive queue, small messages: slow",
       nullptr,
       {kUd, kSend, at_most("post_batch", 8), at_least("receive_queue_depth", 1024),
        at_most("message_bytes", 1024), at_least("qp_count", 16)},
       slow},
      {"C3",
       "RC READ of large messages at MTU 1024: pauses",
       nullptr,
       {kRc, kRead, kMtu1024, at_least("message_bytes", 16384)},
       pauses},
      {"C4",
       "Bidirectional RC READ, large batches, long SG lists: pauses",
       nullptr,
       {kBoth, kRc, kRead, at_least("post_batch", 32), at_least("sge_count", 4), qps_in_all(160)},
       pauses},
      {"C5",
       "RC SEND, MTU 1024, large batches, deep queues, 2 to 8 KiB: pauses",
       nullptr,
       {kRc, kSend, kMtu1024, at_least("post_batch", 64), kReceivesInBatches,
        at_least("send_queue_depth", 1024), at_least("receive_queue_depth", 1024),
        at_least("message_bytes", 2048), at_most("message_bytes", 8192)},
       pauses},
      {"C6",
       "RC SEND, MTU 1024, small batches, SG lists, deep queues, small messages: slow",
       nullptr,
       {kRc, kSend, kMtu1024, at_most("post_batch", 16), kReceivesInBatches,
        at_least("sge_count", 2), at_least("send_queue_depth", 1024),
        at_least("receive_queue_depth", 1024), at_most("message_bytes", 1024),
        at_least("qp_count", 32)},
       slow},
      {"C7",
       "RC WRITE of small messages over very many MRs, no batching: slow",
       nullptr,
       {kRc, kWrite, at_most("post_batch", 1), at_most("message_bytes", 1024),
        at_least("mr_count", 12000)},
       slow},
      {"C8",
       "RC WRITE of small messages over many QPs, shallow queues, no batching: slow",
       nullptr,
       {kRc, kWrite, at_most("post_batch", 1), at_most("send_queue_depth", 16),
        at_most("message_bytes", 1024), at_least("qp_count", 500)},
       slow},
      {"C9",
       "Both ways, short and long elements in one SG list, strict PCIe order: pauses",
       nullptr,
       {kBoth, at_least("sge_count", 3), is("message_mix", "mixed_sge"), kAmd,
        is("pcie_relaxed_ordering", "false")},
       pauses},
  };
}

/// The second half.
std::vector<Defect> anomalies_10_to_18() {
  return {
      {"C10",
       "Bidirectional RC WRITE, large batches, one long among short requests: pauses",
       nullptr,
       {kBoth, kRc, kWrite, at_least("post_batch", 64), is("message_mix", "mixed_requests"),
        at_least("qp_count", 320)},
       pauses},
      {"C11",
       "Bidirectional traffic across CPU sockets of particular servers: pauses",
       nullptr,
       {kBoth, is("memory_placement", "cross_socket"), kAmd},
       pauses},
      {"C12",
       "GPU-direct on servers whose bridges detour peer traffic: pauses",
       nullptr,
       {is("memory_placement", "gpu"), kAmd, is("pcie_acs_redirect", "true")},
       pauses},
      {"C13",
       "Loopback traffic together with traffic from the wire: pauses",
       nullptr,
       {is("direction", "loopback")},
       [](Effects& effects) {
         effects.loopback_unlimited = true;
         pauses(effects);
       }},
      {"C14",
       "Bidirectional RC, very many QPs, MTU 4096, SG lists: slow",
       nullptr,
       {kBoth, kRc, kMtu4096, at_least("sge_count", 4), qps_in_all(1300)},
       slow},
      {"C15",
       "UD SEND, deep queue, several QPs: pauses",
       nullptr,
       {kUd, kSend, at_least("send_queue_depth", 64), at_least("qp_count", 32)},
       pauses},
      {"C16",
       "RC READ, many QPs, batches, MTU 1024: pauses",
       nullptr,
       {kRc, kRead, kMtu1024, at_least("post_batch", 8), at_least("qp_count", 500)},
       pauses},
      {"C17",
       "RC SEND, many QPs, small batches, deep queue, short messages: pauses",
       nullptr,
       {kRc, kSend, at_most("post_batch", 16), at_least("send_queue_depth", 128),
        at_most("message_bytes", 1024), at_least("qp_count", 64)},
       pauses},
      {"C18",
       "Bidirectional RC WRITE, some QPs, large batches, MTU 1024, up to 64 KiB: pauses",
       nullptr,
       {kBoth, kRc, kWrite, kMtu1024, at_least("post_batch", 32), at_most("message_bytes", 65536),
        qps_in_all(30)},
       pauses},
  };
}

std::vector<Defect> make() {
  std::vector<Defect> all = symptoms();
  for (const auto& more : {anomalies_1_to_9(), anomalies_10_to_18()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

bool Condition::holds(const Configuration& configuration) const {
  double value = configuration.number(factor);
  if (both_directions && configuration.text("direction") == "bidirectional") value *= 2;
  switch (kind) {
    case Kind::kAtLeast:
      return value >= number;
    case Kind::kAtMost:
      return value <= number;
    case Kind::kIs:
      return text.empty() ? value == number : configuration.text(factor) == text;
  }
  return false;
}

std::span<const Defect> defects() {
  static const std::vector<Defect> all = make();
  return all;
}

DefectSet usual_defects() { return DefectSet().set(kMasksInSequence); }

Result<DefectSet> read_defects(std::string_view text) {
  DefectSet set;
  if (text == "none") return set;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    const auto found = std::find_if(defects().begin(), defects().end(),
                                    [&](const Defect& defect) { return defect.name == name; });
    if (found == defects().end()) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("there is no defect '{}'; there are S1 to S9 and C1 to C18, or none", name));
    }
    set.set(static_cast<std::size_t>(found - defects().begin()));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
  }
  return set;
}

SwitchFaults faults_of(const DefectSet& on) {
  SwitchFaults faults;
  for (std::size_t i = 0; i < defects().size(); ++i) {
    if (on.test(i) && defects()[i].fault != nullptr) faults.*defects()[i].fault = true;
  }
  return faults;
}

SwitchLoad switch_load(const Configuration& c, const Parameters& rnic) {
  return {.flow_count = c.number("flow_count"),
          .flow_setup_rate = c.number("flow_setup_rate"),
          .counter_poll_ms =
              c.contains("counter_poll_ms") ? c.number("counter_poll_ms") : rnic.counter_refresh_ms,
          .flow_idle_ms = c.number("flow_idle_ms"),
          .rules_per_mask = c.number("rules_per_mask"),
          .container_count = c.number("container_count"),
          .vf_unbind_rate = c.number("vf_unbind_rate"),
          .vxlan_contexts = c.number("vxlan_contexts")};
}

Effects effects_of(const DefectSet& on, const Configuration& configuration) {
  Effects effects;
  effects.masks_in_sequence = on.test(kMasksInSequence);
  for (std::size_t i = 0; i < defects().size(); ++i) {
    const Defect& defect = defects()[i];
    if (!on.test(i) || defect.plant == nullptr) continue;
    const bool triggered =
        std::all_of(defect.trigger.begin(), defect.trigger.end(),
                    [&](const Condition& condition) { return condition.holds(configuration); });
    if (triggered) defect.plant(effects);
  }
  return effects;
}

}  // namespace greynic::twin
