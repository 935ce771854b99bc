/// What a command writes arrives, or the command says that it did not; and nothing else is written.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "program.h"

namespace greynic::integration {
namespace {

namespace fs = std::filesystem;

/// A small run, a model fitted to it, a rule file and its layout.
class Output : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new Folder;
    const std::string measure = "run " + kSource +
                                "/configs/campaigns/mask_wall.json --target twin:cx6 --set "
                                "server_decap_masks=0,10,20,40 --set message_bytes=16384,65536 ";
    ASSERT_EQ(greynic(*made_, measure + "--seed 3 -o " + (*made_ / "run.db")).exit_code, 0);
    ASSERT_EQ(
        greynic(*made_, "fit " + (*made_ / "run.db") + " -o " + (*made_ / "model.json")).exit_code,
        0);
    std::ofstream(*made_ / "acl.rules")
        << "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\t\n";
    ASSERT_EQ(
        greynic(*made_, "optimize " + (*made_ / "acl.rules") + " -o " + (*made_ / "layout.json"))
            .exit_code,
        0);
    std::ofstream(*made_ / "model.pict") << "A: 1, 2\nB: x, y\nC: p, q\n";
    // A region that its writer left, and a store of what it holds.
    ASSERT_EQ(greynic(*made_, "run mask_wall --target 'twin:cx6?counters=" + (*made_ / "region") +
                                  "' --set server_decap_masks=0,40 --set message_bytes=65536 -o " +
                                  (*made_ / "watched.db"))
                  .exit_code,
              0);
    std::ofstream(*made_ / "hosts.json")
        << R"({"version":1,"hosts":[{"name":"a","region":")" << (*made_ / "region")
        << R"("},{"name":"b","region":"/nowhere"}]})";
    ASSERT_EQ(greynic(*made_, "zero collect " + (*made_ / "hosts.json") + " --for 200ms --store " +
                                  (*made_ / "store"))
                  .exit_code,
              0);
  }
  static void TearDownTestSuite() { delete made_; }
  /// Of what SetUpTestSuite made.
  static std::string made(const std::string& name) { return *made_ / name; }

  Folder folder_;

 private:
  static Folder* made_;
};
Folder* Output::made_ = nullptr;

/// Every command that prints something, with arguments that make it print.
std::vector<std::string> printing_commands(const Folder& made) {
  const std::string run = made / "run.db";
  const std::string campaign = kSource + "/configs/campaigns/mask_wall.json";
  const std::string capture = kSource + "/configs/examples/incast.pcap";
  const std::string store = made / "store";
  return {"--help",
          "--version",
          "help plan",
          "help --format bash",
          "devices",
          "devices twin:cx6 --json",
          "plan " + campaign,
          "plan " + campaign + " --json",
          "run " + campaign + " --target twin:cx6 --dry-run --json",
          "cover " + (made / "model.pict"),
          "cover " + (made / "model.pict") + " --json",
          "explain " + run,
          "explain " + run + " --json",
          "fit " + run + " --json",
          "predict " + (made / "model.json") + " --at server_decap_masks=10",
          "predict " + (made / "model.json") + " --grid server_decap_masks=0:20:5",
          "compare " + run + " " + run + " --all",
          "compare " + run + " " + run + " --json",
          "export " + run + " --format csv",
          "export " + run + " --format jsonl",
          "export " + run + " --format markdown",
          "export " + run + " -o /dev/stdout",
          "optimize " + (made / "acl.rules"),
          "optimize " + (made / "acl.rules") + " --json",
          "verify " + (made / "acl.rules") + " " + (made / "layout.json"),
          "apply " + (made / "layout.json") + " --target twin:cx6 --dry-run",
          "watch " + (made / "region") + " --count 1",
          "bursts --pcap " + capture,
          "bursts --pcap " + capture + " --json",
          "bursts --pcap " + capture + " --marks /dev/stdout",
          "bursts --target twin:cx6 --workload burst_incast.json",
          "zero show " + store,
          "zero show " + store + " --json",
          "zero show " + store + " --samples",
          "zero show " + store + " --step 10s"};
}

/// `form` is a shell command in which PROGRAM stands for greynic; its exit code is taken.
int shell(const std::string& form, const std::string& arguments, const std::string& errors) {
  std::string command = form;
  const std::string program = std::string(GREYNIC_BINARY) + " " + arguments + " 2>" + errors;
  command.replace(command.find("PROGRAM"), 7, program);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Claim:  a command whose output is lost never ends well: a full disk, a stream that was closed and
//         a reader that went are told, with exit code 3.
TEST_F(Output, IsNotLostInSilence) {
  const Folder made;
  fs::copy(fs::path(Output::made("run.db")).parent_path(), made.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const std::string errors = folder_ / "errors";
  for (const std::string& arguments : printing_commands(made)) {
    const Outcome well = greynic(folder_, arguments);
    ASSERT_LE(well.exit_code, 1) << arguments << "\n" << well.err;
    ASSERT_FALSE(well.out.empty()) << arguments;
    for (const std::string form : {"PROGRAM >/dev/full", "PROGRAM >&-"}) {
      EXPECT_EQ(shell(form, arguments, errors), 3) << form << " " << arguments;
      EXPECT_NE(text_of(errors).find("cannot be written"), std::string::npos)
          << form << " " << arguments << "\n"
          << text_of(errors);
    }
  }
}

// Claim:  under a service manager, which ignores SIGPIPE, a reader that went is told as well.
// Method: the reader closes its end before the command begins.
TEST_F(Output, IsMissedByWhoIgnoresSigpipe) {
  const std::string form = "(trap '' PIPE; sleep 0.5; PROGRAM; echo $? >" + (folder_ / "code") +
                           ") | (exec <&-; sleep 0)";
  shell(form, "export " + made("run.db") + " --format csv", folder_ / "errors");
  EXPECT_EQ(text_of(folder_ / "code"), "3\n") << text_of(folder_ / "errors");
}

TEST_F(Output, OnStderrIsNoReasonToFail) {
  EXPECT_EQ(shell("PROGRAM >/dev/null", "plan mask_wall", "/dev/full"), 0);
  EXPECT_EQ(shell("PROGRAM >/dev/null", "plan mask_wall", "&-"), 0);
}

// Claim:  with all three streams closed no file of a command takes their place.
// Oracle: the run is the one that is measured with the streams open.
TEST_F(Output, NeverGoesIntoAFileThatTookItsPlace) {
  const std::string arguments =
      "run mask_wall --target twin:cx6 --set server_decap_masks=0,40 --set message_bytes=65536 -o ";
  (void)shell("PROGRAM <&- >&-", arguments + (folder_ / "closed.db"), "&-");
  ASSERT_EQ(greynic(folder_, arguments + (folder_ / "open.db")).exit_code, 0);
  const Outcome closed = greynic(folder_, "export " + (folder_ / "closed.db") + " --format csv");
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(closed.out),
            lines(greynic(folder_, "export " + (folder_ / "open.db") + " --format csv").out));
}

// Claim:  -o writes through what is no file, follows links, and never replaces what is read, nor
//         one output by another.
TEST_F(Output, LeavesWhatItIsNotAskedToReplace) {
  const std::string run = folder_ / "run.db";
  fs::copy_file(made("run.db"), run);
  const std::string before = text_of(run);
  fs::create_symlink("run.db", folder_ / "link.db");
  for (const std::string arguments :
       {"export run.db -o run.db", "export run.db -o link.db", "export link.db -o ./run.db",
        "report run.db -o run.db", "compare run.db run.db --junit run.db", "fit run.db -o link.db",
        "bursts --pcap run.db -o link.db", "bursts --pcap run.db --marks run.db",
        "bursts --pcap run.db --perfetto ./run.db", "plan --extend run.db -o link.db",
        "optimize run.db -o link.db",
        "optimize --connections run.db --model published:cx6 -o link.db",
        "optimize --connections x.json --model run.db -o run.db",
        "optimize x --update x.json --was run.db -o run.db",
        "run run.db --target twin:cx6 -o link.db"}) {
    const std::string errors = folder_ / "errors";
    EXPECT_EQ(shell("cd " + folder_.path() + " && PROGRAM", arguments, errors), 2) << arguments;
    EXPECT_NE(text_of(errors).find("is what this command reads"), std::string::npos)
        << text_of(errors);
    EXPECT_EQ(text_of(run), before) << arguments;
  }
  for (const std::string arguments : {"--marks same -o same", "--marks same --perfetto ./same"}) {
    const std::string errors = folder_ / "errors";
    EXPECT_EQ(shell("cd " + folder_.path() + " && PROGRAM",
                    "bursts --pcap incast.pcap " + arguments, errors),
              2)
        << arguments;
    EXPECT_NE(text_of(errors).find("name two files"), std::string::npos) << text_of(errors);
    EXPECT_FALSE(fs::exists(folder_ / "same")) << arguments;
  }
  const std::string null = folder_ / "null";
  if (mknod(null.c_str(), S_IFCHR | 0666, 0x103) != 0 || !std::ofstream(null)) {
    GTEST_SKIP() << "needs root and a file system with devices, for mknod";
  }
  for (const std::string& arguments : std::vector<std::string>{
           "export " + run + " -o ", "report " + run + " -o ", "plan mask_wall -o ",
           "fit " + run + " -o ", "bursts --pcap incast.pcap -o ",
           "bursts --pcap incast.pcap --marks ", "bursts --pcap incast.pcap --perfetto ",
           "optimize " + made("acl.rules") + " -o ",
           "optimize " + made("acl.rules") + " --update " + made("layout.json") + " --was " +
               made("acl.rules") + " -o ",
           "optimize --connections " + kSource +
               "/configs/examples/connections.json --model published:cx6 -o ",
           "plan --extend " + run + " -o ", "compare " + run + " " + run + " --junit "}) {
    EXPECT_EQ(greynic(folder_, arguments + null).exit_code, 0) << arguments;
    EXPECT_TRUE(fs::is_character_file(null)) << arguments;
  }
  for (const std::string& arguments : std::vector<std::string>{
           "run mask_wall --target twin:cx6 -o ", "import perftest " + made("acl.rules") + " -o ",
           "explain mask_wall --target twin:cx6 --log "}) {
    EXPECT_EQ(greynic(folder_, arguments + null).exit_code, 2) << arguments;
    EXPECT_TRUE(fs::is_character_file(null)) << arguments;
  }
}

// Claim:  nor is what is read because something else names it: the files of a target, the topology of
//         a campaign, the regions of a list of hosts.
TEST_F(Output, LeavesWhatIsReadByTheWay) {
  for (const char* shipped : {"rnics/cx6.json", "switches/ovs.json", "fleets/cloud.json",
                              "topologies/two_hosts.json", "campaigns/mask_wall.json"}) {
    fs::copy(kSource + "/configs/" + shipped, folder_.path());
  }
  std::string campaign = text_of(folder_ / "mask_wall.json");
  campaign.insert(campaign.rfind('}'), ",\"topology\":\"two_hosts.json\"");
  std::ofstream(folder_ / "campaign.json") << campaign;
  fs::copy_file(made("region"), folder_ / "region");
  std::ofstream(folder_ / "hosts.json")
      << R"({"version":1,"hosts":[{"name":"a","region":")" << (folder_ / "region") << "\"}]}";
  for (const auto& [arguments, file] : std::vector<std::pair<std::string, std::string>>{
           {"plan campaign.json -o ", "two_hosts.json"},
           {"plan mask_wall --target twin:cx6.json -o ", "cx6.json"},
           {"plan mask_wall --target 'twin:cx6?switch=ovs.json' -o ", "ovs.json"},
           {"plan mask_wall --target 'twin:cx6?switch=ovs&fleet=cloud.json' -o ", "cloud.json"},
           {"bursts --target twin:cx6.json --workload burst_incast.json -o ", "cx6.json"},
           {"optimize " + made("acl.rules") + " --for twin:cx6.json -o ", "cx6.json"},
           {"zero collect hosts.json --for 10ms --json-lines ", "region"}}) {
    const std::string errors = folder_ / "errors";
    const std::string before = text_of(folder_ / file);
    EXPECT_EQ(shell("cd " + folder_.path() + " && PROGRAM", arguments + file, errors), 2)
        << arguments;
    EXPECT_NE(text_of(errors).find("is what this command reads"), std::string::npos)
        << arguments << "\n"
        << text_of(errors);
    EXPECT_EQ(text_of(folder_ / file), before) << arguments;
  }
}

// Claim:  a file that may not grow is told like a full disk, and what was there stays.
TEST_F(Output, ThatMayNotGrowIsTold) {
  const std::string errors = folder_ / "errors", big = folder_ / "big";
  std::ofstream(big) << "old\n";
  const std::string run = made("run.db");
  for (const std::string& arguments :
       {"export " + run + " --format jsonl -o " + big, "report " + run + " -o " + big,
        "plan mask_wall -o " + big, "export " + run + " --format jsonl >" + (folder_ / "out"),
        "run mask_wall --target twin:cx6 -o " + (folder_ / "big.db")}) {
    EXPECT_EQ(shell("ulimit -f 8; PROGRAM", arguments, errors), 3) << arguments;
    EXPECT_NE(text_of(errors).find("greynic: "), std::string::npos) << text_of(errors);
    EXPECT_EQ(text_of(big), "old\n") << arguments;
  }
}

// Claim:  a full disk is told with exit code 3, and what was there stays.
// Method: a file system of 256 KiB.
TEST_F(Output, OnAFullDiskLeavesWhatWasThere) {
  const std::string disk = folder_ / "disk";
  fs::create_directory(disk);
  if (std::system(("mount -t tmpfs -o size=256k none " + disk + " 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  std::ofstream(disk + "/out.csv") << "old\n";
  std::ofstream(disk + "/filler") << std::string(250 << 10, 'x');
  for (const std::string& arguments : std::vector<std::string>{
           "export " + made("run.db") + " --format jsonl -o " + disk + "/out.csv",
           "plan mask_wall -o " + disk + "/out.csv"}) {
    const Outcome full = greynic(folder_, arguments);
    EXPECT_EQ(full.exit_code, 3) << arguments << "\n" << full.err;
    EXPECT_EQ(text_of(disk + "/out.csv"), "old\n") << arguments;
    EXPECT_EQ(std::distance(fs::directory_iterator(disk), {}), 2) << arguments;
  }
  std::system(("umount " + disk).c_str());
}

}  // namespace
}  // namespace greynic::integration
