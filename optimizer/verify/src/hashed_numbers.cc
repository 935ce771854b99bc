#include "src/hashed_numbers.h"

#include <algorithm>

namespace greynic::verify {

void HashedNumbers::grow() {
  std::vector<Slot> before(std::max<std::size_t>(16, slots_.size() * 2));
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.number == kFree) continue;
    std::size_t at = slot.mark;
    while (slots_[at & (slots_.size() - 1)].number != kFree) ++at;
    slots_[at & (slots_.size() - 1)] = slot;
  }
}

}  // namespace greynic::verify
