#include "greynic/model/workload.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "../plain_law.h"
#include "sized.h"

namespace greynic::model {
namespace {

std::unique_ptr<Model> planted_model() {
  std::mt19937_64 random(21);
  const FitOptions options = quick();
  auto report = fit(plant(PlainLaw(), 200, 0.005, random), options);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return report ? std::move(report->model) : nullptr;
}

WorkloadFlow flow(const std::string& name, const std::string& from, const std::string& to,
                  double bytes, double qps, double offered) {
  WorkloadFlow result;
  result.name = name;
  result.from = from;
  result.to = to;
  result.offered_gbps = offered;
  result.configuration = {{"message_bytes", bytes},    {"qp_count", qps},
                          {"client_encap_masks", 0.0}, {"server_decap_masks", 0.0},
                          {"mtu_bytes", 1024.0},       {"operation", std::string("SEND")}};
  return result;
}

// Claim:  two flows alike share one RNIC evenly and together get what it can send; a third on other
//         hosts is not touched.
TEST(Workload, SharesAnRnicByItsQps) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  Workload workload;
  workload.flows = {flow("a", "h1", "h2", 1 << 20, 4, 0), flow("b", "h1", "h3", 1 << 20, 4, 0),
                    flow("c", "h4", "h5", 1 << 20, 4, 0)};
  const auto result = predict_workload(*model, workload);
  ASSERT_TRUE(result) << result.error().message;
  const double a = result->flows[0].bandwidth_gbps.value;
  const double b = result->flows[1].bandwidth_gbps.value;
  const double c = result->flows[2].bandwidth_gbps.value;
  EXPECT_NEAR(a, b, 1e-6 * a);
  EXPECT_NEAR(a + b, c, 0.05 * c);  // one flow of 4 QPs fills the line already
  EXPECT_EQ(result->flows[0].limited_by, "h1 sends");
}

// Claim:  QPs that always send get as many turns each, whatever the size of their messages.
// Oracle: a turn is four packets, of 4 KiB in all here.
TEST(Workload, GivesEachQpAsManyTurns) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  Workload workload;
  workload.flows = {flow("long", "h1", "h2", 65536, 8, 0), flow("short", "h1", "h3", 4096, 16, 0)};
  const auto result = predict_workload(*model, workload);
  ASSERT_TRUE(result) << result.error().message;
  for (const FlowPrediction& f : result->flows) EXPECT_EQ(f.limited_by, "h1 sends");
  EXPECT_NEAR(result->flows[1].bandwidth_gbps.value, 2.0 * result->flows[0].bandwidth_gbps.value,
              1e-6 * result->flows[1].bandwidth_gbps.value);
}

// Claim:  more QPs get more; an offer that fits is granted, and no side is busier than full.
TEST(Workload, KeepsEverySideWithinItsTime) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    Workload workload;
    for (int i = 0; i < 12; ++i) {
      const auto pick = [&](std::initializer_list<double> from) {
        return *(from.begin() + static_cast<long>(random() % from.size()));
      };
      const std::string from = "h" + std::to_string(random() % 4);
      const std::string to = "h" + std::to_string(4 + random() % 4);
      workload.flows.push_back(flow("f" + std::to_string(i), from, to,
                                    pick({64, 1024, 65536, 1048576}), pick({1, 4, 16}),
                                    pick({0, 0.5, 5, 500})));
    }
    const auto result = predict_workload(*model, workload);
    ASSERT_TRUE(result) << result.error().message;
    for (const SidePrediction& side : result->sides) {
      EXPECT_LE(side.busy_share, 1.0 + 1e-9);
      EXPECT_GT(side.busy_share, 0.0);
    }
    for (std::size_t i = 0; i < workload.flows.size(); ++i) {
      const FlowPrediction& f = result->flows[i];
      EXPECT_TRUE(std::isfinite(f.latency_us_p99.value) && f.bandwidth_gbps.value > 0.0);
      EXPECT_LE(f.latency_us_p50.value, f.latency_us_p99.value * (1 + 1e-9));
      if (workload.flows[i].offered_gbps > 0.0) {
        EXPECT_LE(f.bandwidth_gbps.value, workload.flows[i].offered_gbps * (1 + 1e-9));
      }
    }
  }
}

double quantile(std::vector<double> x, double share) {
  const auto place = x.begin() + static_cast<long>(share * static_cast<double>(x.size()));
  std::nth_element(x.begin(), place, x.end());
  return *place;
}

struct Message {
  double due = 0.0;
  std::size_t kind = 0;
  double left = 0.0;  ///< service
};

struct Turn {
  double begins = 0.0;
  double lasts = 0.0;
  Message message;  ///< as it is after the turn; left 0: done
};

constexpr std::size_t kQps = 8;  ///< of each kind of message
constexpr std::size_t kRestless = 99;

/// Turns of a sender's QPs, in order: each first come, first served, messages at random times to
/// random QPs; round and round, `turns` of a kind at most at a time. `restless` further QPs always
/// have a turn of the first kind to take.
std::vector<Turn> take_turns(const std::vector<double>& services, const std::vector<double>& turns,
                             double load, int restless, int count, std::mt19937_64& random) {
  std::vector<double> rates;
  for (const double s : services) rates.push_back(load / static_cast<double>(services.size()) / s);
  std::exponential_distribution<double> gap(std::accumulate(rates.begin(), rates.end(), 0.0));
  std::discrete_distribution<std::size_t> kind(rates.begin(), rates.end());
  std::vector<std::deque<Message>> queues(services.size() * kQps);
  std::deque<std::size_t> ring(static_cast<std::size_t>(restless), kRestless);
  std::vector<Turn> taken;
  double now = 0.0;
  double due = gap(random);
  const auto arrive = [&] {
    const std::size_t k = kind(random);
    const std::size_t q = k * kQps + random() % kQps;
    if (queues[q].empty()) ring.push_back(q);
    queues[q].push_back({due, k, services[k]});
    due += gap(random);
    --count;
  };
  while (count > 0) {
    if (ring.empty()) now = due;
    while (due <= now && count > 0) arrive();
    const std::size_t q = ring.front();
    ring.pop_front();
    if (q == kRestless) {
      now += turns[0];
      while (due <= now && count > 0) arrive();
      ring.push_back(q);
      continue;
    }
    Message& message = queues[q].front();
    const double lasts = std::min(turns[message.kind], message.left);
    message.left = message.left - lasts < 1e-9 * lasts ? 0.0 : message.left - lasts;
    taken.push_back({now, lasts, message});
    now += lasts;
    while (due <= now && count > 0) arrive();
    if (message.left == 0.0) queues[q].pop_front();
    if (!queues[q].empty()) ring.push_back(q);
  }
  return taken;
}

/// Waits of each kind at a receiver that takes turns as they come and ends none before its sender.
std::vector<std::vector<double>> waits_of(std::vector<Turn> turns,
                                          const std::vector<double>& services) {
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Turn& a, const Turn& b) { return a.begins < b.begins; });
  std::vector<std::vector<double>> waits(services.size());
  double free = 0.0;
  for (const Turn& turn : turns) {
    free = std::max(free, turn.begins) + turn.lasts;
    const Message& m = turn.message;
    if (m.left == 0.0) waits[m.kind].push_back(free - m.due - services[m.kind]);
  }
  return waits;
}

/// Goodput of one flow of `bytes` that keeps its sides busy all the time, Gbit/s.
double full_gbps(const Model& model, double bytes) {
  Workload workload;
  workload.flows = {flow("alone", "h1", "h2", bytes, 8, 1.0)};
  const auto result = predict_workload(model, workload);
  EXPECT_TRUE(result);
  return 1.0 / result->sides[0].busy_share;
}

struct Case {
  int senders = 1;
  double load = 0.0;   ///< of the receiver
  int restless = 0;    ///< QPs of the first sender that always have something for another host
  double part = 0.25;  ///< of the simulated wait, by which the law may miss it
};

/// The law's waits beside those of the simulation, for messages of sixteen turns and of one.
void compare_waits(const Model& model, const Case& c) {
  const std::vector<double> bytes = {65536, 4096};
  std::vector<double> services;
  for (const double b : bytes) services.push_back(b * 8e-3 / full_gbps(model, b));
  Workload workload;
  for (int s = 0; s < c.senders; ++s) {
    for (std::size_t k = 0; k < 2; ++k) {
      const double share = c.load / c.senders / 2.0;
      workload.flows.push_back(flow(std::to_string(s) + std::to_string(k),
                                    "from" + std::to_string(s), "to", bytes[k], kQps,
                                    share * bytes[k] * 8e-3 / services[k]));
    }
  }
  if (c.restless > 0) {
    workload.flows.push_back(flow("full", "from0", "elsewhere", bytes[0], c.restless, 0));
  }
  const auto result = predict_workload(model, workload);
  ASSERT_TRUE(result);

  std::mt19937_64 random(9);
  std::vector<Turn> turns;
  for (int s = 0; s < c.senders; ++s) {
    const auto own = take_turns(services, {services[0] / 16.0, services[1]}, c.load / c.senders,
                                c.restless, 500'000 / c.senders, random);
    turns.insert(turns.end(), own.begin(), own.end());
  }
  const auto waits = waits_of(std::move(turns), services);
  for (std::size_t k = 0; k < 2; ++k) {
    const FlowPrediction& predicted = result->flows[k];
    ASSERT_EQ(predicted.limited_by, "offer");
    const auto alone = model.predict(workload.flows[k].configuration);
    ASSERT_TRUE(alone);
    const double base = alone->measures.at("latency_us_p50").value;
    const double median = predicted.latency_us_p50.value - base;
    const double tail = predicted.latency_us_p99.value - base;
    const double p50 = quantile(waits[k], 0.5);
    const double p99 = quantile(waits[k], 0.99);
    const std::string where = fmt::format(
        "{} B, {} senders, load {}, {} restless: p50 +{:.2f} ({:.2f}), p99 +{:.2f} ({:.2f})",
        bytes[k], c.senders, c.load, c.restless, median, p50, tail, p99);
    fmt::print("{}\n", where);
    // Where half of all messages do not wait at all, the median is tiny beside a turn.
    EXPECT_NEAR(median, p50, c.part * p50 + services[0] / 16.0) << where;
    EXPECT_NEAR(tail, p99, c.part * p99) << where;
  }
}

// Claim:  median and 99th percentile of the waiting time are those of the queues they stand for:
//         from one host to another, from two to a third, and beside QPs that always send, which
//         keep more or fewer others about than the law's even crowd.
// Oracle: half a million messages, turn by turn, at the senders and at the receiver. Nothing is
//         assumed about how many are there at once or what a sender's queue leaves of chance.
TEST(Workload, WaitsAsLongAsASimulatedQueue) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  for (const double load : {0.3, 0.6, 0.85}) {
    if (kSanitized && load < 0.8) continue;
    compare_waits(*model, {1, load});
    compare_waits(*model, {2, load});
  }
  for (const double load : {0.2, 0.4, 0.6}) {
    if (!kSanitized || load > 0.5) compare_waits(*model, {1, load, 2, 0.35});
  }
}

// Claim:  a wrong file is refused with its name and the place; a layout sets the masks.
TEST(WorkloadFile, IsReadAndRefused) {
  const std::string folder = testing::TempDir();
  const std::string path = folder + "greynic_workload.json";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  write(R"({"version":1,"flows":[{"name":"a","from":"h1","to":"h1"}]})");
  const auto same = read_workload(path);
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().message.find("/flows/0"), std::string::npos) << same.error().message;
  write(R"({"version":1,"flows":[{"name":"a","from":"h1","to":"h2","offered_gbps":-1}]})");
  EXPECT_FALSE(read_workload(path));
  write(R"({"version":1,"flows":[{"name":"a","from":"h1","to":"h2",
           "configuration":{"message_bytes":4096},"packet":{"l4_dst_port":"443"}}],
           "layouts":{"server_decap":"greynic_workload_layout.json"}})");
  EXPECT_FALSE(read_workload(path));  // no such layout
  std::ofstream(folder + "greynic_workload_layout.json")
      << R"({"version":1,"tables":[{"id":0,"matchers":[
            {"mask":{"l4_dst_port":"0xffff"},"priority":0,
             "rules":[{"match":{"l4_dst_port":"80"},"actions":[{"drop":true}],"weight":1}]}]}]})";
  const auto read = read_workload(path);
  if (read) EXPECT_EQ(read->layouts.size(), 1U);
  EXPECT_TRUE(read) << read.error().message;
  std::filesystem::remove(path);
  std::filesystem::remove(folder + "greynic_workload_layout.json");
}

}  // namespace
}  // namespace greynic::model
