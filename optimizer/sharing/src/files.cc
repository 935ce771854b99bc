#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "greynic/files/json_file.h"
#include "greynic/sharing/sharing.h"

namespace greynic::sharing {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kChoices = {"own", "own_doorbells", "share"};

json to_json(const model::PredictedMeasure& measure) {
  return {{"value", measure.value}, {"low", measure.low}, {"high", measure.high}};
}

/// What is played through at a time: some kilobytes for each host and connection, and some ten bytes a message.
constexpr std::uint64_t kMostHosts = 1000, kMostConnections = 20'000, kMostMessages = 1'000'000;

/// Each number may be right by itself; together they may be more than there is memory for.
Result<void> check_size(const Matrix& matrix, const std::string& path) {
  std::set<std::string> hosts;
  std::uint64_t connections = 0, messages = 0;
  for (const Demand& demand : matrix.demands) {
    hosts.insert({demand.from, demand.to});
    connections += demand.connections;
    messages += std::uint64_t{demand.connections} * demand.outstanding;
  }
  if (hosts.size() <= kMostHosts && connections <= kMostConnections && messages <= kMostMessages) {
    return {};
  }
  return files::bad_value(
      path, "/connections",
      fmt::format("has {} hosts, {} connections and {} messages under way; at most {}, {} and {} "
                  "are played through: ask for fewer hosts at a time",
                  hosts.size(), connections, messages, kMostHosts, kMostConnections,
                  kMostMessages));
}

}  // namespace

Result<Matrix> read_matrix(const std::string& path) {
  const auto document = files::read_json(path, "connections");
  if (!document) return pass_on(document);
  Matrix matrix;
  matrix.threads = document->value("threads", matrix.threads);
  matrix.broker_ns = document->value("broker_ns", matrix.broker_ns);
  const json& list = document->at("connections");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    Demand demand;
    demand.from = entry.at("from").get<std::string>();
    demand.to = entry.at("to").get<std::string>();
    if (demand.from == demand.to) {
      return files::bad_value(path, fmt::format("/connections/{}/to", i),
                              "is the host that asks; name another");
    }
    demand.connections = entry.at("count").get<std::uint32_t>();
    demand.operation = *operation_named(entry.at("operation").get<std::string>());
    demand.message_bytes = entry.at("message_bytes").get<std::uint64_t>();
    demand.outstanding = entry.value("outstanding", demand.outstanding);
    matrix.demands.push_back(std::move(demand));
  }
  if (const auto fits = check_size(matrix, path); !fits) return pass_on(fits);
  return matrix;
}

std::string to_json_text(const Advice& advice, const Matrix& matrix) {
  const Setting& setting = advice.setting;
  json document = {
      {"version", 1},
      {"choice", kChoices[static_cast<std::size_t>(advice.choice)]},
      {"latency_qps", setting.latency_qps},
      {"bulk_qps", setting.bulk_qps},
      {"bulk_bytes", setting.bulk_bytes},
      {"in_flight_bytes", setting.in_flight_bytes},
      {"gain", to_json(advice.gain)},
      {"gain_if_shared", to_json(advice.if_shared)},
      {"qps_of_busiest_host", {{"own", advice.own_qps}, {"advised", advice.advised_qps}}},
      {"unsure", advice.unsure},
      {"extrapolated", advice.extrapolated},
      {"connections", json::array()}};
  for (std::size_t i = 0; i < matrix.demands.size(); ++i) {
    document["connections"].push_back({{"from", matrix.demands[i].from},
                                       {"to", matrix.demands[i].to},
                                       {"own_gbps", advice.demands[i].own_gbps},
                                       {"advised_gbps", advice.demands[i].advised_gbps}});
  }
  return files::json_text(document, 2);
}

Result<BrokerAdvice> read_advice(const std::string& path) {
  const auto document = files::read_json(path, "sharing_advice");
  if (!document) return pass_on(document);
  BrokerAdvice advice;
  const auto choice = document->at("choice").get<std::string>();
  for (std::size_t i = 0; i < kChoices.size(); ++i) {
    if (kChoices[i] == choice) advice.choice = static_cast<Choice>(i);
  }
  Setting& setting = advice.setting;
  setting.latency_qps = document->at("latency_qps").get<std::uint32_t>();
  setting.bulk_qps = document->at("bulk_qps").get<std::uint32_t>();
  setting.bulk_bytes = document->at("bulk_bytes").get<std::uint64_t>();
  setting.in_flight_bytes = document->at("in_flight_bytes").get<std::uint64_t>();
  return advice;
}

}  // namespace greynic::sharing
