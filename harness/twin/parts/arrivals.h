#pragma once

/// Open loop: messages are due at times that no completion delays, and wait for their thread, for a
/// slot in a queue, and for everything behind it. Each sending host asks for `offered_rate`
/// messages a second in all; its threads split them evenly, and the times of each are a Poisson
/// process, so that those of the host are one too. A thread takes its QPs in turn, and by one
/// doorbell up to `post_batch` messages when so many are due. When a host asks for more than is
/// carried, latency grows as long as the run lasts, and the run says that it did not settle.
///
/// Needs: the world's load and source of chance, and the threads. Gives: how many messages a thread
/// posts now, and when a message that completes was due.

#include <cstdint>
#include <span>
#include <vector>

#include "parts/host.h"
#include "parts/world.h"
#include "stages/fifo.h"

namespace greynic::twin {

class Arrivals {
 public:
  explicit Arrivals(World& world) : world_(world) {}
  /// Where the load asks for an open loop.
  void lay_out(std::span<Thread> threads);
  [[nodiscard]] bool open_loop() const { return !dues_.empty(); }

  /// What is due of a thread at t goes to one stream, up to `most`; at least one is. Returns how
  /// many.
  [[nodiscard]] std::uint32_t take_due(Thread& thread, std::uint32_t stream, std::uint32_t most,
                                       Time t);
  /// When the oldest message of a stream was due; it completes.
  [[nodiscard]] Time complete(std::uint32_t stream) { return dues_[stream].pop(); }
  /// Messages of a stream that were due and have not completed.
  [[nodiscard]] std::size_t open_count(std::uint32_t stream) const { return dues_[stream].size(); }

 private:
  World& world_;
  std::vector<Fifo<Time>> dues_;  ///< by stream
};

}  // namespace greynic::twin
