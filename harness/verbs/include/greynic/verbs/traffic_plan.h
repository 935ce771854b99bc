#pragma once

/// What a run of traffic is to do: a Configuration read into the terms of verbs, with the choices
/// that are no factors (how to measure, validation, GID rule). Both ends build their queues from
/// the same plan, so it also travels to a peer.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/fault_table.h"
#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"
#include "greynic/verbs/resources.h"

namespace greynic::verbs {

/// A global route header stands in front of each UD payload that arrives.
inline constexpr std::size_t kUdHeaderBytes = 40;

enum class Opcode : std::uint8_t {
  kSend,
  kSendWithImm,
  kSendWithInv,
  kWrite,
  kWriteWithImm,
  kRead,
  kCompareSwap,
  kFetchAdd,
};
[[nodiscard]] std::string_view to_string(Opcode operation);
/// Each message takes a receive slot of the other end.
[[nodiscard]] bool takes_receive(Opcode operation);
[[nodiscard]] bool is_atomic(Opcode operation);

enum class CompletionMode : std::uint8_t { kPolling, kEvents, kHybrid };

/// kBandwidth keeps send queues full, or follows a rate; kLatency has one message in flight.
enum class Mode : std::uint8_t { kBandwidth, kLatency };

struct TrafficPlan {
  Transport transport = Transport::kRC;
  Opcode operation = Opcode::kSend;
  Direction direction = Direction::kUnidirectional;
  CompletionMode completion = CompletionMode::kPolling;
  Mode mode = Mode::kBandwidth;
  Fault fault = Fault::kNone;  ///< of a negative test (faults.h)
  std::uint32_t qp_count = 1;
  std::uint32_t qps_per_cq = 1;
  std::uint32_t send_depth = 128;
  std::uint32_t receive_depth = 512;
  bool shared_receive_queue = false;
  bool srq_per_cq = false;  ///< a shared receive queue for each CQ's QPs instead of one for all
  std::vector<std::uint32_t> sizes = {65536};  ///< bytes of message 0, 1, 2 ... of a QP, repeated
  std::uint32_t sge_count = 1;
  /// Bytes of each scatter-gather element of a message (message_mix); empty: sge_count even pieces.
  std::vector<std::uint32_t> elements;
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t inline_bytes = 0;
  std::uint32_t signal_every = 1;
  std::uint32_t post_batch = 1;
  std::uint32_t receive_batch = 1;   ///< receives handed over by one call
  bool doorbell_per_thread = false;  ///< each thread's QPs ring a doorbell register of their own
  std::uint32_t mr_count = 1;
  std::uint64_t mr_bytes = 16777216;
  std::uint32_t thread_count = 1;
  double offered_rate = 0.0;  ///< messages a second of the whole run; 0: closed loop
  CqModeration cq_moderation;
  bool validate = false;  ///< check every payload that arrives
  bool huge_pages = false;
  bool extended_posting = true;  ///< ibv_wr_* where the device has it
  bool connection_manager =
      false;               ///< rdma_cm connects the QPs, instead of numbers told beforehand
  std::uint64_t seed = 0;  ///< of the payload pattern
  std::string gid_rule = "auto";
  std::chrono::milliseconds stall_limit{5000};  ///< no completion for so long ends the run

  [[nodiscard]] std::uint32_t largest_message() const;
  [[nodiscard]] double mean_message() const;
  /// Sends travel towards the peer only, or both ways.
  [[nodiscard]] bool both_ways() const {
    return direction == Direction::kBidirectional ||
           (mode == Mode::kLatency && !one_sided_answer());
  }
  /// READ and atomics: the answer comes without the other end's doing.
  [[nodiscard]] bool one_sided_answer() const {
    return operation == Opcode::kRead || is_atomic(operation);
  }
};

/// The factors that plan_from honours, for target::Info.
[[nodiscard]] std::vector<std::string> honoured_factors();

/// Reads a configuration; factors that are not set take the standard of the factor table. `base`
/// holds what no factor says. Errors: kBadInput, kUnsupported (a level that verbs do not offer).
[[nodiscard]] Result<TrafficPlan> plan_from(const Configuration& configuration,
                                            const TrafficPlan& base);

/// Why this plan cannot be set up on a device, by the verbs' own rules or the device's limits;
/// empty when nothing speaks against it. Ask it first: some devices accept and then silently drop
/// what they cannot do (Soft-RoCE: a UD message above the MTU).
[[nodiscard]] std::optional<std::string> impossible(const TrafficPlan& plan,
                                                    const DeviceLimits& limits,
                                                    const PortState& port);

/// "64*9,65536": nine messages of 64 bytes, then one of 65536. kBadInput names the part.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_sizes(std::string_view text);

}  // namespace greynic::verbs
