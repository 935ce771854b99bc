#include "parameters/host_load.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "switch/layout_walk.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kLargestMessage = 1ULL << 31;
constexpr double kMostHosts = 250;  ///< packet by packet

std::optional<Doorbells> doorbells_named(const std::string& name) {
  if (name == "default") return Doorbells::kDriverDefault;
  if (name == "dedicated") return Doorbells::kOwn;
  if (name == "shared_qp") return Doorbells::kSharedQp;
  return std::nullopt;
}

std::optional<Direction> direction_named(const std::string& name) {
  if (name == "unidirectional") return Direction::kUnidirectional;
  if (name == "bidirectional") return Direction::kBidirectional;
  if (name == "loopback") return Direction::kLoopback;
  return std::nullopt;
}

Refusal unknown(const std::string& factor, const std::string& value) {
  return {fmt::format("EOPNOTSUPP: {}={} is not modelled", factor, value)};
}

}  // namespace

double GroupWalk::mean() const {
  if (shares.empty()) return groups;
  double sum = 0;
  double before = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sum += (shares[i] - before) * share_groups[i];
    before = shares[i];
  }
  return sum;
}

/// InfiniBand specification, 9.7.6.1.3 (local ACK timeout).
Time Retries::ack_timeout_ns() const {
  return ack_timeout == 0 ? kNever : std::ldexp(4096.0, ack_timeout);
}

/// InfiniBand specification, table 45: 0.01 to 0.03 ms, then steps of 1.5 and 1.33 in turn; code 0
/// is the longest.
Time Retries::rnr_timer_ns() const {
  if (min_rnr_timer == 0) return 655.36e6;
  if (min_rnr_timer < 4) return 10e3 * min_rnr_timer;
  return std::ldexp(min_rnr_timer % 2 == 0 ? 40e3 : 60e3, (min_rnr_timer - 4) / 2);
}

std::optional<Refusal> refuse(const HostLoad& w, const Parameters& parameters) {
  const bool ud = w.transport == Transport::kUD;
  const std::uint64_t largest = *std::max_element(w.message_bytes.begin(), w.message_bytes.end());
  if (ud && w.operation != Operation::kSend) {
    return Refusal{"IBV_WC_LOC_QP_OP_ERR: UD offers SEND only"};
  }
  if (w.transport == Transport::kUC &&
      (w.operation == Operation::kRead || w.operation == Operation::kAtomic)) {
    return Refusal{"IBV_WC_LOC_QP_OP_ERR: UC offers SEND and WRITE only"};
  }
  if (ud && largest > w.mtu_bytes) {
    return Refusal{fmt::format("IBV_WC_LOC_LEN_ERR: a UD message of {} bytes exceeds the MTU of {}",
                               largest, w.mtu_bytes)};
  }
  if (largest > kLargestMessage) {
    return Refusal{
        fmt::format("IBV_WC_LOC_LEN_ERR: {} bytes in one message; RC carries 2 GiB", largest)};
  }
  if (w.operation == Operation::kAtomic && parameters.atomic_rate_mops <= 0) {
    return Refusal{"EOPNOTSUPP: the RNIC has no RoCE atomics"};
  }
  if (w.inline_bytes && *w.inline_bytes > parameters.max_inline_bytes[w.operation]) {
    return Refusal{fmt::format("EINVAL: max_inline_data={} exceeds the device's {}",
                               *w.inline_bytes, parameters.max_inline_bytes[w.operation])};
  }
  if (w.signal_every > w.send_depth) {
    return Refusal{fmt::format("ENOMEM: a completion for each {} sends never comes with {} slots",
                               w.signal_every, w.send_depth)};
  }
  for (const GroupWalk& walk : w.walks) {
    if (walk.mean() > 0 && !parameters.has_switch()) {
      return Refusal{"EOPNOTSUPP: the RNIC has no switch that flow rules could be offloaded to"};
    }
    if (parameters.mask_shape_limit > 0 && walk.groups > parameters.mask_shape_limit) {
      return Refusal{fmt::format("ENOSPC: {} mask shapes; the switch has recipes for {}",
                                 walk.groups, parameters.mask_shape_limit)};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> add_senders(const Configuration& configuration, HostLoad& w) {
  const double hosts = configuration.number("host_count");
  if (!(hosts >= 2 && hosts <= kMostHosts)) {
    return Refusal{fmt::format(
        "EINVAL: host_count={} lies outside 2 to {}; of more hosts there are fleets only", hosts,
        kMostHosts)};
  }
  w.sender_count = static_cast<std::uint32_t>(hosts) - 1;
  if (w.sender_count == 1) return std::nullopt;
  if (w.direction == Direction::kLoopback) {
    return Refusal{"EOPNOTSUPP: loopback is modelled between two hosts"};
  }
  if (w.direction == Direction::kBidirectional && w.thread_count > w.qp_count) {
    return Refusal{"EOPNOTSUPP: threads that share QPs with several hosts both ways"};
  }
  return std::nullopt;
}

tl::expected<HostLoad, Refusal> read_host_load(const Configuration& c, const Parameters& parameters,
                                               const HostLoadOptions& options) {
  HostLoad w{options};
  const auto transport = transport_named(c.text("transport"));
  if (!transport || *transport == Transport::kXRC) {
    return tl::unexpected(unknown("transport", c.text("transport")));
  }
  w.transport = *transport;
  const auto operation = operation_named(c.text("operation"));
  if (!operation) return tl::unexpected(unknown("operation", c.text("operation")));
  w.operation = *operation;
  const auto doorbells = doorbells_named(c.text("doorbell_sharing"));
  if (!doorbells) return tl::unexpected(unknown("doorbell_sharing", c.text("doorbell_sharing")));
  w.doorbells = *doorbells;
  const auto direction = direction_named(c.text("direction"));
  if (!direction) return tl::unexpected(unknown("direction", c.text("direction")));
  w.direction = *direction;

  // The table of factors bounds numbers from campaigns; a value from elsewhere is bounded here.
  std::optional<Refusal> outside;
  const auto number = [&](std::string_view name) {
    const double value = c.number(name);
    const FactorInfo* row = find_factor(name);
    if (row != nullptr && !(value >= row->minimum && value <= row->maximum)) {
      outside = Refusal{fmt::format("EINVAL: {}={} lies outside {} to {}", name, value,
                                    row->minimum, row->maximum)};
      return row->minimum;
    }
    return value;
  };
  const auto count = [&](std::string_view name) {
    return static_cast<std::uint32_t>(number(name));
  };
  w.qp_count = w.doorbells == Doorbells::kSharedQp ? 1 : count("qp_count");
  w.thread_count = count("thread_count");
  w.send_depth = count("send_queue_depth");
  w.receive_depth = count("receive_queue_depth");
  w.shared_receive_queue = c.flag("shared_receive_queue");
  w.message_bytes = {static_cast<std::uint64_t>(number("message_bytes"))};
  // Collie's mixes: 128 B, 64 KiB and 1 KiB in one request, or a long request among short ones.
  if (c.text("message_mix") == "mixed_sge") w.message_bytes = {128 + 65536 + 1024};
  if (c.text("message_mix") == "mixed_requests") w.message_bytes = {65536, 128, 128, 128};
  if (w.operation == Operation::kAtomic) w.message_bytes = {8};
  w.mtu_bytes = count("mtu_bytes");
  w.sge_count = std::max(1U, count("sge_count"));
  w.far_memory = c.text("memory_placement") == "cross_socket";
  if (c.contains("inline_bytes")) w.inline_bytes = count("inline_bytes");
  w.signal_every = std::min(count("signal_every"), w.send_depth);
  w.post_batch = std::min(count("post_batch"), w.send_depth);
  w.mr_count = static_cast<std::uint64_t>(number("mr_count"));
  w.mr_bytes = static_cast<std::uint64_t>(number("mr_bytes"));
  w.offered_rate = number("offered_rate");
  w.flow_count = static_cast<std::uint64_t>(number("flow_count"));
  const double rules_per_mask = number("rules_per_mask");
  w.overlay = options.overlay.value_or(parameters.has_switch());
  for (const Hop hop :
       {Hop::kClientEncap, Hop::kServerDecap, Hop::kServerEncap, Hop::kClientDecap}) {
    w.walk(hop).groups =
        groups_of_masks(number(mask_factor(hop)), rules_per_mask, options.grouping);
  }
  if (outside) return tl::unexpected(*outside);
  if (auto refusal = refuse(w, parameters)) return tl::unexpected(std::move(*refusal));
  return w;
}

}  // namespace greynic::twin
