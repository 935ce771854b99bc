#include "region/lost_pages.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

namespace greynic::zero {
namespace {

constexpr std::size_t kPlaces = 256;
constexpr std::size_t kNowhere = kPlaces;

/// Read by a signal handler, so nothing but lock-free words.
struct Place {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: free; set last
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

std::array<Place, kPlaces> guarded;
std::uintptr_t page_bytes = 4096;
struct sigaction other_handler {};

void mend_page(int number, siginfo_t* info, void*) {
  const int kept = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Place& place : guarded) {
    const std::uintptr_t begin = place.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= place.bytes) continue;
    void* const page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
    place.lost = true;
    if (mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
      break;
    }
    errno = kept;
    return;
  }
  // Not ours: the access is tried again, under the handler of whoever it belongs to.
  sigaction(number, &other_handler, nullptr);
}

void install() {
  page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = mend_page;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGBUS, &action, &other_handler);
}

}  // namespace

Result<PageGuard> PageGuard::over(std::span<std::byte> mapping) {
  static std::once_flag once;
  std::call_once(once, install);
  static std::mutex taking;
  const std::lock_guard lock(taking);
  for (std::size_t i = 0; i < kPlaces; ++i) {
    Place& place = guarded[i];
    if (place.begin.load(std::memory_order_acquire) != 0) continue;
    place.bytes = mapping.size();
    place.lost = false;
    place.begin.store(reinterpret_cast<std::uintptr_t>(mapping.data()), std::memory_order_release);
    return PageGuard(i);
  }
  return fail(ErrorCode::kTooBig, fmt::format("more than {} regions are mapped at once", kPlaces));
}

PageGuard::PageGuard(PageGuard&& other) noexcept : place_(std::exchange(other.place_, kNowhere)) {}

PageGuard& PageGuard::operator=(PageGuard&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

PageGuard::~PageGuard() {
  if (place_ != kNowhere) guarded[place_].begin.store(0, std::memory_order_release);
}

bool PageGuard::lost() const { return place_ != kNowhere && guarded[place_].lost; }

}  // namespace greynic::zero
