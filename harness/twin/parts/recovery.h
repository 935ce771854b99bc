#pragma once

/// What becomes of packets that are corrupted on the wire, and of messages that find no receive
/// WQE.
///
/// RC goes back N. The receiver throws away what follows the gap and sends one negative
/// acknowledgement; the sender starts again at the missing packet when it hears of it, or when its
/// timer runs out because nothing followed. Of a message without receive WQE that is its first
/// packet, and the sender rests before it comes again. After so many tries the QP fails. UC and UD
/// lose the message. Requests without data are not lost; answers are (answers.h).
///
/// Example: packet 3 of 8 is corrupted. Packets 4 to 8 arrive behind the gap and are thrown away;
/// packet 4 makes the receiver send a NAK (kGapSeen), the sender hears it (kGoBack), and packets 3
/// to 8 are sent once more. When packet 8 is the one that is corrupted nothing follows it, and the
/// sender's timer (kTimeout) does what the NAK did.
///
/// Needs: the world, the path for what the receiver says, and the receive WQEs.
/// Gives: the fate of each packet before it travels, and for each event whether the stream has
/// something to send now (true: activate it).

#include <cstdint>
#include <vector>

#include "parts/path.h"
#include "parts/receives.h"
#include "parts/world.h"

namespace greynic::twin {

/// Of one stream.
struct StreamRecovery {
  bool behind_gap = false;         ///< a packet is missing: what follows is thrown away
  bool nak_sent = false;           ///< and the sender will hear of it
  bool broken = false;             ///< a packet of the message in work is missing (UC)
  std::uint32_t message = 0;       ///< where to go back to
  std::uint32_t packets_left = 0;  ///< of that message, the missing packet among them
  std::uint32_t gap = 0;           ///< number of the gap: what concerns an older one is void
  std::uint64_t sent_behind = 0;   ///< packets sent since
  std::uint64_t bytes_behind = 0;
  std::uint8_t tries = 0;            ///< to get the same packet there again
  std::uint8_t rnr_tries = 0;        ///< to find a receive WQE for the same message
  bool received = false;             ///< the message that comes in has its receive WQE
  bool stopped = false;              ///< its QP has failed
  bool flushes = false;              ///< and what is posted on it completes in error
  bool unheard = false;              ///< rests for its timer, while the receiver is down
  std::uint32_t delivered = 0;       ///< SENDs that found their receive WQE, whole
  std::uint32_t acknowledged = 0;    ///< messages that the sender knows to be there
  std::uint32_t unacknowledged = 0;  ///< that are there, but the acknowledgement was lost
  std::uint32_t answers = 0;         ///< that the sender has heard
  std::uint32_t refusals = 0;  ///< what was on its way at an older one is void when it arrives
};

class Recovery {
 public:
  Recovery(World& world, Path& path, Receives& receives)
      : world_(world), path_(path), receives_(receives) {}
  /// Begins to keep track: from the start where packets can be lost, else from the first time that
  /// a receiver is not ready. What is under way by then has been counted as delivered.
  void lay_out();
  [[nodiscard]] bool active() const { return !streams_.empty(); }
  /// Of a stream; only when active.
  [[nodiscard]] StreamRecovery& operator[](std::uint32_t stream) { return streams_[stream]; }
  [[nodiscard]] const StreamRecovery& operator[](std::uint32_t stream) const {
    return streams_[stream];
  }
  /// The server answers nothing from one time to another.
  void go_silent(Time begins, Time ends) {
    outage_begins_ = begins;
    outage_ends_ = ends;
  }
  /// Streams that rest because of that.
  [[nodiscard]] std::uint64_t unheard_count() const { return unheard_; }

  // Of the sender, packet by packet; only when active.

  /// Called before the packet is counted as sent.
  [[nodiscard]] Fate fate_of_packet(std::uint32_t stream, Time t);
  /// A packet is lost; `packets_left` of its message, itself among them.
  void open_gap(std::uint32_t stream, std::uint32_t packets_left, Time t);
  /// A packet that is not written has arrived: it was corrupted, or something before it is missing.
  void throw_away(std::uint32_t stream, Fate fate, const Freight& freight, Time t);
  /// The last packet of a message has left. RC delivers it unless a packet of it or before it is
  /// missing; it will come again. UC and UD deliver it when it is whole.
  [[nodiscard]] bool message_survives(std::uint32_t stream);

  // Of the receiver, message by message.

  /// Was this sent before the receiver refused something, so that it counts as out of sequence?
  [[nodiscard]] bool is_void(std::uint32_t stream, std::uint32_t refusals) const;
  /// For a SEND that is whole.
  [[nodiscard]] bool find_receive(std::uint32_t stream, Time t);
  /// The receiver is not ready for the message that comes next, and throws it away with all that
  /// follows. It was counted as written when it was sent.
  void refuse(std::uint32_t stream, Time t);

  // Events, by their names.

  void gap_seen(std::uint32_t stream, std::uint32_t gap, Time t);
  [[nodiscard]] bool go_back(std::uint32_t stream, std::uint32_t gap, bool timed_out);
  void announced(std::uint32_t stream, std::uint32_t refusals, Time t);
  void not_ready(std::uint32_t stream, std::uint32_t gap, Time t);
  [[nodiscard]] bool rested(std::uint32_t stream);

  enum class Exhausted : std::uint8_t { kRetries, kRnrRetries };
  /// Whoever asked for what the stream sends has tried often enough: its QP goes to error, with it
  /// all that is open on it, and nothing is sent on it any more, in either direction.
  void fail_qp(std::uint32_t stream, Exhausted what);

 private:
  void watch_gap(std::uint32_t stream, Time t);
  void rewind(std::uint32_t stream);
  void hear_again(std::uint32_t stream);
  [[nodiscard]] bool announces(const Stream& s) const;
  void take_back(std::uint32_t stream);

  World& world_;
  Path& path_;
  Receives& receives_;
  std::vector<StreamRecovery> streams_;
  Time outage_begins_ = kNever, outage_ends_ = kNever;
  std::uint64_t unheard_ = 0;
};

}  // namespace greynic::twin
