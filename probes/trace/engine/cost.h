#pragma once

/// What tracing itself costs: run time of the programs, counted by the kernel for a twentieth of the
/// time, because counting costs as much as half a program. And what follows from a budget.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/bpf/object.h"

namespace greynic::trace {

class Cost {
 public:
  using Links = std::vector<std::pair<std::string, bpf::Link>>;

  /// Begins or ends a window of counting when it is due.
  void tend(const bpf::Object& object, const Links& links);
  /// Share of all CPUs, over all windows.
  [[nodiscard]] double share() const;
  [[nodiscard]] std::optional<double> event_ns() const;
  /// After a window: a new "one of so many journeys", when the budget asks for it.
  [[nodiscard]] std::optional<std::uint32_t> wanted_one_in(std::optional<double> budget);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> read(const bpf::Object& object,
                                                                    const Links& links);
  std::optional<bpf::Link> counting_;
  Clock::time_point began_{};
  Clock::time_point ended_ = Clock::now();
  std::uint64_t runs_before_ = 0, ns_before_ = 0;
  std::uint64_t runs_ = 0, ns_ = 0;  ///< in windows
  double window_ns_ = 0;
  std::optional<double> last_share_;  ///< of a window that wanted_one_in() has not judged yet
  std::uint32_t one_in_ = 1;
};

}  // namespace greynic::trace
