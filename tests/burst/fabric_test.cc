#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "greynic/twin/bursts.h"

namespace greynic::twin {
namespace {

struct Score {
  std::uint64_t right = 0, wrong = 0, missed = 0;
  [[nodiscard]] double precision() const {
    return right + wrong == 0 ? 1.0
                              : static_cast<double>(right) / static_cast<double>(right + wrong);
  }
  [[nodiscard]] double recall() const {
    return right + missed == 0 ? 1.0
                               : static_cast<double>(right) / static_cast<double>(right + missed);
  }
};

struct Logged {
  PacketRecord record;
  bool marked = false;
};

using Log = std::map<std::string, std::vector<Logged>>;

/// Who took part, from enqueue and dequeue times alone: depths are counted again, packet by packet.
std::vector<bool> oracle(const std::vector<Logged>& log, std::uint64_t threshold) {
  std::vector<bool> took_part(log.size());
  for (std::size_t i = 0; i < log.size(); ++i) {
    const Time now = log[i].record.enqueued;
    std::uint64_t depth = log[i].record.bytes;
    std::size_t first = i;
    while (first > 0 && log[first - 1].record.dequeued > now) depth += log[--first].record.bytes;
    if (depth <= threshold) continue;
    for (std::size_t j = first; j <= i; ++j) took_part[j] = true;
  }
  return took_part;
}

BurstWorkload workload_of(const std::string& traffic, const std::string& settings) {
  const std::string path = ::testing::TempDir() + "burst_workload.json";
  std::ofstream(path) << R"({"version":1,"hosts":9,"link_gbps":25,)" << settings << R"("traffic":[)"
                      << traffic << "]}";
  auto read = read_burst_workload(path);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *read : BurstWorkload{};
}

burst::Findings watched(const BurstWorkload& workload, BurstWatchOptions options, Log& log) {
  options.departed = [&log](const PacketRecord& record, bool marked) {
    log[to_string(record.port)].push_back({record, marked});
  };
  auto found = watch_bursts(workload, options);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? std::move(*found) : burst::Findings{};
}

Score score_of(const Log& log, const burst::Findings& findings) {
  Score score;
  for (const burst::QueueName& queue : findings.queues) {
    const auto found = log.find(queue.name);
    if (found == log.end()) continue;
    const auto truth = oracle(found->second, queue.threshold_bytes);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const bool marked = found->second[i].marked;
      score.right += truth[i] && marked ? 1 : 0;
      score.wrong += !truth[i] && marked ? 1 : 0;
      score.missed += truth[i] && !marked ? 1 : 0;
    }
  }
  return score;
}

constexpr const char* kWorkloads[] = {
    R"({"kind":"on_off","shape":"web","to":0},{"kind":"on_off","shape":"web","to":2},)"
    R"({"kind":"on_off","shape":"web","to":4},{"kind":"on_off","shape":"web","to":6})",
    R"({"kind":"on_off","shape":"cache","to":0},{"kind":"on_off","shape":"cache","to":5})",
    R"({"kind":"on_off","shape":"hadoop","to":0})",
    R"({"kind":"incast","to":0,"message_bytes":20000,"every_us":300})",
    R"({"kind":"trains","to":0,"senders":4,"every_us":80},{"kind":"steady","to":0,"from":6,"gbps":2})",
};

// Claim:  on the fabric, armed at enqueue, precision and recall by packet are above .999 at every
//         queue of host and switch, with and without PFC and DCQCN, on one switch and a leaf-spine;
//         dequeue-only marks nobody who did not take part.
// Oracle: the complete packet log, depths counted again from times.
TEST(FabricBursts, AgreeWithThePacketLog) {
  for (const char* settings :
       {"", R"("pfc":false,)", R"("dcqcn":true,)", R"("hosts_per_leaf":3,)"}) {
    for (const char* traffic : kWorkloads) {
      const BurstWorkload workload =
          workload_of(traffic, std::string(R"("duration_us":20000,"seed":5,)") + settings);
      BurstWatchOptions options;
      options.allowance = {.rtt = std::chrono::microseconds(50), .share_e8 = 5'000'000};
      Log log;
      const auto findings = watched(workload, options, log);
      const Score score = score_of(log, findings);
      EXPECT_GE(score.precision(), 0.999) << settings << traffic;
      EXPECT_GE(score.recall(), 0.999) << settings << traffic;
      EXPECT_GT(score.right, 50U) << settings << traffic;
      EXPECT_EQ(findings.records_lost, 0U);
      options.mode = burst::Mode::kDequeueOnly;
      Log again;
      const auto seen_leaving = watched(workload, options, again);
      const Score leaving = score_of(again, seen_leaving);
      EXPECT_EQ(leaving.precision(), 1.0) << settings << traffic;
    }
  }
}

// Claim:  an incast's bursts name its senders, all and no others, and its victim.
TEST(FabricBursts, NameTheSendersOfAnIncast) {
  const BurstWorkload workload = workload_of(
      R"({"kind":"incast","to":0,"from":[1,2,3,4,5,6,7],"message_bytes":32768,"every_us":250},)"
      R"({"kind":"steady","to":0,"from":8,"gbps":0.5,"message_bytes":512})",
      R"("duration_us":1000,)");
  BurstWatchOptions options;
  options.allowance = {.rtt = std::chrono::microseconds(50)};
  Log log;
  const auto findings = watched(workload, options, log);
  std::size_t at_receiver = 0;
  for (const burst::Burst& burst : findings.bursts) {
    if (findings.queues[burst.queue].name != "switch 0 port 0") continue;
    ++at_receiver;
    EXPECT_EQ(burst.incast_degree, 7 + burst.victims);
    EXPECT_EQ(burst.flows.size() - burst.victims, 7U);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_NEAR(burst.share(burst.flows[i]), 1.0 / 7.0, 0.02);
    }
  }
  EXPECT_EQ(at_receiver, 4U);
}

}  // namespace
}  // namespace greynic::twin
