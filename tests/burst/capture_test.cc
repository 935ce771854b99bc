#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "greynic/capture/capture.h"
#include "packets.h"

namespace greynic::burst {
namespace {

class Capture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!capture::can_read_captures()) GTEST_SKIP() << "built without libpcap; install libpcap-dev";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<Findings> replay(const std::string& file, const ReplayOptions& options) {
    std::ofstream(path_, std::ios::binary) << file;
    marks_.clear();
    return capture::replay_capture(path_, options, [this](std::uint64_t i) { marks_.push_back(i); });
  }

  std::string path_ = ::testing::TempDir() + "burst_" + std::to_string(::getpid()) + ".pcap";
  std::vector<std::uint64_t> marks_;
};

std::vector<std::uint64_t> numbers(const std::vector<Truth>& truth) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (truth[i].took_part) out.push_back(i);
  }
  return out;
}

// Claim:  pcap in microseconds and nanoseconds, and pcapng with interfaces of three resolutions,
//         are read to the nanosecond; a snap length changes nothing; times count from the first
//         packet.
// Oracle: the files are written here byte by byte, and packets counted again.
TEST_F(Capture, IsReadToTheNanosecondInEveryForm) {
  ReplayOptions options;
  options.allowance = {std::chrono::microseconds(25), 5'000'000, 10'000'000'000};
  const std::uint64_t threshold = options.allowance.threshold_bytes();
  statistics::Random random(11);
  std::vector<Arrival> arrivals = random_arrivals(2000, 10'000'000'000, random);
  const std::uint64_t origin = 1'700'000'000'000'000'000;  // whole microseconds
  for (const std::size_t snap : {65535U, 46U, 10U}) {
    ASSERT_TRUE(replay(pcap_file(arrivals, true, snap, origin), options));
    EXPECT_EQ(marks_, numbers(truth_of(arrivals, 10'000'000'000, threshold))) << snap;
  }
  const auto ng = replay(pcapng_file(arrivals, origin), options);
  ASSERT_TRUE(ng);
  EXPECT_EQ(ng->incomplete, "");
  for (std::size_t i = 0; i < arrivals.size(); i += 3)
    arrivals[i].time_ns -= arrivals[i].time_ns % 1000;
  EXPECT_EQ(marks_, numbers(truth_of(arrivals, 10'000'000'000, threshold)));
  for (Arrival& arrival : arrivals) arrival.time_ns -= arrival.time_ns % 1000;
  const auto micro = replay(pcap_file(arrivals, false, 65535, origin), options);
  ASSERT_TRUE(micro);
  EXPECT_EQ(marks_, numbers(truth_of(arrivals, 10'000'000'000, threshold)));
  ASSERT_FALSE(micro->bursts.empty());
  EXPECT_EQ(micro->bursts[0].start_ns, arrivals[marks_[0]].time_ns - arrivals[0].time_ns);
  EXPECT_EQ(micro->packets_seen, arrivals.size());
}

// Claim:  a capture that ends in the middle of a packet, or holds nonsense, keeps what came before,
//         and the packet is named; a file that is no capture is refused.
TEST_F(Capture, KeepsWhatCameBeforeADefect) {
  statistics::Random random(12);
  const auto arrivals = random_arrivals(300, 10'000'000'000, random);
  const std::string whole = pcap_file(arrivals, true);
  const std::string start =
      pcap_file(std::vector<Arrival>(arrivals.begin(), arrivals.begin() + 200), true);
  ReplayOptions options;
  options.allowance.share_e8 = 2'000'000;
  ASSERT_TRUE(replay(start, options));
  const auto expected = marks_;
  ASSERT_FALSE(expected.empty());
  for (const std::size_t cut : {start.size() + 3, start.size() + 17}) {
    const auto found = replay(whole.substr(0, cut), options);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->packets_seen, 200U);
    EXPECT_EQ(marks_, expected);
    EXPECT_NE(found->incomplete.find("packet 200 (counted from 0): truncated"), std::string::npos)
        << found->incomplete;
  }
  std::string nonsense = start;
  little(nonsense, 5, 8);
  little(nonsense, 0xfffffff0, 4);
  little(nonsense, 64, 4);
  const auto found = replay(nonsense + std::string(100, 'x'), options);
  ASSERT_TRUE(found);
  EXPECT_NE(found->incomplete.find("packet 200"), std::string::npos);
  EXPECT_EQ(marks_, expected);
  for (const std::string& bad : {std::string(), std::string("text"), std::string(30, '\0')}) {
    const auto refused = replay(bad, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  }
  EXPECT_FALSE(capture::replay_capture("/nowhere/at/all", options));
  EXPECT_FALSE(capture::replay_capture("/tmp", options));
  const auto empty = replay(pcap_file({}, false), options);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->packets_seen, 0U);
  EXPECT_TRUE(empty->incomplete.empty() && empty->bursts.empty());
}

// Claim:  a queue that never gets rid of its packets is refused in time, and what was found is kept.
TEST_F(Capture, RefusesARateThatTheTrafficOutruns) {
  ReplayOptions options;
  options.allowance.bits_per_second = 1000;
  options.most_queued = 4096;
  std::vector<Arrival> arrivals(5000, Arrival{.bytes = 1000});
  const auto found = replay(pcap_file(arrivals, true), options);
  ASSERT_TRUE(found);
  EXPECT_NE(found->incomplete.find("packet 4096"), std::string::npos) << found->incomplete;
  EXPECT_EQ(marks_.size(), 4096U);
  // A packet of 1000 bytes takes 8 s at this rate.
  EXPECT_EQ(found->bursts.at(0).end_ns, 4096 * 8'000'000'000ULL);
}

std::string text_of(const std::string& frame, int link = kLinkEthernet) {
  return to_string(
      parse_frame(link, {reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()}));
}

std::string ethernet(std::uint32_t type, const std::string& rest) {
  std::string frame = std::string("\xff\xff\xff\xff\xff\xff\2\0\0\0\0\1", 12);
  put16(frame, type);
  return frame + rest;
}

std::string ipv6(int protocol, const std::string& rest) {
  std::string out = std::string("\x60\0\0\0\0\0", 6) + static_cast<char>(protocol) + '\x40';
  for (const char last : {'\1', '\2'}) {
    out += std::string("\x20\x01\x0d\xb8", 4) + std::string(11, '\0') + last;
  }
  return out + rest;
}

// Claim:  flows are written as the page says: VLAN tags left out, ports where there are some, later
//         fragments without, RoCE by QP, stations where there is no IP, and whatever is cut off.
TEST(FlowNames, AreThoseOfThePage) {
  const std::string udp4 = "10.0.0.8:1007>10.0.0.200:80/udp";
  for (const std::size_t tags : {0U, 1U, 2U}) EXPECT_EQ(text_of(udp_frame(7, tags)), udp4);
  EXPECT_EQ(text_of(udp_frame(7).substr(14), kLinkRaw), udp4);
  EXPECT_EQ(text_of(std::string(14, '\0') + udp_frame(7).substr(12), kLinkLinuxCooked), udp4);
  EXPECT_EQ(text_of(udp_frame(7).substr(12, 2) + std::string(18, '\0') + udp_frame(7).substr(14),
                    kLinkLinuxCooked2),
            udp4);
  EXPECT_EQ(text_of(std::string("\2\0\0\0", 4) + udp_frame(7).substr(14), kLinkNull), udp4);
  const std::string ports("\3\xe8\0\x50", 4);
  const std::string tcp6 = "[2001:db8::1]:1000>[2001:db8::2]:80/tcp";
  EXPECT_EQ(text_of(ethernet(0x86dd, ipv6(6, ports))), tcp6);
  // Hop by hop, then destination options of 16 bytes.
  const std::string options = std::string("\x3c\0", 2) + std::string(6, '\0') +
                              std::string("\6\1", 2) + std::string(14, '\0') + ports;
  EXPECT_EQ(text_of(ethernet(0x86dd, ipv6(0, options + "rest of it"))), tcp6);
  const auto fragment6 = [&](char offset) {
    return text_of(ethernet(
        0x86dd, ipv6(44, std::string("\x11\0\0", 3) + offset + std::string(4, '\0') + ports)));
  };
  EXPECT_EQ(fragment6('\1'), "[2001:db8::1]:1000>[2001:db8::2]:80/udp");
  EXPECT_EQ(fragment6('\x8'), "2001:db8::1>2001:db8::2/udp");
  std::string fragment = udp_frame(7);
  fragment[20] = '\x20';  // more fragments: the first
  EXPECT_EQ(text_of(fragment), udp4);
  fragment[21] = '\3';
  EXPECT_EQ(text_of(fragment), "10.0.0.8>10.0.0.200/udp");
  std::string icmp = udp_frame(7);
  icmp[23] = '\1';
  EXPECT_EQ(text_of(icmp), "10.0.0.8>10.0.0.200/icmp");
  icmp[23] = '\xfd';
  EXPECT_EQ(text_of(icmp), "10.0.0.8>10.0.0.200/253");
  EXPECT_EQ(text_of(ethernet(0x86dd, ipv6(58, ""))), "2001:db8::1>2001:db8::2/icmpv6");
  EXPECT_EQ(text_of(ethernet(0x0806, "")), "02:00:00:00:00:01>ff:ff:ff:ff:ff:ff/arp");
  EXPECT_EQ(text_of(ethernet(0x1234, "")), "02:00:00:00:00:01>ff:ff:ff:ff:ff:ff/0x1234");
  std::string roce = udp_frame(7).substr(0, 36);
  put16(roce, 4791);
  roce += std::string(4, '\0') + std::string("\4\0\xff\xff\0\1\2\3\0\0\0\0", 12);
  EXPECT_EQ(text_of(roce), "10.0.0.8>10.0.0.200:qp66051/roce");
  EXPECT_EQ(text_of(roce.substr(0, 50)), "10.0.0.8:1007>10.0.0.200:4791/udp");
  EXPECT_EQ(text_of(udp_frame(7).substr(0, 36)), "10.0.0.8>10.0.0.200/udp");
  EXPECT_EQ(text_of(udp_frame(7).substr(0, 30)), "02:02:02:02:02:02>02:02:02:02:02:02/ipv4");
  EXPECT_EQ(text_of("short"), "unknown");
  EXPECT_EQ(text_of(udp_frame(7), 999), "unknown");
}

}  // namespace
}  // namespace greynic::burst
