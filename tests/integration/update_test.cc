/// `greynic optimize --update`: a layout that follows its rules.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "program.h"

namespace greynic::integration {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::ofstream file(path);
  for (const std::string& line : lines) file << line << '\n';
}

// Claim:  an edited rule file is taken step by step, and the layout that comes out is one of the new
//         rules.
// Oracle: the edit, and `greynic verify`, which knows nothing of steps.
// Method: of 400 lines one goes, two come back that were held back at first, and one moves; then the
//         same file again, where nothing is to do.
TEST(Update, FollowsAnEditedRuleFile) {
  const Folder folder;
  ASSERT_EQ(greynic(folder, "generate acl --filters 400 --seed 5 -o " + (folder / "all")).exit_code,
            0);
  std::vector<std::string> lines = lines_of(folder / "all");
  ASSERT_EQ(lines.size(), 400U);
  const std::vector<std::string> held = {lines[20], lines[300]};
  lines.erase(lines.begin() + 300);
  lines.erase(lines.begin() + 20);
  write_lines(folder / "old", lines);
  const Outcome laid_out =
      greynic(folder, "optimize " + (folder / "old") + " -o " + (folder / "old.json"));
  ASSERT_EQ(laid_out.exit_code, 0) << laid_out.err;
  lines.erase(lines.begin() + 100);
  lines.insert(lines.begin() + 50, held[0]);
  lines.push_back(held[1]);
  std::rotate(lines.begin() + 10, lines.begin() + 11, lines.begin() + 30);
  write_lines(folder / "new", lines);

  const std::string update = "optimize " + (folder / "new") + " --update " + (folder / "old.json") +
                             " --was " + (folder / "old") + " -o " + (folder / "new.json");
  const Outcome updated = greynic(folder, update + " --json");
  ASSERT_EQ(updated.exit_code, 0) << updated.err;
  const auto document = nlohmann::json::parse(updated.out);
  // Lines with ranges are several rules.
  EXPECT_GE(document["rules"]["came"].get<int>(), 3) << updated.out;
  EXPECT_GE(document["rules"]["gone"].get<int>(), 2) << updated.out;
  EXPECT_LE(document["rules"]["gone"].get<int>(), 200) << updated.out;
  EXPECT_GE(document["rules"]["stayed"].get<int>(), 400) << updated.out;
  EXPECT_LE(document["steps"]["full_layouts"].get<int>(), 1) << updated.out;
  const Outcome verified =
      greynic(folder, "verify " + (folder / "new") + " " + (folder / "new.json"));
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(greynic(folder, "verify " + (folder / "old") + " " + (folder / "new.json")).exit_code,
            1);

  const Outcome beside = greynic(folder, update + " --json --beside");
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_EQ(nlohmann::json::parse(beside.out)["rules"], document["rules"]);
  EXPECT_EQ(greynic(folder, "verify " + (folder / "new") + " " + (folder / "new.json")).exit_code,
            0);

  const Outcome again = greynic(folder, "optimize " + (folder / "new") + " --update " +
                                            (folder / "new.json") + " --was " + (folder / "new"));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("0 rules came, 0 went"), std::string::npos) << again.out;
}

// Claim:  an update for a device keeps to its limits, whatever the steps made of the layout.
// Oracle: apply, which refuses what the device cannot hold.
TEST(Update, KeepsToTheLimitsOfADevice) {
  const Folder folder;
  ASSERT_EQ(greynic(folder, "generate acl --filters 24 --seed 1 -o " + (folder / "all")).exit_code,
            0);
  std::vector<std::string> lines = lines_of(folder / "all");
  const std::string held = lines[8];
  lines.erase(lines.begin() + 8);
  write_lines(folder / "old", lines);
  const std::string device = " --for twin:e810";
  ASSERT_EQ(
      greynic(folder, "optimize " + (folder / "old") + device + " -o " + (folder / "old.json"))
          .exit_code,
      0);
  lines.erase(lines.begin() + 3);
  lines.insert(lines.begin() + 5, held);
  write_lines(folder / "new", lines);
  const Outcome updated = greynic(folder, "optimize " + (folder / "new") + device + " --update " +
                                              (folder / "old.json") + " --was " + (folder / "old") +
                                              " -o " + (folder / "new.json"));
  ASSERT_EQ(updated.exit_code, 0) << updated.err;
  const Outcome fits =
      greynic(folder, "apply " + (folder / "new.json") + " --target twin:e810 --dry-run");
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_EQ(greynic(folder, "verify " + (folder / "new") + " " + (folder / "new.json")).exit_code,
            0);
}

// Claim:  a layout that is not one of the old rules is refused with a packet, and nothing is written;
//         so is half of the options.
TEST(Update, RefusesALayoutOfOtherRules) {
  const Folder folder;
  for (const char* seed : {"1", "2"}) {
    ASSERT_EQ(greynic(folder, std::string("generate acl --filters 50 --seed ") + seed + " -o " +
                                  (folder / seed))
                  .exit_code,
              0);
  }
  ASSERT_EQ(greynic(folder, "optimize " + (folder / "1") + " -o " + (folder / "1.json")).exit_code,
            0);
  const Outcome other =
      greynic(folder, "optimize " + (folder / "1") + " --update " + (folder / "1.json") +
                          " --was " + (folder / "2") + " -o " + (folder / "new.json"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("for the packet"), std::string::npos) << other.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "new.json"));
  EXPECT_EQ(
      greynic(folder, "optimize " + (folder / "1") + " --update " + (folder / "1.json")).exit_code,
      2);
  const Outcome both =
      greynic(folder, "optimize " + (folder / "1") + " --update " + (folder / "1.json") +
                          " --was " + (folder / "1") + " --explain");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("--explain"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace greynic::integration
