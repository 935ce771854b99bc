#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "day_clock.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/monitor/record_ring.h"
#include "greynic/monitor/timer_wheel.h"

namespace greynic::monitor {
namespace {

// Claim:  what is due comes out when it is due, and not before.
// Oracle: a sorted map.
TEST(TimerWheel, GivesWhatIsDue) {
  std::mt19937_64 random(5);
  std::uint64_t now = 1000;
  TimerWheel wheel(now);
  std::multimap<std::uint64_t, std::uint32_t> model;
  std::vector<std::uint32_t> due;
  for (std::uint32_t step = 0; step < 20000; ++step) {
    const std::uint64_t at = now + random() % (step % 50 == 0 ? 20000 : 300);
    wheel.add(step, at);
    model.emplace(std::max(at, now + 1), step);
    if (random() % 3 != 0) continue;
    const std::uint64_t next = wheel.next_ms(100);
    if (model.begin()->first < now + 100) ASSERT_LE(next, model.begin()->first);
    now += step % 997 == 0 ? 9000 : random() % 20;
    due.clear();
    wheel.advance(now, due);
    std::multiset<std::uint32_t> expected;
    while (!model.empty() && model.begin()->first <= now) {
      expected.insert(model.begin()->second);
      model.erase(model.begin());
    }
    ASSERT_EQ(std::multiset<std::uint32_t>(due.begin(), due.end()), expected) << now;
    ASSERT_EQ(wheel.size(), model.size());
  }
}

// Claim:  a clock that is set, forward or back, is told once, with by how much, and followed; what a
//         time service corrects little by little moves no sample.
// Oracle: a real clock and a steady one, both by hand.
TEST(DayClock, TellsAStepOnce) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  DayClock clock;
  std::int64_t real = 1'700'000'000 * kSecond, steady = 77 * kSecond, stepped = 0;
  EXPECT_EQ(clock.now(real, steady, stepped), real);
  EXPECT_EQ(stepped, 0);
  for (const std::int64_t step : {3600 * kSecond, -7200 * kSecond, 2 * kSecond}) {
    real += step + kSecond;
    steady += kSecond;
    EXPECT_EQ(clock.now(real, steady, stepped), real);
    EXPECT_EQ(stepped, step);
    real += kSecond;
    steady += kSecond;
    EXPECT_EQ(clock.now(real, steady, stepped), real);
    EXPECT_EQ(stepped, 0);
  }
  const std::int64_t before = clock.now(real, steady, stepped);
  EXPECT_EQ(clock.now(real + kSecond / 2, steady + kSecond / 4, stepped), before + kSecond / 4);
  EXPECT_EQ(stepped, 0);
}

// Claim: records come out whole and in order, whatever their lengths, with two threads.
TEST(RecordRing, CarriesEveryRecord) {
  RecordRing ring(1000);
  constexpr std::uint64_t kRecords = 200000;
  std::thread putting([&] {
    std::mt19937_64 random(6);
    for (std::uint64_t n = 0; n < kRecords;) {
      const auto room = ring.room(1 + random() % 60);
      if (room.empty()) {
        std::this_thread::yield();
        continue;
      }
      for (std::uint64_t& word : room) word = n;
      ring.put(room);
      ++n;
    }
  });
  for (std::uint64_t n = 0; n < kRecords;) {
    const auto record = ring.front();
    if (record.empty()) {
      std::this_thread::yield();
      continue;
    }
    for (const std::uint64_t word : record) ASSERT_EQ(word, n);
    ring.drop(record);
    ++n;
  }
  putting.join();
  EXPECT_TRUE(ring.front().empty());
  EXPECT_TRUE(ring.room(5000).empty()) << "longer than the ring";
}

// Claim: a bad file is told with its place.
TEST(HostsFile, SaysWhatIsWrongWhere) {
  const std::string path = testing::TempDir() + "hosts.json";
  const auto error_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    const auto hosts = read_hosts(path);
    if (hosts) return std::string("read");
    EXPECT_EQ(hosts.error().code, ErrorCode::kBadInput);
    EXPECT_NE(hosts.error().message.find("hosts.json"), std::string::npos);
    return hosts.error().message;
  };
  const auto says = [&](const std::string& text, const std::string& what) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(what), std::string::npos) << text << "\n" << error;
  };
  says(R"({"version":1,"hosts":[{"name":"a"}]})", "/hosts/0");
  says(R"({"version":1,"hosts":[{"name":"a","agent":"/x","pid":3}]})", "give one of them");
  says(R"({"version":1,"hosts":[{"name":"a","pid":3},{"name":"a","pid":4}]})", "/hosts/1/name");
  says(R"({"version":1,"hosts":[{"name":"a","pid":3,"interval":"0ms"}]})", "/hosts/0/interval");
  says(R"({"version":1,"interval":"7","hosts":[{"name":"a","pid":3}]})", "/interval");
  says(R"({"version":1,"hosts":[{"name":"a","pid":"3"}]})", "/hosts/0/pid");
  says(R"({"version":2,"hosts":[{"name":"a","pid":3}]})", "/version");
  says(R"({"version":1,"hosts":[]})", "/hosts");
  says(R"({"version":1,"hosts":[{"name":"a","pid":3,"classes":["all"]}]})", "/hosts/0/classes/0");
  says(R"({"version":1,"hosts":[{"name":"a","pid":3},
           {"name":"b","remote":"b:1","certificates":"/no/such"}]})",
       "/hosts/1/certificates: /no/such is no directory");
  says(R"({"version":1,"certificates":"/no/such","hosts":[{"name":"b","remote":"b:1"}]})",
       "/certificates: /no/such");
  std::string countless = "\"tidal\"";
  for (int i = 0; i < 300'000; ++i) countless += ",\"tidal\"";
  says(R"({"version":1,"hosts":[{"name":"a","pid":3,"classes":[)" + countless + "]}]}",
       "/hosts/0/classes");
  says("{", "hosts.json");
  EXPECT_EQ(error_of(R"({"version":1,"interval":"5ms","hosts":[
      {"name":"a","agent":"/x","classes":["tidal"],"priority":"high"},{"name":"b","region":"/y"}]})"),
            "read");
  const auto hosts = read_hosts(path).value();
  EXPECT_EQ(hosts[0].classes, 4U);
  EXPECT_EQ(hosts[0].interval, std::chrono::milliseconds(5));
  EXPECT_EQ(hosts[0].priority, Priority::kHigh);
}

}  // namespace
}  // namespace greynic::monitor
