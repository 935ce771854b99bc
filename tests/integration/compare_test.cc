#include <gtest/gtest.h>

#include "program.h"

namespace greynic::integration {
namespace {

constexpr const char* kCampaign = R"({
  "version": 1, "name": "three",
  "factors": { "qp_count": { "type": "numeric", "levels": [1, 2, 4] } },
  "design": "full", "baseline": { "qp_count": 1 },
  "measure": { "repeats": 2, "seconds": 0.001 } })";

// Claim:  each exit code of `compare` is reached as its page says: 0 only when every configuration
//         of the base was judged, 3 with the reason when some are missing, 2 when nobody knows
//         which direction is better.
// Oracle: one run against itself, and against a run of two of its three configurations.
TEST(Compare, EndsWithTheExitCodeThatItsPageSays) {
  const Folder folder;
  std::ofstream(folder / "three.json") << kCampaign;
  const std::string run = "run " + (folder / "three.json") + " --target twin:cx6 --seed 3 -o ";
  const std::string all = folder / "all.db";
  const std::string two = folder / "two.db";
  ASSERT_EQ(greynic(folder, run + all).exit_code, 0);
  ASSERT_EQ(greynic(folder, run + two + " --set qp_count=1,2").exit_code, 0);

  EXPECT_EQ(greynic(folder, "compare " + all + " " + all).exit_code, 0);
  EXPECT_EQ(greynic(folder, "compare " + two + " " + all).exit_code, 0);

  const std::string xml = folder / "out.xml";
  const Outcome missing = greynic(folder, "compare " + all + " " + two + " --junit " + xml);
  EXPECT_EQ(missing.exit_code, 3) << missing.out;
  EXPECT_NE(missing.err.find("1 of 3 configurations of the base"), std::string::npos)
      << missing.err;
  EXPECT_NE(missing.err.find("--allow-missing"), std::string::npos) << missing.err;
  EXPECT_NE(text_of(xml).find("skipped=\"1\""), std::string::npos) << text_of(xml);
  EXPECT_EQ(greynic(folder, "compare " + all + " " + two + " --allow-missing").exit_code, 0);

  const std::string own = "compare " + all + " " + all + " --metric my_own_cost";
  const Outcome unknown = greynic(folder, own);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("--better"), std::string::npos) << unknown.err;
  EXPECT_EQ(greynic(folder, own + " --better sideways").exit_code, 2);
}

}  // namespace
}  // namespace greynic::integration
