#include <gtest/gtest.h>

#include "program.h"

namespace greynic::integration {
namespace {

/// A run, a model and a layout that version 0.1 wrote, and what it said of them.
std::string kept_file(const std::string& name) {
  return kSource + "/tests/integration/written_by_0_1/" + name;
}

// Claim:  a run of an earlier version reads as it did, and can be explained.
// Oracle: the CSV that version 0.1 exported from it.
TEST(EarlierVersion, RunsReadAsTheyDid) {
  const Folder folder;
  const std::string run = folder / "run.db";
  ASSERT_EQ(std::system(("gunzip -c " + kept_file("run.db.gz") + " >" + run).c_str()), 0);
  const auto exported = greynic(folder, "export " + run + " --format csv");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(exported.out, text_of(kept_file("run.csv")));
  const auto explained = greynic(folder, "explain " + run);
  EXPECT_EQ(explained.exit_code, 1) << explained.err;
  EXPECT_NE(explained.out.find("client_encap_masks >= 40"), std::string::npos) << explained.out;
}

// Claim:  a model of an earlier version predicts what it did.
// Oracle: the prediction of version 0.1.
TEST(EarlierVersion, ModelsPredictWhatTheyDid) {
  const Folder folder;
  const auto predicted =
      greynic(folder, "predict " + kept_file("model.json") + " --at client_encap_masks=30 --json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(predicted.out, text_of(kept_file("prediction.json")));
}

// Claim:  a layout of an earlier version is still judged equivalent to its rules.
TEST(EarlierVersion, LayoutsAreStillProven) {
  const Folder folder;
  const auto judged =
      greynic(folder, "verify " + kept_file("rules.flows") + " " + kept_file("layout.json"));
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
}

}  // namespace
}  // namespace greynic::integration
