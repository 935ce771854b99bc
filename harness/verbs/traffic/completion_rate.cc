#include "traffic/completion_rate.h"

#include <algorithm>

#include "greynic/statistics/event_rate.h"

namespace greynic::verbs {

CompletionBins::CompletionBins(std::int64_t begin_ns, std::int64_t end_ns)
    : begin_ns_(begin_ns), bin_ns_(std::max<std::int64_t>((end_ns - begin_ns) / kBins, 1)) {}

void CompletionBins::add(std::int64_t at_ns, std::uint64_t messages) {
  const std::int64_t index = (at_ns - begin_ns_) / bin_ns_;
  if (at_ns < begin_ns_ || index >= kBins) return;
  bins_[static_cast<std::size_t>(index)] += messages;
}

void CompletionBins::merge(const CompletionBins& other) {
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

CompletionBins::Rate CompletionBins::rate() const {
  const statistics::EventRate found = statistics::estimate_event_rate(bins_);
  const double per_second = 1e9 / static_cast<double>(bin_ns_);
  Rate rate;
  rate.per_second = found.per_bin * per_second;
  if (found.standard_error) rate.standard_error = *found.standard_error * per_second;
  rate.steady = {.settled = found.settled,
                 .warmup_share = found.warmup_share,
                 .test = "MSER, halves within 5 % or 2 sigma"};
  return rate;
}

}  // namespace greynic::verbs
