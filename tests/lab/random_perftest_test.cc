#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "greynic/statistics/random.h"
#include "program.h"

/// perftest's programs with options at random. A run that waits for ever is ended by `timeout`,
/// whose exit code is not 0.

namespace greynic::integration {
namespace {

constexpr const char* kPatienceSeconds = "900";
/// A multiple of every CQ moderation below (perftest counts a last, shorter batch for a whole one,
/// and may then wait for ever), and no more than the receives of a QP (datagrams that find none
/// are lost, and perftest waits for them).
constexpr int kMessages = 400;
constexpr double kMostBytes = 1 << 25;

class Options {
 public:
  explicit Options(std::uint64_t seed) : random_(seed) {}

  std::string command() {
    const std::string verb = pick("write", "read", "send", "atomic");
    const bool bandwidth = chance(0.67);
    const std::string transport = verb == "send"    ? pick("RC", "UC", "UD", "XRC")
                                  : verb == "write" ? pick("RC", "UC", "XRC")
                                  : verb == "read"  ? "RC"
                                                    : pick("RC", "RC", "XRC");
    text_ = "ib_" + verb + (bandwidth ? "_bw" : "_lat");
    if (transport != "RC") add("-c " + transport);
    const int qps = bandwidth ? std::stoi(pick("1", "2", "3", "8", "32", "128")) : 1;
    if (qps > 1) add("-q " + std::to_string(qps));
    const bool timed = add_length(verb, transport, qps, bandwidth);
    if (bandwidth) add_queues(timed);
    if (verb == "send" && transport == "RC") {
      if (chance(0.2)) add("-r " + pick("64", "256", "512"));
      if (chance(0.2)) add("--use-srq");
    }
    if (verb != "write" && !timed && chance(0.3)) add("-e");
    if ((transport == "RC" || transport == "UD") && chance(0.25)) add("-R");
    if (chance(0.2)) add("-x " + pick("0", "1"));
    if (chance(0.2)) add("--use_old_post_send");
    return text_;
  }

 private:
  /// True: it runs for a time, not for a number of messages.
  /// Latency by time is not tried: where no round trip fits into it, the end that leaves first
  /// fails the other.
  bool add_length(const std::string& verb, const std::string& transport, int qps, bool bandwidth) {
    if (chance(0.15) && bandwidth) {
      add("-D 1");
      return true;
    }
    if (verb != "atomic" && qps <= 8 && chance(0.1)) {
      add("-a -n 8");
      return false;
    }
    add("-n " + std::to_string(kMessages));
    if (verb == "atomic") return false;
    int size = std::stoi(transport == "UD" ? pick("1", "64", "1000", "4096")
                                           : pick("1", "2", "333", "4096", "65536", "1048576"));
    while (static_cast<double>(size) * qps * kMessages > kMostBytes) size /= 2;
    add("-s " + std::to_string(size));
    return false;
  }
  void add_queues(bool timed) {
    if (chance(0.3)) add("-b");
    if (chance(0.3)) {
      add("-t " + pick("1", "2", "16", "512"));
    } else if (!timed && chance(0.25)) {
      add("-l " + pick("2", "4"));
    } else if (chance(0.25)) {
      add("-Q " + pick("1", "2", "8"));
    }
  }

  template <typename... Texts>
  std::string pick(Texts... texts) {
    const std::array<const char*, sizeof...(texts)> all{texts...};
    return all[random_.below(static_cast<std::uint32_t>(all.size()))];
  }
  bool chance(double share) { return random_.uniform() < share; }
  void add(const std::string& words) { text_ += " " + words; }

  statistics::Random random_;
  std::string text_;
};

class RandomPerftest : public testing::TestWithParam<std::uint64_t> {};

// Claim:  no run of perftest hangs or fails, whatever its transport, queues and events.
// Method: options at random. 4 runs by day; 200 with GREYNIC_NIGHTLY.
TEST_P(RandomPerftest, EndsByItself) {
  if (std::system("command -v ib_write_bw >/dev/null") != 0) {
    GTEST_SKIP() << "needs ib_write_bw: apt install perftest";
  }
  const Folder folder;
  Options options(GetParam());
  const bool night = std::getenv("GREYNIC_NIGHTLY") != nullptr;
  if (!night && GetParam() > 4) GTEST_SKIP() << "by night: set GREYNIC_NIGHTLY";
  const int runs = night ? 25 : 1;
  for (int i = 0; i < runs; ++i) {
    const std::string command = options.command();
    const Outcome run = greynic(
        folder, std::string("lab-run --pair -- timeout -k 5 ") + kPatienceSeconds + " " + command);
    EXPECT_EQ(run.exit_code, 0) << command << ", run " << i << " of seed " << GetParam() << "\n"
                                << run.out << run.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPerftest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace greynic::integration
