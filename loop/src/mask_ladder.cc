#include "greynic/loop/mask_ladder.h"

#include <algorithm>
#include <cmath>

namespace greynic::loop {

std::vector<Configuration> mask_ladder(const Configuration& at, Hop hop, double most,
                                       double limit) {
  constexpr double kFirst = 4, kStep = 4, kOnePacket = 64;
  std::vector<Configuration> ladder;
  if (!at.contains(mask_factor(hop))) return ladder;
  most = std::ceil(limit > 0 ? std::min(most, limit) : most);
  for (double masks = kFirst;; masks *= kStep) {
    Configuration rung = at;
    rung.set(mask_factor(hop), std::min(masks, most));
    ladder.push_back(rung);
    if (at.contains("message_bytes")) {
      rung.set("message_bytes", kOnePacket);
      ladder.push_back(std::move(rung));
    }
    if (masks >= most) return ladder;
  }
}

}  // namespace greynic::loop
