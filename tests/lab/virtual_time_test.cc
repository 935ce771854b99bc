#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"

/// perftest in virtual time, held against what `greynic run` measures on the same twin.

namespace greynic::integration {
namespace {

/// The columns of perftest's one line of results; empty when there is none.
std::vector<double> results_of(const std::string& text) {
  std::istringstream lines(text);
  bool next = false;
  for (std::string line; std::getline(lines, line);) {
    if (next) {
      std::istringstream words(line);
      std::vector<double> columns;
      for (double value = 0; words >> value;) columns.push_back(value);
      return columns;
    }
    next = line.find("#bytes") != std::string::npos;
  }
  return {};
}

std::vector<double> perftest(const std::string& words, const std::string& options = "") {
  const Folder folder;
  const Outcome run =
      greynic(folder, "lab-run twin:cx6 --virtual-time " + options + " --pair -- " + words);
  EXPECT_EQ(run.exit_code, 0) << words << "\n" << run.out << run.err;
  return results_of(run.out);
}

/// Here, too, a child tries: what lab-run says of it is tested below.
bool counter_traps() {
#if defined(__x86_64__)
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, [](int) { _exit(7); });
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    (void)__builtin_ia32_rdtsc();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
#else
  return false;
#endif
}

/// Why nothing can be shown here, with the remedy; empty when it can.
std::string in_the_way() {
  if (std::system("command -v ib_write_bw >/dev/null") != 0) {
    return "needs perftest: apt install perftest";
  }
  return counter_traps() ? ""
                         : "programs read this machine's time-stamp counter whatever prctl says: "
                           "run it on another";
}

/// What the twin measures with perftest's MTU on this device.
nlohmann::json measured(const std::string& operation, int bytes, int depth = 128) {
  const Folder folder;
  const nlohmann::json campaign = {
      {"version", 1},
      {"name", "one"},
      {"factors",
       {{"operation", {{"type", "categorical"}, {"levels", {operation}}}},
        {"message_bytes", {{"type", "numeric"}, {"levels", {bytes}}}},
        {"send_queue_depth", {{"type", "numeric"}, {"levels", {depth}}}},
        {"mtu_bytes", {{"type", "numeric"}, {"levels", {4096}}}}}},
      {"design", "full"},
      {"baseline",
       {{"operation", operation},
        {"message_bytes", bytes},
        {"send_queue_depth", depth},
        {"mtu_bytes", 4096}}},
      {"wall", {{"metric", "bandwidth_gbps"}, {"below_baseline_by", 0.2}}},
      {"measure", {{"repeats", 1}, {"seconds", 1}}}};
  std::ofstream(folder / "one.json") << campaign;
  const Outcome run = greynic(
      folder, "run " + (folder / "one.json") + " --target twin:cx6 --out " + (folder / "one.db"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Outcome rows = greynic(folder, "export " + (folder / "one.db"));
  return nlohmann::json::parse(rows.out.substr(0, rows.out.find('\n')));
}

struct Setting {
  std::string verb, operation;
  int bytes;
};

class VirtualTime : public testing::TestWithParam<Setting> {};
class VirtualTimeRate : public testing::TestWithParam<Setting> {};

// Claim:  stock perftest shows the twin's numbers: within 5 % of what `measure` says.
// Oracle: the engine of `measure`, which knows neither the fabric nor these programs.
TEST_P(VirtualTime, ShowsTheLatencyThatTheTwinMeasures) {
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  const auto& [verb, operation, bytes] = GetParam();
  const std::vector<double> columns =
      perftest("ib_" + verb + "_lat -n 30 -s " + std::to_string(bytes));
  ASSERT_GE(columns.size(), 5U);
  // perftest halves round trips, but for READs.
  const double shown = columns[4];
  const double expected = measured(operation, bytes).at("latency_us_p50");
  EXPECT_NEAR(shown / expected, 1, 0.05) << shown << " us, not " << expected;
}

// perftest has 16 READs open at most, `measure` knows no such bound: both get queues of 16.
TEST_P(VirtualTimeRate, ShowsTheBandwidthThatTheTwinMeasures) {
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  const auto& [verb, operation, bytes] = GetParam();
  const std::vector<double> columns =
      perftest("ib_" + verb + "_bw -Q 1 -n 1000 -s " + std::to_string(bytes) +
               (verb == "read" ? " -t 16" : ""));
  ASSERT_GE(columns.size(), 4U);
  const double shown = columns[3] * 8 * 1048576e-9;  // from MiB/s
  const double expected =
      measured(operation, bytes, verb == "read" ? 16 : 128).at("bandwidth_gbps");
  EXPECT_NEAR(shown / expected, 1, 0.05) << shown << " Gbit/s, not " << expected;
}

std::string name_of(const testing::TestParamInfo<Setting>& info) {
  return info.param.operation + std::to_string(info.param.bytes);
}
INSTANTIATE_TEST_SUITE_P(Perftest, VirtualTime,
                         testing::Values(Setting{"write", "WRITE", 64}, Setting{"send", "SEND", 64},
                                         Setting{"read", "READ", 64},
                                         Setting{"write", "WRITE", 16384},
                                         Setting{"send", "SEND", 1024},
                                         Setting{"read", "READ", 65536}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Perftest, VirtualTimeRate,
                         testing::Values(Setting{"write", "WRITE", 64}, Setting{"send", "SEND", 64},
                                         Setting{"write", "WRITE", 16384},
                                         Setting{"send", "SEND", 16384},
                                         Setting{"read", "READ", 64},
                                         Setting{"read", "READ", 16384}),
                         name_of);

// Claim:  the same command gives the same numbers, though processes are started and scheduled anew,
//         also where a program spins on memory. perftest finds the frequency of the counter anew each
//         time, from microseconds: that moves its last digit.
TEST(VirtualTimeOfALab, RepeatsItself) {
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  for (const char* words : {"ib_write_lat -n 100 -s 8", "ib_send_bw -n 400 -s 4096 -q 2"}) {
    const std::vector<double> first = perftest(words);
    const std::vector<double> second = perftest(words);
    ASSERT_FALSE(first.empty());
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_NEAR(first[i], second[i], std::max(0.011, 1e-4 * first[i]))
          << words << ", column " << i;
    }
  }
}

// Claim:  where the counter cannot be taken from programs, lab-run says so and runs nothing.
// Oracle: a child of the test that tries.
TEST(VirtualTimeOfALab, SaysWhereTheCounterCannotBeTaken) {
  const Folder folder;
  const Outcome run = greynic(folder, "lab-run --virtual-time --pair -- true");
  EXPECT_EQ(run.err.find("time-stamp counter") == std::string::npos, counter_traps()) << run.err;
  if (!counter_traps()) EXPECT_EQ(run.exit_code, 3);
}

// Claim:  what virtual time does not offer is named, not run in real time instead.
TEST(VirtualTimeOfALab, NamesWhatItDoesNotOffer) {
  const Folder folder;
  EXPECT_EQ(greynic(folder, "lab-run --session a --host 0 --virtual-time -- true").exit_code, 2);
  EXPECT_EQ(greynic(folder, "lab-run twin:cx6?defects=S1 --virtual-time --pair -- true").exit_code,
            2);
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  const Outcome run =
      greynic(folder, "lab-run --virtual-time --pair -- timeout 600 ib_send_bw -c XRC");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_NE(run.err.find("in virtual time is not offered"), std::string::npos)
      << run.out << run.err;
}

// Claim:  datagrams, shared receive queues and the connection manager take no time of their own;
//         waiting for events takes the wake-up, on both ends of a round trip.
// Oracle: the same command without them.
TEST(VirtualTimeOfALab, OffersWhatPerftestCanDo) {
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  const std::string plain = "ib_send_lat -n 100 -s 64";
  const std::vector<double> usual = perftest(plain);
  ASSERT_GE(usual.size(), 5U);
  constexpr double kWakeUpUs = 5;
  const std::vector<std::pair<std::string, double>> cases = {
      {" -c UD", 0}, {" -c UC", 0}, {" --use-srq", 0}, {" -R", 0}, {" -e", kWakeUpUs}};
  for (const auto& [words, more] : cases) {
    const std::vector<double> columns = perftest(plain + words);
    ASSERT_GE(columns.size(), 5U) << words;
    EXPECT_NEAR(columns[4], usual[4] + more, 0.05 * usual[4]) << words;
  }
}

// Claim:  flow groups of a host cost what `measure` says they do.
// Oracle: published logs of a ConnectX-6 behind no groups and behind 20 where packets come in.
TEST(VirtualTimeOfALab, ChecksPacketsAgainstFlowGroups) {
  if (const std::string why = in_the_way(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_NEAR(perftest("ib_send_lat -n 100 -s 64 -m 1024").at(4), 2.82, 0.03 * 2.82);
  EXPECT_NEAR(perftest("ib_send_lat -n 100 -s 64 -m 1024", "--server-groups 0,20").at(4), 4.58,
              0.03 * 4.58);
  // Who polls memory must not find a WRITE there before its walk through the groups is over.
  EXPECT_NEAR(perftest("ib_write_lat -n 30 -s 16384 -m 1024", "--server-groups 0,20").at(4), 7.57,
              0.08 * 7.57);
  const Folder folder;
  const Outcome wrong = greynic(folder, "lab-run --virtual-time --server-groups 20 --pair -- true");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--server-groups"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace greynic::integration
