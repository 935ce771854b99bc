#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

  const std::string capture =
      text_of(std::string(GREYNIC_SOURCE_DIR) + "/configs/examples/incast.pcap");
  std::ofstream(folder / "cut.pcap", std::ios::binary) << capture.substr(0, capture.size() - 5);
  const Outcome cut = greynic(folder, "bursts --pcap " + (folder / "cut.pcap") + options);
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_NE(cut.err.find("packet 489 (counted from 0)"), std::string::npos) << cut.err;
  EXPECT_EQ(lines(), document->at("packets_marked"));
  const auto rest = files::parse_json(cut.out, "stdout");
  ASSERT_TRUE(rest);
  EXPECT_TRUE(files::check_schema(*rest, "burst", "stdout"));
  EXPECT_EQ(rest->at("packets_seen"), 489);

  for (const char* bad : {"--rate 10", "--rtt 25", "--allow 5", "--rtt 0us", "--ring 0"}) {
    EXPECT_EQ(greynic(folder, std::string("bursts --pcap incast.pcap ") + bad).exit_code, 2) << bad;
  }
  EXPECT_EQ(greynic(folder, "bursts").exit_code, 2);
}

}  // namespace
}  // namespace greynic::integration
