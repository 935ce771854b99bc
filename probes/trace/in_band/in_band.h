#pragma once

/// Engine B: packets of a rule carry the times at which they passed the points of its path, in an IPv4
/// option that the first point puts in and the last one takes out. Each rule is a path with programs and
/// tables of its own.
///
/// Not promised: that the topology is followed. A path whose devices go is over.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "greynic/trace/tracer.h"

namespace greynic::trace {

class InBand {
 public:
  /// Checks all paths before the kernel is asked for anything, and loads their programs.
  [[nodiscard]] static Result<std::unique_ptr<InBand>> load(const Rules& rules,
                                                            const Topology& topology,
                                                            const Tracer::OnEvent& on_event);
  /// Once: nothing happens when it was done before.
  [[nodiscard]] Result<void> attach(const Topology& topology);
  ~InBand();
  /// Hands over journeys, measures the cost and keeps it in the budget.
  [[nodiscard]] Result<void> tend(std::chrono::milliseconds patience);
  /// The first points go first, so that packets on their way still lose their stamps.
  void stop();
  [[nodiscard]] Report report() const;

 private:
  struct Path;
  InBand();
  std::vector<std::unique_ptr<Path>> paths_;
  std::optional<double> budget_;
  bool attached_ = false;
};

}  // namespace greynic::trace
