#pragma once

/// Which sends leave their bytes where they lie. To register memory pays when it is sent often
/// enough, which nobody knows beforehand. So bytes are copied until copying them has cost what
/// registering them would have, and then registered: that costs at most twice what it would if the
/// future were known. Long ones cost more to copy than to register, and are registered at once.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "greynic/broker/local.h"

namespace greynic::broker::client {

class Lending {
 public:
  /// Shorter ones are copied: that is done before the caller has been woken again.
  static constexpr std::size_t kLeastBytes = 16384;
  enum class Choice : std::uint8_t { kCopy, kRegister, kReuse };

  Lending() = default;
  explicit Lending(const local::Costs& costs) : costs_(costs) {}

  /// For a send of so many bytes of lent memory from there, and notes what it says.
  Choice choose(const void* place, std::size_t bytes) {
    if (bytes < kLeastBytes || costs_.copy_page_ns == 0) return Choice::kCopy;
    if (seen_.size() >= kMostSeen && !seen_.contains(place)) seen_.clear();
    Seen& seen = seen_[place];
    if (seen.registered >= bytes) return Choice::kReuse;
    const std::uint64_t pages = (bytes + local::kPage - 1) / local::kPage;
    seen.copied_pages += pages;
    if (seen.copied_pages * costs_.copy_page_ns <
        costs_.register_ns + pages * costs_.register_page_ns) {
      return Choice::kCopy;
    }
    seen = {.registered = bytes};
    return Choice::kRegister;
  }
  /// The broker had to register what it was thought to have: it holds less than is sent in turn.
  void was_forgotten(const void* place) { seen_.erase(place); }
  void forget_all() { seen_.clear(); }

 private:
  static constexpr std::size_t kMostSeen = 4096;
  struct Seen {
    std::uint64_t copied_pages = 0;
    std::size_t registered = 0;
  };
  local::Costs costs_;
  std::unordered_map<const void*, Seen> seen_;
};

}  // namespace greynic::broker::client
