#include <gtest/gtest.h>

#include <string>

#include "program.h"

namespace greynic::integration {
namespace {

constexpr const char* kLimitedCampaign = R"({ "version": 1, "name": "limits",
  "factors": {
    "qp_count": { "type": "numeric", "levels": [1, 4, 16] },
    "message_bytes": { "type": "numeric", "levels": [64, 4096] },
    "inline_bytes": { "type": "numeric", "levels": [0, 64, 2000] } },
  "design": "pairwise",
  "baseline": { "qp_count": 1, "message_bytes": 4096, "inline_bytes": 0 },
  "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
  "measure": { "repeats": 1, "seconds": 0.01 } })";

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// The number after "kept" in the table that plan prints.
int kept_rows(const std::string& table) {
  const auto at = table.find("\nkept ");
  return at == std::string::npos ? -1 : std::atoi(table.c_str() + at + 6);
}

// Claim:  an extension does not ask again for levels that the run's own target lacks.
// Oracle: the twin's inline limit of 220 bytes, by which the run left 2000 out.
// Method: a full run on the twin, extended without a target and with another one's campaign.
TEST(Extend, LeavesOutWhatTheRunsTargetLacks) {
  const Folder folder;
  write(folder / "c.json", kLimitedCampaign);
  const auto ran = greynic(
      folder, "run " + (folder / "c.json") + " --target twin:cx6 -o " + (folder / "run.db"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto planned = greynic(folder, "plan --extend " + (folder / "run.db"));
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(kept_rows(planned.out), 1) << planned.out;  // the baseline; nothing is left to cover
  EXPECT_NE(planned.err.find("left out inline_bytes=2000"), std::string::npos) << planned.err;
}

// Claim:  runs that are given together count together.
// Oracle: a command that refuses one pair; what it was asked in the second run is not asked again.
// Method: a run and the run of its extension, on a command that refuses qp_count 16 with 64 bytes.
TEST(Extend, CountsSeveralRunsTogether) {
  const Folder folder;
  write(folder / "c.json", kLimitedCampaign);
  write(folder / "refuse.sh",
        "while read -r line; do id=${line#*:}; id=${id%%,*}\n"
        "case $line in *'\"message_bytes\":64'*'\"qp_count\":16'*)\n"
        "  echo \"{\\\"id\\\":$id,\\\"outcome\\\":\\\"refused\\\"}\";;\n"
        "*) echo \"{\\\"id\\\":$id,\\\"bandwidth_gbps\\\":9}\";; esac; done\n");
  const std::string target = " --target 'exec:sh " + (folder / "refuse.sh") + "' -o ";
  const auto first = greynic(folder, "run " + (folder / "c.json") + target + (folder / "a.db"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_NE(first.out.find("refused"), std::string::npos) << first.out;
  const auto more =
      greynic(folder, "plan --extend " + (folder / "a.db") + " -o " + (folder / "more.json"));
  ASSERT_EQ(more.exit_code, 0) << more.err;
  ASSERT_GT(kept_rows(more.out), 1) << more.out;
  EXPECT_NE(more.err.find("--target 'exec:sh"), std::string::npos) << more.err;
  const auto second = greynic(folder, "run " + (folder / "more.json") + target + (folder / "b.db"));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const auto alone = greynic(folder, "plan --extend " + (folder / "b.db"));
  const auto together =
      greynic(folder, "plan --extend " + (folder / "a.db") + " " + (folder / "b.db"));
  ASSERT_EQ(together.exit_code, 0) << together.err;
  EXPECT_LT(kept_rows(together.out), kept_rows(alone.out));
  EXPECT_LT(kept_rows(together.out), kept_rows(more.out));
}

}  // namespace
}  // namespace greynic::integration
