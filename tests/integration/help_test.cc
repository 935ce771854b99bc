#include <gtest/gtest.h>

#include "program.h"

namespace greynic::integration {
namespace {

// Claim:  a word that is nearly a command or an option is answered with the one that was meant.
TEST(CommandLine, SuggestsWhatWasProbablyMeant) {
  const Folder folder;
  const auto error_of = [&](const std::string& arguments) {
    const Outcome ran = greynic(folder, arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    return ran.err;
  };
  EXPECT_NE(error_of("pln").find("did you mean 'plan'?"), std::string::npos);
  EXPECT_NE(error_of("exlpain run.db").find("did you mean 'explain'?"), std::string::npos);
  EXPECT_NE(error_of("run c.json --targt twin:cx6").find("did you mean '--target'?"),
            std::string::npos);
  EXPECT_NE(error_of("help pln").find("did you mean 'plan'?"), std::string::npos);
  EXPECT_EQ(error_of("frobnicate").find("did you mean"), std::string::npos);
  EXPECT_NE(error_of("run c.json").find("--target is required"), std::string::npos);
  EXPECT_NE(error_of("").find("Usage: greynic"), std::string::npos);
  // What follows -- is another program's, and never what is wrong.
  EXPECT_NE(error_of("lab-run --session a --host 65001 -- true").find("65001 not in range"),
            std::string::npos);
}

// Claim:  `greynic help COMMAND` is `greynic COMMAND --help`, also for a command below another.
TEST(Help, IsTheSameAsTheOption) {
  const Folder folder;
  for (const std::string command : {"plan", "import perftest", "help"}) {
    const Outcome help = greynic(folder, "help " + command);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.out, greynic(folder, command + " --help").out);
    EXPECT_NE(help.out.find("Usage: greynic " + command + " "), std::string::npos) << help.out;
  }
  EXPECT_EQ(greynic(folder, "help").out, greynic(folder, "--help").out);
}

// Claim:  man pages and completion come from the description of the commands: they know its
//         options.
// Oracle: bash itself, asked to complete.
TEST(Help, MakesManPagesAndCompletion) {
  const Folder folder;
  const std::string page = greynic(folder, "help plan --format man").out;
  EXPECT_TRUE(page.starts_with(".TH greynic\\-plan 1\n")) << page;
  EXPECT_NE(page.find("\\fB\\-o, \\-\\-out\\fR"), std::string::npos) << page;
  EXPECT_NE(page.find(".SH EXAMPLES"), std::string::npos) << page;

  const Outcome script = greynic(folder, "help --format bash");
  ASSERT_EQ(script.exit_code, 0);
  std::filesystem::copy_file(folder / "out.txt", folder / "greynic.bash");
  const auto completed = [&](const std::string& words) {
    std::ofstream(folder / "ask.sh")
        << "cd " << folder.path() << "\nsource greynic.bash\nCOMP_WORDS=(" << words
        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
           "_greynic\nprintf '%s ' \"${COMPREPLY[@]}\" > answer\n";
    EXPECT_EQ(std::system(("bash " + (folder / "ask.sh")).c_str()), 0);
    return text_of(folder / "answer");
  };
  EXPECT_EQ(completed("greynic pl"), "plan ");
  EXPECT_EQ(completed("greynic run --dry"), "--dry-run ");
  EXPECT_EQ(completed("greynic import perftest --json-u"), "--json-unit ");
  EXPECT_EQ(completed("greynic run greynic.b"), "greynic.bash ");
}

// Claim:  campaigns, topologies, rules and examples that come with greynic are found from any
//         folder, by name or by their path in the source tree; a file of the folder goes first.
TEST(ShippedFiles, AreFoundFromAnyFolder) {
  const Folder folder;
  const auto plan = [&](const std::string& campaign) {
    std::filesystem::current_path(folder.path());
    return greynic(folder, "plan " + campaign);
  };
  EXPECT_EQ(plan("qp_wall").exit_code, 0);
  EXPECT_EQ(plan("configs/campaigns/qp_wall.json").exit_code, 0);
  EXPECT_EQ(plan("vxlan_contexts").exit_code, 0);  // has a topology
  EXPECT_NE(plan("no_such_campaign").err.find("no_such_campaign"), std::string::npos);
  std::ofstream(folder / "qp_wall") << "mine";
  EXPECT_EQ(plan("qp_wall").exit_code, 2);
  EXPECT_EQ(greynic(folder, "cover model.pict").exit_code, 0);
}

}  // namespace
}  // namespace greynic::integration
