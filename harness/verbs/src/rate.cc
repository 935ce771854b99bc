#include "rate.h"

#include <algorithm>
#include <cmath>

namespace greynic::verbs {

Slices::Slices(std::int64_t begin_ns, std::int64_t end_ns)
    : begin_ns_(begin_ns), slice_ns_(std::max<std::int64_t>((end_ns - begin_ns) / kSlices, 1)) {}

void Slices::add(std::int64_t at_ns, std::uint64_t messages) {
  const std::int64_t index = (at_ns - begin_ns_) / slice_ns_;
  if (at_ns < begin_ns_ || index >= kSlices) return;
  Slice& slice = slices_[static_cast<std::size_t>(index)];
  if (slice.messages == 0) {
    slice.first_ns = at_ns;
    slice.first_messages = messages;
  }
  slice.messages += messages;
  slice.last_ns = at_ns;
}

void Slices::merge(const Slices& other) {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& mine = slices_[i];
    const Slice& more = other.slices_[i];
    if (more.messages == 0) continue;
    if (mine.messages == 0 || more.first_ns < mine.first_ns) {
      mine.first_ns = more.first_ns;
      mine.first_messages = more.first_messages;
    }
    mine.messages += more.messages;
    mine.last_ns = std::max(mine.last_ns, more.last_ns);
  }
}

Slices::Rate Slices::rate() const {
  // MSER: cut the head whose removal makes the mean of the rest best known; at most half.
  int cut = 0;
  double best = -1.0;
  const auto moments = [&](int from, int to) {
    double sum = 0.0;
    double squares = 0.0;
    for (int i = from; i < to; ++i) {
      const auto value = static_cast<double>(slices_[static_cast<std::size_t>(i)].messages);
      sum += value;
      squares += value * value;
    }
    const int n = to - from;
    return std::pair{sum / n, std::max(0.0, squares / n - sum * sum / n / n)};
  };
  for (int from = 0; from <= kSlices / 2; ++from) {
    const double score = moments(from, kSlices).second / (kSlices - from);
    if (best < 0 || score < best) {
      best = score;
      cut = from;
    }
  }
  Rate rate;
  std::uint64_t messages = 0;
  const Slice* first = nullptr;
  const Slice* last = nullptr;
  for (int i = cut; i < kSlices; ++i) {
    const Slice& slice = slices_[static_cast<std::size_t>(i)];
    if (slice.messages == 0) continue;
    if (first == nullptr) first = &slice;
    last = &slice;
    messages += slice.messages;
  }
  const auto [mean, variance] = moments(cut, kSlices);
  const double kept_seconds = 1e-9 * static_cast<double>(slice_ns_) * (kSlices - cut);
  if (first != nullptr && last->last_ns > first->first_ns) {
    rate.per_second = static_cast<double>(messages - first->first_messages) * 1e9 /
                      static_cast<double>(last->last_ns - first->first_ns);
  } else {
    rate.per_second = static_cast<double>(messages) / kept_seconds;
  }
  const int n = kSlices - cut;
  if (mean > 0) rate.standard_error = rate.per_second * std::sqrt(variance / (n - 1)) / mean;
  const int middle = cut + n / 2;
  const auto [early, early_variance] = moments(cut, middle);
  const auto [late, late_variance] = moments(middle, kSlices);
  const double noise =
      std::sqrt(early_variance / (middle - cut) + late_variance / (kSlices - middle));
  rate.steady.settled = mean > 0 && std::abs(late - early) <= std::max(0.05 * mean, 2.0 * noise);
  rate.steady.warmup_share = static_cast<double>(cut) / kSlices;
  rate.steady.test = "MSER over 20 slices, halves within 5 % or 2 sigma";
  return rate;
}

}  // namespace greynic::verbs
