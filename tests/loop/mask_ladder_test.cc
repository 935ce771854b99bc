#include "greynic/loop/mask_ladder.h"

#include <gtest/gtest.h>

namespace greynic::loop {
namespace {

std::vector<double> masks_of(const std::vector<Configuration>& ladder) {
  std::vector<double> masks;
  for (const Configuration& rung : ladder) masks.push_back(rung.number("server_decap_masks"));
  return masks;
}

// Claim:  rungs go as far as the rules, or as the device; each is asked for one small packet, too; all else is as the
//         traffic that is judged.
TEST(MaskLadder, GoesAsFarAsTheRules) {
  const Configuration at = {
      {"server_decap_masks", 0.0}, {"message_bytes", 65536.0}, {"qp_count", 4.0}};
  const auto ladder = mask_ladder(at, Hop::kServerDecap, 500, 0);
  EXPECT_EQ(masks_of(ladder), (std::vector<double>{4, 4, 16, 16, 64, 64, 256, 256, 500, 500}));
  for (std::size_t i = 0; i < ladder.size(); ++i) {
    EXPECT_EQ(ladder[i].number("qp_count"), 4);
    EXPECT_EQ(ladder[i].number("message_bytes"), i % 2 == 0 ? 65536 : 64);
  }
  EXPECT_EQ(masks_of(mask_ladder(at, Hop::kServerDecap, 500, 100)),
            (std::vector<double>{4, 4, 16, 16, 64, 64, 100, 100}));
  EXPECT_EQ(masks_of(mask_ladder({{"server_decap_masks", 0.0}}, Hop::kServerDecap, 3, 0)),
            (std::vector<double>{3}));
}

// Claim:  where a campaign has no masks at the hop, nothing is asked.
TEST(MaskLadder, IsNotThereWhereMasksCannotBeSet) {
  EXPECT_TRUE(mask_ladder({{"message_bytes", 65536.0}}, Hop::kServerDecap, 500, 0).empty());
}

}  // namespace
}  // namespace greynic::loop
