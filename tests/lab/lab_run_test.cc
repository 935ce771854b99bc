#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"

namespace greynic::integration {
namespace {

bool there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

#define SKIP_WITHOUT(program, package) \
  if (!there(program)) GTEST_SKIP() << "needs " program ": apt install " package

std::string session(const std::string& name) {
  return "lab-run --session " + name + std::to_string(getpid()) + " --host 0 -- ";
}

// Claim:  a verbs program that knows nothing of greynic finds bytes, statuses and errors as the
//         specification has them.
// Method: lab_program.cc checks itself.
TEST(LabRun, RunsAVerbsProgram) {
  const Folder folder;
  const Outcome run = greynic(folder, session("program") + LAB_PROGRAM);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("SeesThatItsPeerDied"), std::string::npos) << run.out;
}

TEST(LabRun, ShowsTheDevice) {
  SKIP_WITHOUT("ibv_devinfo", "ibverbs-utils");
  const Folder folder;
  const Outcome run = greynic(folder, session("devices") + "ibv_devinfo -v");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"twin0", "ConnectX-6", "PORT_ACTIVE", "::ffff:127."}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << text << "\n" << run.out;
  }
}

TEST(LabRun, RunsPingpongs) {
  SKIP_WITHOUT("ibv_rc_pingpong", "ibverbs-utils");
  const Folder folder;
  for (const char* kind : {"rc", "uc", "ud", "srq", "xsrq"}) {
    const std::string command = std::string("ibv_") + kind + "_pingpong";
    const Outcome run = greynic(folder, "lab-run twin:cx6 --pair -- " + command);
    EXPECT_EQ(run.exit_code, 0) << command << "\n" << run.out << run.err;
  }
}

// Claim:  libfabric and UCX find the device, and their own tests run over it.
TEST(LabRun, RunsLibfabric) {
  SKIP_WITHOUT("fi_pingpong", "libfabric-bin");
  const Folder folder;
  for (const char* words : {"-e msg", "-e rdm"}) {
    const Outcome run =
        greynic(folder, std::string("lab-run --pair -- fi_pingpong -p verbs -I 50 ") + words);
    EXPECT_EQ(run.exit_code, 0) << words << "\n" << run.out << run.err;
  }
}

TEST(LabRun, RunsUcx) {
  SKIP_WITHOUT("ucx_perftest", "ucx-utils");
  const Folder folder;
  setenv("UCX_NET_DEVICES", "twin0:1", 1);
  setenv("UCX_TLS", "rc_verbs,ud_verbs", 1);
  for (const char* test : {"tag_lat", "tag_bw", "ucp_put_bw", "ucp_get", "ucp_fadd"}) {
    const Outcome run =
        greynic(folder, std::string("lab-run --pair -- ucx_perftest -n 100 -w 10 -t ") + test);
    EXPECT_EQ(run.exit_code, 0) << test << "\n" << run.out << run.err;
    EXPECT_NE(run.out.find("Final:"), std::string::npos) << test << "\n" << run.out;
  }
  unsetenv("UCX_NET_DEVICES");
  unsetenv("UCX_TLS");
}

// Claim:  perftest's programs end by themselves, with all their results, on every transport.
TEST(LabRun, RunsPerftest) {
  SKIP_WITHOUT("ib_write_bw", "perftest");
  const Folder folder;
  for (const char* words :
       {"ib_write_bw -n 200 -q 128 -s 4096", "ib_write_bw -b -n 200 -c UC", "ib_read_bw -n 200",
        "ib_send_bw -n 200 -c UD -q 2", "ib_send_bw -R -n 200 --use-srq", "ib_atomic_bw -n 200",
        "ib_write_lat -n 200", "ib_read_lat -n 200", "ib_send_lat -s 1048576 -n 5",
        "ib_send_lat -s 4194304 -n 5 -e", "ib_send_lat -e -n 100",
        "ib_send_bw -n 160 -s 2 -q 32 -b -t 16 -e", "ib_send_bw -n 160 -s 2 -q 32 -b -t 16 -e -R",
        "ib_atomic_lat -n 200"}) {
    const Outcome run = greynic(folder, std::string("lab-run twin:cx6 --pair -- ") + words);
    EXPECT_EQ(run.exit_code, 0) << words << "\n" << run.out << run.err;
    EXPECT_NE(run.out.find("#bytes"), std::string::npos) << words << "\n" << run.out;
  }
}

TEST(LabRun, RunsTheConnectionManagersPrograms) {
  SKIP_WITHOUT("rping", "rdmacm-utils");
  const Folder folder;
  const Outcome ping = greynic(folder, "lab-run twin:cx6 --pair -- rping -v -C 10");
  EXPECT_EQ(ping.exit_code, 0) << ping.out << ping.err;
  EXPECT_NE(ping.out.find("rdma-ping-9"), std::string::npos) << ping.out;
  for (const char* program : {"ucmatose", "udaddy"}) {
    const Outcome run = greynic(folder, std::string("lab-run twin:cx6 --pair -- ") + program);
    EXPECT_EQ(run.exit_code, 0) << program << run.out << run.err;
  }
}

// Claim:  pyverbs' own tests pass but for those that docs/lab_run.md names.
TEST(LabRun, PassesPyverbsTests) {
  const std::string tests = "/usr/share/doc/rdma-core/tests";
  const Folder folder;
  if (std::system("/usr/bin/python3 -c 'import pyverbs' 2>/dev/null") != 0 ||
      access(tests.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "needs pyverbs and its tests: apt install python3-pyverbs rdma-core";
  }
  const std::string copy = "cp -r " + tests + " " + folder.path() + " && gunzip -f " +
                           folder.path() + "/tests/*.gz && rm -f " + folder.path() +
                           "/tests/test_mlx5* " + folder.path() + "/tests/test_efa*";
  ASSERT_EQ(std::system(copy.c_str()), 0);
  const Outcome run = greynic(folder, session("pyverbs") + "/usr/bin/python3 " + folder.path() +
                                          "/tests/run_tests.py --dev twin0 -v");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("OK (skipped="), std::string::npos) << run.err;
  const std::string page = text_of(GREYNIC_SOURCE_DIR "/docs/lab_run.md");
  std::istringstream lines(run.err);
  std::string module;
  int passed = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("(tests.test_");
    if (at != std::string::npos) module = line.substr(at + 7, line.find('.', at + 8) - at - 7);
    passed += line.ends_with("ok") ? 1 : 0;
    if (line.find(" skipped ") == std::string::npos && !line.starts_with("skipped ")) continue;
    EXPECT_NE(page.find("`" + module + "`"), std::string::npos) << "the page lacks " << line;
  }
  EXPECT_GE(passed, 100) << run.err;
}

// Claim:  the exit code is the command's, and a server that fails is shown.
TEST(LabRun, GivesTheCommandsExitCode) {
  const Folder folder;
  EXPECT_EQ(greynic(folder, session("code") + "sh -c 'exit 7'").exit_code, 7);
  EXPECT_EQ(greynic(folder, session("code") + "sh -c 'kill -9 $$'").exit_code, 137);
  EXPECT_EQ(greynic(folder, session("code") + "sh -c 'kill -XFSZ $$'").exit_code, 128 + SIGXFSZ);
  const Outcome pair = greynic(folder, "lab-run --pair -- sh -c 'echo no; exit 5'");
  EXPECT_EQ(pair.exit_code, 5);
  EXPECT_NE(pair.err.find("no\n"), std::string::npos) << pair.err;
}

// Claim:  what a library cannot be loaded into is refused with the reason, not run without it.
TEST(LabRun, RefusesProgramsItCannotReach) {
  const Folder folder;
  EXPECT_EQ(greynic(folder, session("no") + "no_such_program").exit_code, 3);
  std::ofstream(folder / "static.c") << "int main(void) { return 0; }\n";
  if (there("gcc") && std::system(("gcc -static -o " + (folder / "static") + " " +
                                   (folder / "static.c") + " 2>/dev/null")
                                      .c_str()) == 0) {
    const Outcome run = greynic(folder, session("no") + (folder / "static"));
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_NE(run.err.find("statically"), std::string::npos) << run.err;
  }
  if (geteuid() != 0) GTEST_SKIP() << "the set-uid case needs root";
  ASSERT_EQ(std::system(("cp /bin/true " + (folder / "raised")).c_str()), 0);
  ASSERT_EQ(chown((folder / "raised").c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod((folder / "raised").c_str(), 04755), 0);
  const Outcome run = greynic(folder, session("no") + (folder / "raised"));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("set-uid"), std::string::npos) << run.err;
}

TEST(LabRun, AsksForWhatItNeeds) {
  const Folder folder;
  EXPECT_EQ(greynic(folder, "lab-run --pair").exit_code, 2);
  EXPECT_EQ(greynic(folder, "lab-run -- true").exit_code, 2);
  EXPECT_EQ(greynic(folder, "lab-run twin:nonesuch --pair -- true").exit_code, 2);
}

}  // namespace
}  // namespace greynic::integration
