#include "engine/engine.h"

/// Control verbs beside the traffic. Who deregisters a memory region makes its RNIC forget the
/// translations of its pages, lest they be used once more; traffic that goes on with the region,
/// registered anew, reads them over PCIe again, page by page.

namespace greynic::twin {

void Engine::lay_out_regions() {
  if (w_.mr_churn_rate <= 0) return;
  for (std::uint8_t side = 0; side < nics_.size(); ++side) {
    nics_[side].translations = Cache::invalidatable(static_cast<std::uint64_t>(p_.mtt_entry_count),
                                                    pages_, random_.next());
    events_.push(random_.exponential(1e9 / w_.mr_churn_rate), kDeregister, side);
  }
}

/// One region, any of them, and the next such verb at a random time.
void Engine::deregister(std::uint8_t side, Time t) {
  const std::uint64_t regions = std::max<std::uint64_t>(1, w_.mr_count);
  const std::uint64_t region_pages = pages_ / regions;
  const std::uint64_t first = random_.next() % regions * region_pages;
  for (std::uint64_t page = first; page < first + region_pages; ++page) {
    nics_[side].translations.invalidate(page);
  }
  events_.push(t + random_.exponential(1e9 / w_.mr_churn_rate), kDeregister, side);
}

}  // namespace greynic::twin
