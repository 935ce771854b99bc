/// `greynic optimize --hardware` and `--merge-masks`, from the command line.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace greynic::integration {
namespace {

// Claim:  a split layout keeps to its entries, is judged by verify as any other, says what it costs, and
//         is refused by apply; bad numbers are refused with a message.
// Oracle: the layout file itself, and `greynic verify`.
TEST(SplitHardware, IsWrittenProvenAndExplained) {
  const Folder folder;
  const std::string split =
      "optimize made:acl:500:9 --traffic zipf:1.1 --hardware 5% --idle 10s -o " +
      (folder / "layout.json");
  const Outcome made = greynic(folder, split + " --json");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto document = nlohmann::json::parse(made.out);
  const auto& hardware = document.at("hardware");
  EXPECT_LE(document.at("after").at("rules").get<int>(), hardware.at("entries").get<int>());
  EXPECT_GT(hardware.at("hyper_entries").get<int>(), 0) << made.out;
  EXPECT_LT(hardware.at("cost_mean").get<double>(), 100.0);
  EXPECT_GE(hardware.at("cost_mean_new_flows").get<double>(),
            hardware.at("cost_mean").get<double>());
  const Outcome judged = greynic(folder, "verify made:acl:500:9 " + (folder / "layout.json"));
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
  const Outcome applied =
      greynic(folder, "apply " + (folder / "layout.json") + " --target twin:cx6");
  EXPECT_NE(applied.exit_code, 0);
  EXPECT_NE(applied.err.find("slow path"), std::string::npos) << applied.err;
  const Outcome commands =
      greynic(folder, "optimize made:acl:500:9 --traffic zipf:1.1 --hardware 30 --as ovs");
  EXPECT_EQ(commands.exit_code, 0) << commands.err;
  EXPECT_NE(commands.out.find("table=1,"), std::string::npos);
  for (const char* number : {"0", "-3", "1.5", "101%", "many", "1"}) {
    const Outcome refused =
        greynic(folder, std::string("optimize made:acl:100:9 --hardware ") + number);
    EXPECT_EQ(refused.exit_code, 2) << number << refused.out;
    EXPECT_FALSE(refused.err.empty()) << number;
  }
}

// Claim:  merged masks come with their curve, whose lower bounds hold, and verify judges the layout.
// Oracle: the JSON, and `greynic verify`.
TEST(MergeMasks, DrawsTheCurveAndProvesTheLayout) {
  const Folder folder;
  const Outcome made =
      greynic(folder, "optimize made:acl:500:9 --merge-masks --growth 2 --json -o " +
                          (folder / "layout.json"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto curve = nlohmann::json::parse(made.out).at("mask_curve");
  for (const auto& point : curve.at("points")) {
    EXPECT_LE(point.at("masks_at_least").get<int>(), point.at("masks").get<int>());
  }
  const auto& taken = curve.at("points").at(curve.at("taken").get<std::size_t>());
  EXPECT_LT(taken.at("masks").get<int>(), curve.at("masks").get<int>());
  const Outcome judged = greynic(folder, "verify made:acl:500:9 " + (folder / "layout.json"));
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
}

}  // namespace
}  // namespace greynic::integration
