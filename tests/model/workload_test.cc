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

/// Starts of messages that arrive at `arrivals` at one server and keep it for `services`: Lindley.
std::vector<double> starts_of(const std::vector<double>& arrivals,
                              const std::vector<double>& services) {
  std::vector<double> starts;
  double free = 0.0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    starts.push_back(std::max(free, arrivals[i]));
    free = starts.back() + services[i];
  }
  return starts;
}

double quantile(std::vector<double> x, double share) {
  const auto place = x.begin() + static_cast<long>(share * static_cast<double>(x.size()));
  std::nth_element(x.begin(), place, x.end());
  return *place;
}

/// Random arrivals of messages that keep a side busy for `services` in equal shares of the load.
struct Arrivals {
  std::vector<double> at;
  std::vector<double> service;
  std::vector<std::size_t> kind;
};

Arrivals arrive(const std::vector<double>& services, double load, int count,
                std::mt19937_64& random) {
  std::vector<double> rates;
  double all = 0.0;
  for (const double service : services) {
    rates.push_back(load / static_cast<double>(services.size()) / service);
    all += rates.back();
  }
  std::exponential_distribution<double> gap(all);
  std::discrete_distribution<std::size_t> kind(rates.begin(), rates.end());
  Arrivals result;
  double t = 0.0;
  for (int i = 0; i < count; ++i) {
    result.at.push_back(t += gap(random));
    result.kind.push_back(kind(random));
    result.service.push_back(services[result.kind.back()]);
  }
  return result;
}

/// Goodput of one flow of `bytes` that keeps its sides busy all the time, Gbit/s.
double full_gbps(const Model& model, double bytes) {
  Workload workload;
  workload.flows = {flow("alone", "h1", "h2", bytes, 8, 1.0)};
  const auto result = predict_workload(model, workload);
  EXPECT_TRUE(result);
  return 1.0 / result->sides[0].busy_share;
}

// Claim:  median and 99th percentile of the waiting time are those of the queues they stand for:
//         messages of two sizes from one host to another, and from two hosts to a third.
// Oracle: Lindley's recursion over a million messages, senders first; a receiver begins with a
//         message as soon as its sender does. Nothing is assumed about what a sender's queue
//         leaves of the randomness.
TEST(Workload, WaitsAsLongAsASimulatedQueue) {
  const auto model = planted_model();
  ASSERT_TRUE(model);
  const std::vector<double> bytes = {65536, 4096};
  std::vector<double> services;
  for (const double b : bytes) services.push_back(b * 8e-3 / full_gbps(*model, b));
  for (const int senders : {1, 2}) {
    for (const double load : {0.3, 0.6, 0.85}) {
      Workload workload;
      for (int s = 0; s < senders; ++s) {
        for (std::size_t k = 0; k < 2; ++k) {
          const double share = load / senders / 2.0;
          workload.flows.push_back(flow(std::to_string(s) + std::to_string(k),
                                        "from" + std::to_string(s), "to", bytes[k], 8,
                                        share * bytes[k] * 8e-3 / services[k]));
        }
      }
      const auto result = predict_workload(*model, workload);
      ASSERT_TRUE(result);
      ASSERT_EQ(result->flows[1].limited_by, "offer");

      std::mt19937_64 random(9);
      struct Message {
        double due, reaches, service;
        bool is_short;
      };
      std::vector<Message> messages;
      for (int s = 0; s < senders; ++s) {
        const Arrivals own = arrive(services, load / senders, 1'000'000 / senders, random);
        const auto starts = starts_of(own.at, own.service);
        for (std::size_t i = 0; i < own.at.size(); ++i) {
          messages.push_back({own.at[i], starts[i], own.service[i], own.kind[i] == 1});
        }
      }
      std::sort(messages.begin(), messages.end(),
                [](const Message& a, const Message& b) { return a.reaches < b.reaches; });
      std::vector<double> reaches;
      std::vector<double> keeps;
      for (const Message& m : messages) {
        reaches.push_back(m.reaches);
        keeps.push_back(m.service);
      }
      const auto starts = starts_of(reaches, keeps);
      std::vector<double> waits;
      for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].is_short) waits.push_back(starts[i] - messages[i].due);
      }
      const auto alone = model->predict(workload.flows[1].configuration);
      ASSERT_TRUE(alone);
      const double base = alone->measures.at("latency_us_p50").value;
      const FlowPrediction& predicted = result->flows[1];
      const double p99 = quantile(waits, 0.99);
      // The exponential tail is an approximation; where half of all messages do not wait at all,
      // the median is tiny beside a service.
      EXPECT_NEAR(predicted.latency_us_p50.value - base, quantile(waits, 0.5),
                  0.25 * quantile(waits, 0.5) + 0.15 * services[0])
          << senders << " senders, load " << load;
      EXPECT_NEAR(predicted.latency_us_p99.value - base, p99, 0.15 * p99)
          << senders << " senders, load " << load;
    }
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
