#include <gtest/gtest.h>

#include "program.h"

namespace greynic::integration {
namespace {

// Claim:  a run that could measure nothing says why and ends with 3; the reasons are stored, and
//         the same command again has nothing to do. With one configuration measured it ends with 0.
// Oracle: ConnectX-5 of the twin, which has no atomics.
TEST(Run, EndsWithAnErrorWhenNothingCouldBeMeasured) {
  const Folder folder;
  const auto campaign = [&](const std::string& operations) {
    const std::string path = folder / "campaign.json";
    std::ofstream(path) << R"({"version": 1, "name": "atomics", "design": "full",
      "factors": {"operation": {"type": "categorical", "levels": [)"
                        << operations << R"(]},
                  "qp_count": {"type": "numeric", "levels": [1, 2]},
                  "message_bytes": {"type": "numeric", "levels": [8]}},
      "baseline": {"operation": "FADD", "qp_count": 1, "message_bytes": 8},
      "wall": {"metric": "bandwidth_gbps", "below_baseline_by": 0.2},
      "measure": {"repeats": 2, "seconds": 0.001}})";
    return "run " + path + " --target twin:cx5 -o " + folder.path() + "/run.db";
  };
  const Outcome none = greynic(folder, campaign("\"FADD\""));
  EXPECT_EQ(none.exit_code, 3) << none.err;
  EXPECT_NE(none.out.find("operation=FADD is not modelled"), std::string::npos) << none.out;
  EXPECT_NE(none.err.find("nothing could be measured"), std::string::npos) << none.err;
  const Outcome again = greynic(folder, campaign("\"FADD\""));
  EXPECT_EQ(again.exit_code, 0) << again.err;

  std::filesystem::remove(folder / "run.db");
  const Outcome some = greynic(folder, campaign("\"FADD\", \"WRITE\""));
  EXPECT_EQ(some.exit_code, 0) << some.err;
}

// Claim:  a campaign's name is no path: what it makes goes into a folder of results, whatever it is called.
TEST(Run, GoesIntoNoOtherFolderThanOneOfResults) {
  const Folder folder;
  for (const std::string name : {"../../up", "/etc/x", "a\\u0000b", "a/../../../b"}) {
    std::ofstream(folder / "campaign.json")
        << R"({"version": 1, "design": "full", "factors": {"qp_count": {"type": "numeric", "levels": [1, 2]}},
               "name": ")"
        << name << "\"}";
    const Outcome planned =
        greynic(folder, "run " + (folder / "campaign.json") + " --target twin:cx6 --dry-run");
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    const std::size_t at = planned.out.find("results/");
    ASSERT_NE(at, std::string::npos) << planned.out;
    const std::string file = planned.out.substr(at, planned.out.find('\n', at) - at);
    EXPECT_EQ(std::count(file.begin(), file.end(), '/'), 2) << file;
    EXPECT_TRUE(file.ends_with("/run.db")) << file;
    EXPECT_EQ(file.find('\\'), std::string::npos) << file;
  }
}

}  // namespace
}  // namespace greynic::integration
