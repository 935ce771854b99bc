#pragma once

/// What the hosts do in one run, as typed settings: read from a configuration, or filled in by hand
/// where an experiment of the literature needs more than the factors say.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "greynic/core/configuration.h"
#include "parameters/parameters.h"
#include "stages/stage.h"
#include "stages/wire.h"

namespace greynic::twin {

enum class Doorbells : std::uint8_t { kDriverDefault, kOwn, kSharedQp };
/// Keep the queues full, as perftest does, or post a round and wait for all of it, as SMART does.
enum class Posting : std::uint8_t { kWindow, kRound };

/// How many groups a packet is checked against at one hop: a number, or shares of packets.
struct GroupWalk {
  double groups = 0;
  std::vector<double> shares;        ///< cumulative, last is 1; empty: every packet walks `groups`
  std::vector<double> share_groups;  ///< same length
  [[nodiscard]] double mean() const;
};

/// How the driver and the switch make groups of masks (layout_walk.h).
struct Grouping {
  std::optional<double> large_groups;  ///< the driver's auto-grouping; unset: a group a mask
  bool exact_first = false;            ///< the switch looks into an exact-match group first
};

/// How long an RC QP tries before it fails: fields of ibv_qp_attr, as perftest sets them.
struct Retries {
  int ack_timeout = 14;    ///< code: 4.096 us x 2^code; 0: waits without end
  int retry_count = 7;     ///< times that it sends again for want of an acknowledgement
  int rnr_retry = 7;       ///< times that it asks for a receive WQE again; 7: without end
  int min_rnr_timer = 12;  ///< code: how long it waits before that
  [[nodiscard]] Time ack_timeout_ns() const;  ///< kNever: without end
  [[nodiscard]] Time rnr_timer_ns() const;
};

/// What the options of a target set alike for all of its runs.
struct RunConditions {
  Posting posting = Posting::kWindow;
  double loss = 0;  ///< share of data packets that are corrupted on the wire
  Retries retries;
  double server_link_gbps = 0;  ///< the server's link, when it is slower than the client's; else 0
  bool pfc = true;              ///< a switch port pauses senders, and drops nothing
  bool dcqcn = false;           ///< the RNICs control rates by ECN marks
  double mr_churn_rate = 0;     ///< memory regions a second that each host registers anew
};

struct HostLoad : RunConditions {
  Transport transport = Transport::kRC;
  Operation operation = Operation::kSend;
  std::uint32_t sender_count = 1;  ///< clients of the one server, each with its own RNIC
  std::uint32_t qp_count = 1;      ///< of each client
  std::uint32_t thread_count = 1;
  std::uint32_t send_depth = 128;
  std::uint32_t receive_depth = 512;
  bool shared_receive_queue = false;
  std::vector<std::uint64_t> message_bytes = {65536};  ///< taken in turn
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t sge_count = 1;
  std::optional<std::uint32_t> inline_bytes;  ///< unset: nothing, but small messages in ping-pong
  std::uint32_t signal_every = 1;
  std::uint32_t post_batch = 1;
  std::uint64_t mr_count = 1;
  std::uint64_t mr_bytes = 1 << 24;
  std::uint64_t page_bytes = 4096;
  bool far_memory = false;  ///< the client's buffers lie on the socket away from its RNIC
  Doorbells doorbells = Doorbells::kDriverDefault;
  Direction direction = Direction::kUnidirectional;
  bool overlay = true;
  std::uint64_t flow_count = 1;  ///< that messages belong to
  double offered_rate = 0;  ///< messages a second that each sending host asks for; 0: closed loop
  std::array<GroupWalk, 4> walks;  ///< by Hop

  [[nodiscard]] bool carries_data_in_request() const {
    return operation == Operation::kSend || operation == Operation::kWrite;
  }
  [[nodiscard]] const GroupWalk& walk(Hop hop) const {
    return walks[static_cast<std::size_t>(hop)];
  }
  [[nodiscard]] GroupWalk& walk(Hop hop) { return walks[static_cast<std::size_t>(hop)]; }
};

/// What the target's options add to a configuration.
struct HostLoadOptions : RunConditions {
  std::optional<bool> overlay;  ///< unset: an overlay where the RNIC has a switch
  Grouping grouping;
};

/// Why an RNIC would not set this up, in the words of its driver.
struct Refusal {
  std::string reason;
};

/// Reads and judges a configuration. The refusals are those of verbs and of the RNIC's limits.
[[nodiscard]] tl::expected<HostLoad, Refusal> read_host_load(const Configuration& configuration,
                                                             const Parameters& parameters,
                                                             const HostLoadOptions& options);

/// All hosts but one send to that one (host_count). The refusal says what cannot be.
[[nodiscard]] std::optional<Refusal> add_senders(const Configuration& configuration,
                                                 HostLoad& load);

/// Judges settings that were filled in by hand; empty when they can be run.
[[nodiscard]] std::optional<Refusal> refuse(const HostLoad& load, const Parameters& parameters);

}  // namespace greynic::twin
