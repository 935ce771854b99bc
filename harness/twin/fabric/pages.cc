#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "fabric/simulation.h"

/// With many hosts, the CPU's table of pages is too small for pages of 4 KiB: where each lies has to
/// be looked up in memory too. So what hosts consist of is moved into pages of 2 MiB, once it is
/// there. Nothing else changes, and a kernel that cannot do it is no harm.

namespace greynic::twin::fabric {
namespace {

constexpr std::uintptr_t kPageBytes = 2 << 20;
constexpr int kCollapse = 25;  ///< MADV_COLLAPSE, Linux 6.1

}  // namespace

void Simulation::enlarge_pages() {
  std::vector<std::uintptr_t> pages;
  const auto note = [&](const void* object) {
    const auto page = reinterpret_cast<std::uintptr_t>(object) / kPageBytes;
    if (object != nullptr && (pages.empty() || pages.back() != page)) pages.push_back(page);
  };
  for (const HostPart& host : hosts_) {
    note(&host);
    note(host.nic.get());
    note(host.threads.data());
  }
  for (const std::uint32_t id : numbers_) {
    const Qp* qp = qps_.find(id);
    if (qp == nullptr) continue;
    note(qp);
    note(qp->ring.data());
    note(qp->send_cq);
  }
  std::ranges::sort(pages);
  pages.erase(std::ranges::unique(pages).begin(), pages.end());
  for (const std::uintptr_t page : pages) {
    (void)madvise(reinterpret_cast<void*>(page * kPageBytes), kPageBytes, kCollapse);
  }
}

}  // namespace greynic::twin::fabric
