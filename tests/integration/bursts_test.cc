#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "greynic/capture/capture.h"
#include "greynic/files/json_file.h"
#include "program.h"

namespace greynic::integration {
namespace {

// Claim:  the command keeps to its schema, writes as many marks as it counts, says where a capture
//         breaks off with exit code 2, and refuses numbers without units.
TEST(Bursts, PrintMarksAndJsonThatAgree) {
  if (!capture::can_read_captures()) GTEST_SKIP() << "built without libpcap; install libpcap-dev";
  const Folder folder;
  const std::string options =
      " --rate 10gbps --rtt 25us --allow 30% --json --marks " + (folder / "marked.txt");
  const Outcome whole = greynic(folder, "bursts --pcap incast.pcap" + options);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto document = files::parse_json(whole.out, "stdout");
  ASSERT_TRUE(document);
  const auto good = files::check_schema(*document, "burst", "stdout");
  EXPECT_TRUE(good) << good.error().message;
  const auto lines = [&] {
    const std::string text = text_of(folder / "marked.txt");
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(lines(), document->at("packets_marked"));
  EXPECT_EQ(document->at("bursts").size(), 2U);

  const std::string capture = text_of(kSource + "/configs/examples/incast.pcap");
  std::ofstream(folder / "cut.pcap", std::ios::binary) << capture.substr(0, capture.size() - 5);
  const Outcome cut = greynic(folder, "bursts --pcap " + (folder / "cut.pcap") + options);
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_NE(cut.err.find("packet 489 (counted from 0)"), std::string::npos) << cut.err;
  EXPECT_EQ(lines(), document->at("packets_marked"));
  const auto rest = files::parse_json(cut.out, "stdout");
  ASSERT_TRUE(rest);
  EXPECT_TRUE(files::check_schema(*rest, "burst", "stdout"));
  EXPECT_EQ(rest->at("packets_seen"), 489);

  for (const char* bad : {"--rate 10", "--rtt 25", "--allow 5", "--rtt 0us", "--ring 0", "--for 1s",
                          "--workload burst_incast.json", "--live lo"}) {
    EXPECT_EQ(greynic(folder, std::string("bursts --pcap incast.pcap ") + bad).exit_code, 2) << bad;
  }
  EXPECT_EQ(greynic(folder, "bursts").exit_code, 2);
}

// Claim:  in a campaign over hosts with a ConnectX-6, bursts over 100 us come where an incast makes
//         the receiver's switch pause its senders, and nowhere else; `explain` names the senders as
//         their cause.
// Oracle: the share of time for which senders were paused, which another part of the twin counts.
TEST(Bursts, ThatPauseAPairAreExplainedByItsSenders) {
  const Folder folder;
  const std::string target = " --target 'twin:cx6?bursts=15us' ", run = folder / "bursts.db";
  ASSERT_EQ(greynic(folder, "run burst_incast -o " + run + target).exit_code, 0);
  const Outcome rows = greynic(folder, "export --format jsonl " + run);
  std::istringstream lines(rows.out);
  int walls = 0, others = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = files::parse_json(line, "row");
    ASSERT_TRUE(row);
    const bool long_bursts = row->at("burst_p99_us").get<double>() > 100;
    ++(long_bursts ? walls : others);
    EXPECT_EQ(row->at("pause_share").get<double>() > 0, long_bursts) << line;
  }
  EXPECT_GT(walls, 3);
  EXPECT_GT(others, 3);
  const Outcome explained = greynic(folder, "explain --json " + run + target);
  const auto explanation = files::parse_json(explained.out, "explanation");
  ASSERT_TRUE(explanation) << explained.err;
  EXPECT_EQ(explanation->at("metric"), "burst_p99_us");
  ASSERT_EQ(explanation->at("causes").size(), 1U);
  const Outcome told = greynic(folder, "explain " + run + target);
  EXPECT_NE(told.out.find("cause 1: host_count >= 3 (clear at 2)"), std::string::npos) << told.out;
}

}  // namespace
}  // namespace greynic::integration
