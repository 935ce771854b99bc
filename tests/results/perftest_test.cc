#include "greynic/results/perftest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "scratch.h"

namespace greynic::results {
namespace {

namespace fs = std::filesystem;
using greynic::testing::Scratch;

constexpr const char* kRule =
    "---------------------------------------------------------------------------------------\n";

/// A log as perftest 23 prints it, with a table of the caller's.
std::string text_log(const std::string& title, const std::string& table) {
  return std::string(kRule) + "                    " + title +
         "\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
         " Number of qps   : 4\t\tTransport type : IB\n"
         " Connection type : UC\t\tUsing SRQ      : ON\n"
         " PCIe relax order: ON\t\tLock-free      : OFF\n"
         " TX depth        : 128\n Post List       : 8\n RX depth        : 512\n"
         " CQ Moderation   : 100\n Mtu             : 4096[B]\n Link type       : Ethernet\n"
         " GID index       : 3\n Max inline data : 220[B]\n rdma_cm QPs\t : OFF\n"
         " Data ex. method : Ethernet \tTOS    : 4\n" +
         kRule +
         " local address: LID 0000 QPN 0x01cf PSN 0xe6b982\n"
         " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:01:02:03\n" +
         kRule + table + kRule;
}

Observation only_observation(const std::string& text, const PerftestOptions& options = {}) {
  const auto import = parse_perftest(text, "a.log", options);
  EXPECT_TRUE(import) << (import ? "" : import.error().message);
  if (!import || import->observations.size() != 1) {
    ADD_FAILURE() << "expected one observation";
    return {};
  }
  return import->observations.front();
}

// Claim:  a bandwidth table becomes goodput in 1e9 bit/s, and the header becomes settings.
// Oracle: 1000 MiB/s is 1000 * 2^20 * 8 bit/s.
TEST(PerftestText, TurnsMebibytesIntoGigabitsAndHeaderIntoSettings) {
  const Observation got = only_observation(
      text_log("RDMA_Write Bidirectional BW Test",
               " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
               " 65536      5000             2000.00            1000.00\t\t   0.016000\n"));
  EXPECT_DOUBLE_EQ(got.value("bandwidth_gbps").value(), 8.388608);
  EXPECT_DOUBLE_EQ(got.value("bandwidth_gbps_peak").value(), 16.777216);
  EXPECT_DOUBLE_EQ(got.value("message_rate_mops").value(), 0.016);
  EXPECT_EQ(got.outcome, Outcome::kMeasured);
  const Configuration want = {{"operation", std::string("WRITE")},
                              {"direction", std::string("bidirectional")},
                              {"qp_count", 4.0},
                              {"transport", std::string("UC")},
                              {"shared_receive_queue", true},
                              {"send_queue_depth", 128.0},
                              {"receive_queue_depth", 512.0},
                              {"post_batch", 8.0},
                              {"signal_every", 100.0},
                              {"mtu_bytes", 4096.0},
                              {"inline_bytes", 220.0},
                              {"message_bytes", 65536.0}};
  EXPECT_EQ(got.asked, want) << got.asked.name();
  EXPECT_EQ(got.environment.at("nic"), "mlx5_0");
}

// Claim:  --report_gbits is taken as it is, also with more digits, per port and with CPU load.
TEST(PerftestText, ReadsGigabitsPortsAndCpu) {
  const Observation got = only_observation(text_log(
      "Send BW Test",
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   BW "
      "Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]    "
      "CPU_Util[%]\n"
      " 2    1000           0.050000            0.040000            2.500000  0.03 1.5 0.01 1.0 "
      " 25.00\n"));
  EXPECT_DOUBLE_EQ(got.value("bandwidth_gbps").value(), 0.04);
  EXPECT_DOUBLE_EQ(got.value("bandwidth_gbps_port1").value(), 0.03);
  EXPECT_DOUBLE_EQ(got.value("message_rate_mops_port2").value(), 1.0);
  EXPECT_DOUBLE_EQ(got.value("cpu_share").value(), 0.25);
}

// Claim:  the oldest tables, without message rate and with other header spellings, are read too.
TEST(PerftestText, ReadsTheOldestTables) {
  const Observation got = only_observation(
      "------------------------------------------------------------------\n"
      "                    RDMA_Read BW Test\n Number of qps   : 1\n Connection type : RC\n"
      " TX depth        : 100\n CQ Moderation   : 50\n Mtu             : 2048B\n"
      "------------------------------------------------------------------\n"
      " #bytes #iterations    BW peak[MB/sec]    BW average[MB/sec]\n"
      " 65536   1000           3140.75            3140.35\n"
      "------------------------------------------------------------------\n");
  EXPECT_EQ(got.asked.text("operation"), "READ");
  EXPECT_EQ(got.asked.number("mtu_bytes"), 2048.0);
  EXPECT_DOUBLE_EQ(got.value("bandwidth_gbps").value(), 3140.35 * 8388608e-9);
  EXPECT_FALSE(got.value("message_rate_mops"));
}

// Claim:  latency columns go to their quantiles, and the mean has a standard error from t_stdev.
TEST(PerftestText, ReadsLatencyTables) {
  const std::string header =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
  const Observation got = only_observation(text_log(
      "Send Latency Test", header + " 2 10000 2.71 4.15 2.74 \t 2.75 \t0.08 \t\t2.95 \t\t4.11\n"));
  EXPECT_EQ(got.value("latency_us_min"), 2.71);
  EXPECT_EQ(got.value("latency_us_max"), 4.15);
  EXPECT_EQ(got.value("latency_us_p50"), 2.74);
  EXPECT_EQ(got.value("latency_us_mean"), 2.75);
  EXPECT_EQ(got.value("latency_us_p99"), 2.95);
  EXPECT_EQ(got.value("latency_us_p999"), 4.11);
  EXPECT_NEAR(got.measures.at("latency_us_mean").standard_error.value(), 0.0008, 1e-12);
  // A deviation that was rounded down to nothing is not known, and not an error of 0.
  const Observation rounded = only_observation(text_log(
      "Send Latency Test", header + " 2 10000 2.71 4.15 2.74 \t 2.75 \t0.00 \t\t2.95 \t\t4.11\n"));
  EXPECT_FALSE(rounded.measures.at("latency_us_mean").standard_error);
  const Observation timed =
      only_observation(text_log("RDMA_Write Latency Test",
                                " #bytes        #iterations       t_avg[usec]    tps average\n"
                                " 64       1000000            2.50        200000.00\n"));
  EXPECT_EQ(timed.value("latency_us_mean"), 2.5);
  EXPECT_DOUBLE_EQ(timed.value("transaction_rate_mops").value(), 0.2);
}

// Claim:  samples of --report-unsorted end up in the histogram of the row that follows.
TEST(PerftestText, KeepsSamplesAsHistogram) {
  const std::string header =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
  const Observation got = only_observation(
      text_log("Send Latency Test", header + "#, usec\n1, 2.5\n2, 2.5\n3, 0.1\n" + kRule + header +
                                        " 2 3 0.1 2.5 2.5 1.7 0.08 2.5 2.5\n"));
  EXPECT_EQ(got.latency.count(), 3U);
  EXPECT_EQ(got.latency.min_ns(), 100U);
  EXPECT_NEAR(got.latency.quantile_ns(0.5), 2500.0, 10.0);
}

// Claim:  rows of an endless run, and the same test again, are repeats of one configuration.
TEST(PerftestText, CountsRepeats) {
  const std::string table =
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 64         1000     0.00      10.00     1.0\n 64         1000     0.00      11.00     "
      "1.0\n";
  const auto import =
      parse_perftest(text_log("Send BW Test", table) + text_log("Send BW Test", table), "a.log");
  ASSERT_TRUE(import) << import.error().message;
  ASSERT_EQ(import->observations.size(), 4U);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(import->observations[static_cast<std::size_t>(i)].repeat, i);
}

// Claim:  of a bidirectional run with --report-both the sum is kept and the sides are not mixed in.
TEST(PerftestText, LeavesTheSidesOfABothWaysReportOut) {
  const std::string table =
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";
  const auto import =
      parse_perftest(text_log("Send Bidirectional BW Test",
                              table + " 64 1000 0.00 20.00 2.0\n" + "\n Local results: \n" + kRule +
                                  table + " 64 1000 0.00 9.00 1.0\n" + "\n Remote results: \n" +
                                  kRule + table + " 64 1000 0.00 11.00 1.0\n"),
                     "a.log");
  ASSERT_TRUE(import) << import.error().message;
  ASSERT_EQ(import->observations.size(), 1U);
  EXPECT_EQ(import->observations[0].value("bandwidth_gbps"), 20.0);
  EXPECT_EQ(import->warnings.size(), 2U);
}

// Claim:  a test that broke is a failed outcome with the verbs name of its completion status.
TEST(PerftestText, TurnsABrokenTestIntoAnOutcome) {
  const Observation got =
      only_observation(text_log("Send BW Test",
                                " Completion with error at client\n"
                                " Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"));
  EXPECT_EQ(got.outcome, Outcome::kFailed);
  EXPECT_EQ(got.reason, "IBV_WC_RETRY_EXC_ERR");
  EXPECT_EQ(got.asked.number("qp_count"), 4.0);
}

constexpr const char* kInfoQuoted =
    "{\n\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\",\n\"Dual_port\": \"OFF\",\n"
    "\"Number_of_qps\": 2,\n\"Connection_type\": \"RC\",\n\"Using_SRQ\": \"OFF\",\n"
    "\"TX_depth\": 64,\n\"Mtu\": 1024,\n\"Max_inline_data\": 0,\n"
    "\"Data_ex_method\": \"Ethernet\"\n},\n";
constexpr const char* kInfoBare =
    "{\ntest_info: {\ntest: RDMA_Write_Latency_Test,\nDual_port: OFF,\nDevice: \"rxe0\",\n"
    "Number_of_qps: 1,\nTransport_type: IB,\nConnection_type: RC,\nUsing_SRQ: OFF,\n"
    "TX_depth : 1,\nMtu: 1024,\nLink_type: Ethernet,\nMax_inline_data: 0,\n"
    "Data_ex_method: Ethernet,\n},\n";

// Claim:  valid JSON is read, and the unit that it does not name is told from rate and size.
TEST(PerftestJson, TellsTheUnitFromTheMessageRate) {
  const std::string info = kInfoQuoted;
  const auto with = [&](const std::string& average) {
    return info +
           "\"results\": {\n\"MsgSize\": 65536,\n\"n_iterations\": 5000,\n\"BW_peak\": " + average +
           ",\n\"BW_average\": " + average + ",\n\"MsgRate\": 0.160000\n}\n}\n";
  };
  const Observation mebibytes = only_observation(with("10000.00"));
  EXPECT_DOUBLE_EQ(mebibytes.value("bandwidth_gbps").value(), 83.88608);
  EXPECT_DOUBLE_EQ(mebibytes.value("bandwidth_gbps_peak").value(), 83.88608);
  const Observation gigabits = only_observation(with("83.89"));
  EXPECT_DOUBLE_EQ(gigabits.value("bandwidth_gbps").value(), 83.89);
  EXPECT_EQ(gigabits.asked.number("qp_count"), 2.0);
  EXPECT_EQ(gigabits.asked.text("operation"), "WRITE");
}

// Claim:  the JSON of 2021 to 2023, which no JSON reader takes, is read all the same.
TEST(PerftestJson, ReadsUnquotedKeysAndTrailingCommas) {
  const Observation got = only_observation(
      std::string(kInfoBare) +
      "results: {\nMsgSize: 128,\nn_iterations: 5000,\nt_min: 2.37,\nt_max: 5.39,\n"
      "t_typical: 2.42,\nt_avg: 2.43,\nt_stdev: 0.05,\npercentile_99: 2.47,\n"
      "percentile_99.9: 4.03,\n},\n}\n");
  EXPECT_EQ(got.value("latency_us_p50"), 2.42);
  EXPECT_EQ(got.value("latency_us_p999"), 4.03);
  EXPECT_EQ(got.asked.number("send_queue_depth"), 1.0);
  EXPECT_EQ(got.asked.text("operation"), "WRITE");
  EXPECT_EQ(got.environment.at("nic"), "rxe0");
}

// Claim:  so are the slips of later versions: one bare key, a comma before the brace, nan.
TEST(PerftestJson, ReadsTheSlipsOfLaterVersions) {
  const Observation service = only_observation(
      std::string(kInfoQuoted) +
      "\"results\": {\n\"MsgSize\": 65536,\nsl: 3,\n\"n_iterations\": 5000,\n\"BW_peak\": nan,\n"
      "\"BW_average\": 83.89,\n \"MsgRate\": 0.160000\n}\n}\n");
  EXPECT_EQ(service.asked.number("service_level"), 3.0);
  EXPECT_FALSE(service.value("bandwidth_gbps_peak"));
  const std::string plain =
      std::string(kInfoQuoted) + "\"results\": {\n\"bw_avg\": 100.000000,\n\n}\n}\n";
  EXPECT_DOUBLE_EQ(
      only_observation(plain, {.name_pattern = {}, .json_unit = PerftestUnit::kMebibytes})
          .value("bandwidth_gbps")
          .value(),
      0.8388608);
  const auto unknown = parse_perftest(plain, "a.log");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("--json-unit"), std::string::npos);
}

// Claim:  settings in a file's name are taken by the pattern, with the factor's own type.
TEST(NamePattern, TakesSettingsFromTheName) {
  const Scratch scratch;
  const std::string table =
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 64         1000     0.00      10.00     1.0\n";
  const std::string log = text_log("Send BW Test", table);
  const auto settings = [&](const std::string& name, const std::string& pattern) {
    const auto import = parse_perftest(log, name, {.name_pattern = pattern, .json_unit = {}});
    return import ? import->observations.front().asked.name() : import.error().message;
  };
  const std::string masks =
      "cen_{client_encap_masks}_cde_{client_decap_masks}_sen_{server_encap_masks}_sde_{server_"
      "decap_"
      "masks}_{*}.log";
  const std::string got = settings("/data/cen_20_cde_0_sen_5_sde_40_send_bw_pod.log", masks);
  EXPECT_NE(got.find("client_encap_masks=20"), std::string::npos) << got;
  EXPECT_NE(got.find("server_decap_masks=40"), std::string::npos) << got;
  EXPECT_NE(settings("runs/8/x.log", "{container_count}/{*}").find("container_count=8"),
            std::string::npos);
  EXPECT_NE(settings("a_b_c.log", "{site}_c.log").find("site=a_b"), std::string::npos);
  for (const auto& [name, pattern] : std::vector<std::pair<std::string, std::string>>{
           {"a.log", masks},                     // does not fit
           {"cen_x.log", "cen_{qp_count}.log"},  // no number
           {"qp_8.log", "qp_{qp_count}.log"},    // the header says 4
           {"a.log", "{a}{b}.log"},              // cannot be told apart
           {"a.log", "{a.log"},                  // not closed
           {"a.log", "a}.log"},                  // not opened
           {"a.log", "{}.log"},                  // no name
           {"a-a.log", "{a}-{a}.log"},           // twice
           {"a.log", "a"},                       // too short
           {".log", "{a}.log"}}) {               // nothing to take
    const auto import = parse_perftest(log, name, {.name_pattern = pattern, .json_unit = {}});
    ASSERT_FALSE(import) << name << " " << pattern;
    EXPECT_EQ(exit_code(import.error().code), 2);
  }
}

struct Malformed {
  std::string name;
  std::string text;
  std::string expected;  ///< in the message
};
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

class MalformedPerftest : public ::testing::TestWithParam<Malformed> {};

// Claim:  a log that cannot be understood is refused with its name and the place in it.
TEST_P(MalformedPerftest, IsRefused) {
  const auto import = parse_perftest(GetParam().text, "bad.log");
  ASSERT_FALSE(import);
  EXPECT_EQ(exit_code(import.error().code), 2);
  EXPECT_NE(import.error().message.find("bad.log"), std::string::npos) << import.error().message;
  EXPECT_NE(import.error().message.find(GetParam().expected), std::string::npos)
      << import.error().message;
}

constexpr const char* kColumns =
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";

INSTANTIATE_TEST_SUITE_P(
    Perftest, MalformedPerftest,
    ::testing::Values(
        Malformed{"Empty", "", "no perftest result"},
        Malformed{"NoTable", "Waiting for client\n", "no perftest result"},
        Malformed{"TornRow", text_log("Send BW Test", std::string(kColumns) + " 2 4000 14.05\n"),
                  "a row of 3 values"},
        Malformed{"TornNumber", std::string(kColumns) + " 2 4000 14.05 13.8 7.", "middle of a row"},
        Malformed{"NotANumber", std::string(kColumns) + " 2 4000 14.05 1x.87 7.27\n", "1x.87"},
        Malformed{"Negative", std::string(kColumns) + " 2 4000 14.05 -13.87 7.27\n", "-13.87"},
        Malformed{"UnknownColumn", " #bytes     #furlongs\n 2 3\n", "#furlongs"},
        Malformed{"FlowRates", " #flows\tfs_avg_time[usec]\n 2 3\n", "flow-setup"},
        Malformed{"Cycles", std::string(kColumns) + "#, cycles\n1, 2000\n", "cycles"},
        Malformed{"UnknownVerb",
                  text_log("Quantum BW Test", std::string(kColumns) + " 2 4000 1.0 1.0 1.0\n"),
                  "Quantum"},
        Malformed{"BadHeader",
                  " Number of qps   : many\n" + std::string(kColumns) + " 2 4000 1.0 1.0 1.0\n",
                  "many"},
        Malformed{"JsonCut", std::string(kInfoBare) + "results: {\nMsgSize: 128,\n", "bad.log:1"},
        Malformed{"JsonNoResults", "{\ntest_info: {\ntest: Send_BW_Test,\n},\n}\n", "results"},
        Malformed{"JsonUnknownField", "{\nresults: {\nfurlongs: 3,\n},\n}\n", "furlongs"},
        Malformed{"JsonTwice", "{\nresults: {\nMsgSize: 3,\nMsgSize: 4,\n},\n}\n", "twice"},
        Malformed{"JsonOpenQuote", "{\n\"results: {\nMsgSize: 3\n}\n}\n", "quote"},
        Malformed{"JsonList", "{\n\"results\": [1, 2]\n}\n", "expected '{'"},
        Malformed{"JsonNotANumber", "{\nresults: {\nMsgSize: three,\n},\n}\n", "three"}),
    [](const auto& malformed) { return malformed.param.name; });

/// One random change of a text: what a damaged disk, an editor or a cut transfer may do to it.
std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  switch (below(6)) {
    case 0:
      if (!text.empty()) text[below(text.size())] = static_cast<char>(below(256));
      return text;
    case 1:
      return text.substr(0, below(text.size() + 1));
    case 2:
      return text.erase(below(text.size() + 1), below(40));
    case 3:
      return text.insert(below(text.size() + 1), text.substr(below(text.size() + 1), below(60)));
    case 4: {
      constexpr std::string_view kWords[] = {
          "nan", "-1",   "1e400", "\t\t",          ":", "{", "}", ",", "\"",
          "#",   "-nan", "\n",    "99999999999999"};
      return text.insert(below(text.size() + 1), kWords[below(std::size(kWords))]);
    }
    default:
      std::swap(text[below(text.size())], text[below(text.size())]);
      return text;
  }
}

// Claim:  no damage to a log makes the reader fall over, invent a number that is none, or refuse
//         without naming the file.
// Method: 20000 logs with one to four random changes each, seed fixed.
TEST(Perftest, StandsAnyDamage) {
  const std::string latency =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
  const std::vector<std::string> originals = {
      text_log("Send BW Test", std::string(kColumns) + " 2 4000 14.05 13.87\t\t 7.27\n"),
      text_log("RDMA_Read Latency Test", latency + "#, usec\n1, 2.5\n" + kRule + latency +
                                             " 2 1000 2.71 4.15 2.74 2.75 0.08 2.95 4.15\n"),
      std::string(kInfoBare) +
          "results: {\nMsgSize: 128,\nt_avg: 2.42,\npercentile_99.9: 4.03,\n},\n}\n",
      std::string(kInfoQuoted) +
          "\"results\": {\n\"MsgSize\": 65536,\n\"BW_average\": 83.89,\n\"MsgRate\": 0.16\n}\n}\n"};
  constexpr unsigned kSeed = 20261121;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  int understood = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = originals[random() % originals.size()];
    for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
      text = mutated(std::move(text), random);
    }
    const auto import = parse_perftest(text, "damaged.log");
    if (!import) {
      ++refused;
      ASSERT_EQ(import.error().code, ErrorCode::kBadInput) << import.error().message;
      ASSERT_NE(import.error().message.find("damaged.log"), std::string::npos);
      continue;
    }
    ++understood;
    for (const Observation& observation : import->observations) {
      for (const auto& [name, measure] : observation.measures) {
        ASSERT_TRUE(std::isfinite(measure.value) && measure.value >= 0.0) << name << "\n" << text;
      }
    }
  }
  EXPECT_GT(understood, 1000);
  EXPECT_GT(refused, 1000);
}

// Claim:  the published ScalaCN logs are read whole: every size, the masks of the name, right
//         units.
// Oracle: values looked up in the logs by eye.
TEST(Perftest, ReadsThePublishedScalacnLogs) {
  const fs::path folder = fs::path(GREYNIC_SOURCE_DIR) / "../shared/data/scalacn";
  if (!fs::exists(folder))
    GTEST_SKIP()
        << folder
        << " is not there; put the published data into ../shared/data, beside the source tree";
  std::vector<std::string> logs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  const auto import = import_perftest(
      logs, {.name_pattern = "cen_{client_encap_masks}_cde_{client_decap_masks}_sen_{server_encap_"
                             "masks}_sde_{server_decap_masks}_{*}.log",
             .json_unit = {}});
  ASSERT_TRUE(import) << import.error().message;
  EXPECT_EQ(import->observations.size(), logs.size() * 23);
  EXPECT_TRUE(import->warnings.empty()) << import->warnings.front();
  const auto find = [&](const std::string& partial, std::string_view measure) {
    const Configuration wanted = parse_configuration(partial).value();
    std::optional<double> found;
    for (const Observation& observation : import->observations) {
      bool fits = observation.value(measure).has_value();
      for (const auto& [name, level] : wanted.levels()) {
        const FactorValue* there = observation.asked.find(name);
        fits = fits && there != nullptr && *there == level;
      }
      if (fits) found = observation.value(measure);
    }
    return found.value_or(std::nan(""));
  };
  EXPECT_NEAR(find("client_encap_masks=0,server_decap_masks=0,operation=SEND,message_bytes=8388608",
                   "bandwidth_gbps"),
              21118.02 * 8388608e-9, 1e-9);
  EXPECT_NEAR(
      find("client_encap_masks=20,server_decap_masks=20,operation=WRITE,message_bytes=32768",
           "bandwidth_gbps"),
      4962.23 * 8388608e-9, 1e-9);
  EXPECT_EQ(find("client_encap_masks=0,server_decap_masks=0,operation=SEND,message_bytes=2",
                 "latency_us_p50"),
            2.74);
}

}  // namespace
}  // namespace greynic::results
