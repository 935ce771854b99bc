#include "parts/host_memory.h"

#include <algorithm>
#include <cmath>

namespace greynic::twin {

void HostMemory::lay_out() {
  const HostLoad& load = world_.load;
  const double per_page =
      std::max(1.0, static_cast<double>(load.mr_bytes) / static_cast<double>(load.page_bytes));
  pages_ =
      static_cast<std::uint64_t>(std::ceil(per_page)) * std::max<std::uint64_t>(1, load.mr_count);
  if (load.far_memory) far_memory_ns_ = world_.p.far_socket_ns;
}

void HostMemory::lay_out_regions() {
  const double rate = world_.load.mr_churn_rate;
  for (std::uint8_t side = 0; rate > 0 && side < world_.nics.size(); ++side) {
    world_.nics[side].translations = Cache::invalidatable(
        static_cast<std::uint64_t>(world_.p.mtt_entry_count), pages_, world_.random.next());
    world_.events.push(world_.random.exponential(1e9 / rate), event::kDeregister, side);
  }
  translation_matters_ = !world_.nics[0].translations.never_misses();
}

void HostMemory::deregister(std::uint8_t side, Time t) {
  const std::uint64_t regions = std::max<std::uint64_t>(1, world_.load.mr_count);
  const std::uint64_t region_pages = pages_ / regions;
  const std::uint64_t first = world_.random.next() % regions * region_pages;
  for (std::uint64_t page = first; page < first + region_pages; ++page) {
    world_.nics[side].translations.invalidate(page);
  }
  world_.events.push(t + world_.random.exponential(1e9 / world_.load.mr_churn_rate),
                     event::kDeregister, side);
}

}  // namespace greynic::twin
