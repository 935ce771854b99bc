#include "greynic/model/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "plain_law.h"

namespace greynic::model {
namespace {

std::unique_ptr<Model> planted_model() {
  std::mt19937_64 random(21);
  FitOptions options;
  options.form = Form::kPipeline;
  options.cross_validate = false;
  options.starts = 1;
  options.intervals = Intervals::kCovariance;
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
  result.configuration = {{"message_bytes", bytes},
                          {"qp_count", qps},
                          {"client_encap_masks", 0.0},
                          {"server_decap_masks", 0.0},
                          {"operation", std::string("SEND")}};
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

// Claim:  mean and 99th percentile of the waiting time are those of the queue they stand for.
// Oracle: Lindley's recursion: 2 million messages of two kinds arrive at random at one server.
TEST(Workload, WaitsAsLongAsASimulatedQueue) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  for (const double load : {0.3, 0.7, 0.9}) {
    Workload workload;
    workload.flows = {flow("long", "h1", "h2", 65536, 8, 1.0),
                      flow("short", "h1", "h3", 4096, 8, 1.0)};
    const auto light = predict_workload(*model, workload);
    ASSERT_TRUE(light);
    // Each flow takes half of the load; the sides' busy shares tell the service times.
    const auto busy_of = [&](const std::string& host) {
      for (const SidePrediction& side : light->sides) {
        if (side.host == host) return side.busy_share;
      }
      return 0.0;
    };
    const double per_gbps[2] = {busy_of("h2"), busy_of("h3")};
    const double bytes[2] = {65536, 4096};
    double rate[2];
    double service[2];
    for (std::size_t k = 0; k < 2; ++k) {
      workload.flows[k].offered_gbps = 0.5 * load / per_gbps[k];
      rate[k] = workload.flows[k].offered_gbps / (bytes[k] * 8e-3);
      service[k] = per_gbps[k] * bytes[k] * 8e-3;
    }
    // The receivers queue too: a receiver of its own each, so the simulated chain has only the
    // sender; the receivers' waits, of fixed service times, come from the formula for M/D/1.
    const auto result = predict_workload(*model, workload);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->flows[1].limited_by, "offer");

    std::mt19937_64 random(9);
    std::exponential_distribution<double> gap(rate[0] + rate[1]);
    std::bernoulli_distribution is_long(rate[0] / (rate[0] + rate[1]));
    double wait = 0.0;
    double sum = 0.0;
    std::vector<double> waits;
    for (int i = 0; i < 2'000'000; ++i) {
      sum += wait;
      waits.push_back(wait);
      wait = std::max(0.0, wait + service[is_long(random) ? 0 : 1] - gap(random));
    }
    std::nth_element(waits.begin(), waits.begin() + static_cast<long>(0.99 * waits.size()),
                     waits.end());
    const double mean = sum / static_cast<double>(waits.size());
    const double p99 = waits[static_cast<std::size_t>(0.99 * waits.size())];

    const auto alone = model->predict(workload.flows[1].configuration);
    ASSERT_TRUE(alone);
    const double base = alone->measures.at("latency_us_p50").value;
    const double receiver = 0.5 * rate[1] * service[1] * service[1] / (1.0 - 0.5 * load);
    EXPECT_NEAR(result->flows[1].latency_us_p50.value - base - receiver, mean, 0.05 * mean) << load;
    EXPECT_NEAR(result->flows[1].latency_us_p99.value - base - receiver, p99, 0.2 * p99) << load;
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
