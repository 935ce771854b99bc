#include "traffic/trip_book.h"

namespace greynic::verbs {

void TripBook::enter() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Trip& trip = noted_[i];
    if (trip.back_ns < begin_ns_) continue;
    bins_.add(trip.back_ns, 1);
    latency_.record(static_cast<std::uint64_t>((trip.back_ns - trip.sent_ns) / parts_));
  }
  count_ = 0;
}

}  // namespace greynic::verbs
