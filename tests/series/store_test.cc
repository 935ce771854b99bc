#include "greynic/series/store.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

namespace greynic::series {
namespace {

class Store : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_series_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/store"; }
  std::string folder_;
};

Group group_of(const std::string& host, std::uint32_t width) {
  return {host,
          "program",
          1,
          {{"requests", "a=\"b\"", "B", "Help", 1, false, false, width, 0},
           {"load", "", "ratio", "", 2, true, false, 1, 0}}};
}

using Samples = std::map<std::string, std::map<std::int64_t, std::vector<std::uint64_t>>>;

/// All samples by host and time. Twice the same one fails.
Result<Samples> samples_in(const std::string& directory) {
  Samples samples;
  bool twice = false;
  Visitor visitor;
  visitor.chunk = [&](const Chunk& chunk) {
    for (std::size_t i = 0; i < chunk.times_ns.size(); ++i) {
      std::vector<std::uint64_t> row;
      for (const auto& column : chunk.columns) row.push_back(column[i]);
      twice |= !samples[chunk.group->host].emplace(chunk.times_ns[i], row).second;
    }
  };
  auto done = read_store(directory, 0, visitor);
  EXPECT_FALSE(twice) << "a sample is there twice";
  if (!done) return pass_on(done);
  return samples;
}

// Claim:  what was committed is read back, from the log, from segments, and by a second writer.
// Oracle: a map.
TEST_F(Store, GivesBackWhatItTook) {
  std::mt19937_64 random(3);
  Samples model;
  std::int64_t time_ns = 1'700'000'000'000'000'000;
  std::size_t sealed = 0;
  for (int life = 0; life < 3; ++life) {
    auto store = StoreWriter::open(path());
    ASSERT_TRUE(store) << store.error().message;
    for (int turn = 0; turn < 40; ++turn) {
      for (int i = 0; i < 20; ++i) {
        const std::string host = fmt::format("h{}", random() % 5);
        const Group group = group_of(host, 1 + static_cast<std::uint32_t>(host[1] - '0'));
        time_ns += static_cast<std::int64_t>(random() % 1000000);
        std::vector<std::uint64_t> values(group.width());
        for (std::uint64_t& value : values) value = random() % 1000;
        values.back() = std::bit_cast<std::uint64_t>(static_cast<double>(random() % 100) / 100);
        (*store)->add((*store)->group(group), time_ns, values);
        model[host][time_ns] = values;
      }
      if (random() % 8 == 0) {
        ASSERT_TRUE((*store)->seal());
        ++sealed;
      } else {
        ASSERT_TRUE((*store)->commit());
      }
      if (turn % 10 == 0) ASSERT_EQ(samples_in(path()).value(), model);
    }
    ASSERT_TRUE((*store)->commit());
  }
  ASSERT_EQ(samples_in(path()).value(), model);
  EXPECT_GT(sealed, 3U);
}

// Claim: a tier holds least, greatest, last, sum and count of each bucket.
TEST_F(Store, MakesTiers) {
  auto store = StoreWriter::open(path());
  ASSERT_TRUE(store);
  const Group group = group_of("h", 1);
  for (int i = 0; i < 250; ++i) {
    const std::uint64_t values[] = {static_cast<std::uint64_t>((i * 37) % 100),
                                    std::bit_cast<std::uint64_t>(i * 0.5)};
    (*store)->add((*store)->group(group), 100'000'000LL * i, values);
    if (i == 130) ASSERT_TRUE((*store)->seal());
  }
  ASSERT_TRUE((*store)->commit());                        // the rest is in the log
  std::map<std::int64_t, std::array<double, 4>> buckets;  // count, least, greatest, sum of load
  Visitor visitor;
  visitor.tier_chunk = [&](const TierChunk& chunk) {
    for (std::size_t i = 0; i < chunk.begins_ns.size(); ++i) {
      auto [place, is_new] =
          buckets.emplace(chunk.begins_ns[i], std::array<double, 4>{0, 1e9, 0, 0});
      auto& bucket = place->second;
      bucket[0] += static_cast<double>(chunk.counts[i]);
      bucket[1] = std::min(bucket[1], static_cast<double>(chunk.columns[0].least[i]));
      bucket[2] = std::max(bucket[2], static_cast<double>(chunk.columns[0].greatest[i]));
      bucket[3] += std::bit_cast<double>(chunk.columns[1].sum[i]);
    }
  };
  ASSERT_TRUE(read_store(path(), kTierSteps[0], visitor));
  ASSERT_EQ(buckets.size(), 3U);
  for (int b = 0; b < 3; ++b) {
    std::array<double, 4> expected = {0, 1e9, 0, 0};
    for (int i = b * 100; i < std::min(250, b * 100 + 100); ++i) {
      expected[0] += 1;
      expected[1] = std::min(expected[1], static_cast<double>((i * 37) % 100));
      expected[2] = std::max(expected[2], static_cast<double>((i * 37) % 100));
      expected[3] += i * 0.5;
    }
    EXPECT_EQ(buckets[b * 10'000'000'000LL], expected) << b;
  }
}

/// Adds samples 0, 1, 2... and writes each number that is acknowledged into the pipe.
[[noreturn]] void write_until_killed(const std::string& directory, int pipe, std::uint64_t begin,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto store = StoreWriter::open(directory, {.most_waiting_samples = 3000});
  if (!store) _exit(1);
  for (std::uint64_t n = begin;;) {
    for (std::uint64_t i = random() % 20 + 1; i > 0; --i, ++n) {
      const std::uint64_t values[] = {n, std::bit_cast<std::uint64_t>(static_cast<double>(n) / 4)};
      (*store)->add((*store)->group(group_of(fmt::format("h{}", n % 3), 1)),
                    static_cast<std::int64_t>(n * 1000), values);
    }
    if (!(*store)->commit()) _exit(2);
    if (write(pipe, &n, sizeof n) != sizeof n) _exit(3);
  }
}

// Claim:  a writer that is killed at any moment loses no sample that was acknowledged, and leaves a
//         store that the next one goes on with.
// Method: 20 writers, one after the other, each killed by SIGKILL after a random time; more where a
//         busy machine lets them write too little in it.
TEST_F(Store, LosesNothingToTwentyKills) {
  std::mt19937_64 random(20);
  std::set<std::uint64_t> acknowledged;
  std::uint64_t begin = 0;
  for (int kills = 0; kills < 20 || (acknowledged.size() <= 100 && kills < 400); ++kills) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_until_killed(path(), ends[1], begin, random());
    close(ends[1]);
    usleep(static_cast<useconds_t>(20000 + random() % 60000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    std::uint64_t n = begin;
    for (std::uint64_t one = 0; read(ends[0], &one, sizeof one) == sizeof one;) {
      for (; n < one; ++n) acknowledged.insert(n);
    }
    close(ends[0]);
    begin = n + 1000;  // what was not acknowledged may be there or not
    const auto samples = samples_in(path());
    if (!samples && acknowledged.empty()) continue;  // killed before there was a store
    ASSERT_TRUE(samples) << samples.error().message;
    for (const std::uint64_t wanted : acknowledged) {
      const auto& of_host = samples->at(fmt::format("h{}", wanted % 3));
      const auto found = of_host.find(static_cast<std::int64_t>(wanted * 1000));
      ASSERT_NE(found, of_host.end()) << wanted << " is lost after kill " << kills;
      ASSERT_EQ(found->second.front(), wanted);
    }
  }
  EXPECT_GT(acknowledged.size(), 100U);
}

// Claim: a store has one writer; another waits, and takes over when the first has ended or stands
//        still for longer than its lease. Who lost the lease writes no more.
TEST_F(Store, HasOneWriter) {
  // A lease is judged by who wants it: a machine that is busy holds the first one up for long.
  const StoreOptions patient{.lease = std::chrono::minutes(5)};
  const StoreOptions quick{.lease = std::chrono::milliseconds(200)};
  auto first = StoreWriter::open(path(), quick);
  ASSERT_TRUE(first);
  const std::uint64_t values[] = {1, 0};
  (*first)->add((*first)->group(group_of("h", 1)), 1000, values);
  ASSERT_TRUE((*first)->commit());
  const auto refused = StoreWriter::open(path(), patient);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  usleep(400000);  // it stands still
  auto second = StoreWriter::open(path(), quick);
  ASSERT_TRUE(second) << second.error().message;
  (*first)->add((*first)->group(group_of("h", 1)), 2000, values);
  const auto late = (*first)->commit();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kRefused);
  first->reset();
  (*second)->add((*second)->group(group_of("h", 1)), 3000, values);
  ASSERT_TRUE((*second)->commit());
  std::thread ends([&] {
    usleep(100000);
    second->reset();
  });
  EXPECT_TRUE(wait_for_lease(path(), std::chrono::seconds(30), [] { return false; }).value());
  ends.join();
  const auto samples = samples_in(path()).value();
  EXPECT_TRUE(samples.at("h").contains(1000));
  EXPECT_FALSE(samples.at("h").contains(2000));
  EXPECT_TRUE(samples.at("h").contains(3000));
}

// Claim: damage is told with file and place, and never crashes.
TEST_F(Store, ThatIsDamagedSaysWhere) {
  {
    auto store = StoreWriter::open(path());
    ASSERT_TRUE(store);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t values[] = {static_cast<std::uint64_t>(i), 0};
      (*store)->add((*store)->group(group_of("h", 1)), i, values);
    }
    ASSERT_TRUE((*store)->seal());
  }
  const std::string segment = path() + "/00000001.raw";
  std::ifstream file(segment, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(11);
  for (int round = 0; round < 600; ++round) {
    std::string bytes = good;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(segment, std::ios::binary) << bytes;
    const auto samples = samples_in(path());
    if (samples && round % 3 != 0) continue;  // the head's number is not used
    ASSERT_FALSE(samples) << round;
    EXPECT_EQ(samples.error().code, ErrorCode::kBadInput);
    EXPECT_NE(samples.error().message.find("00000001.raw: at byte"), std::string::npos);
  }
}

// Claim: what is no store is not made one.
TEST_F(Store, IsNotMadeOfOthersFiles) {
  std::ofstream(folder_ + "/precious") << "x";
  EXPECT_EQ(StoreWriter::open(folder_).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(samples_in(folder_ + "/none").error().code, ErrorCode::kBadInput);
}

// Claim:  a full disk costs the samples that were not acknowledged; the store goes on when there is
//         room again.
TEST_F(Store, GoesOnAfterAFullDisk) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(77);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=256k") != 0) _exit(77);
    auto store = StoreWriter::open(path());
    if (!store) _exit(1);
    std::mt19937_64 random(1);
    std::set<std::int64_t> kept;
    int failed = 0;
    for (std::int64_t i = 0; failed < 3; ++i) {
      std::vector<std::uint64_t> values(2001);
      for (std::uint64_t& value : values) value = random();
      (*store)->add((*store)->group(group_of("h", 2000)), i, values);
      if ((*store)->commit())
        kept.insert(i);
      else
        ++failed;
      if (i > 1000) _exit(2);
    }
    std::filesystem::remove(folder_ + "/big");
    if (mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=8m") != 0) _exit(77);
    for (std::int64_t i = 2000; i < 2010; ++i) {
      const std::vector<std::uint64_t> values(2001, 5);
      (*store)->add((*store)->group(group_of("h", 2000)), i, values);
      if (!(*store)->commit()) _exit(3);
      kept.insert(i);
    }
    store->reset();
    const auto samples = samples_in(path());
    if (!samples) _exit(4);
    std::set<std::int64_t> found;
    for (const auto& [time_ns, values] : samples->at("h")) found.insert(time_ns);
    _exit(found == kept ? 0 : 5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "needs root or user namespaces, to mount a small file system";
  }
  EXPECT_EQ(status, 0) << "a signal, or the step that failed: " << WEXITSTATUS(status);
}

}  // namespace
}  // namespace greynic::series
