#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

#include "perftest/log.h"

namespace greynic::results {
namespace {

namespace column = perftest_column;

/// A header field that is a number and a factor.
struct NumberField {
  std::string_view field;  ///< as normal_name spells it
  std::string_view factor;
};

constexpr std::array kNumberFields = std::to_array<NumberField>({
    {"number of qps", "qp_count"},
    {"tx depth", "send_queue_depth"},
    {"rx depth", "receive_queue_depth"},
    {"cq moderation", "signal_every"},
    {"post list", "post_batch"},
    {"mtu", "mtu_bytes"},
    {"max inline data", "inline_bytes"},
});

/// Header fields that describe the machine.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEnvironmentFields = {{
    {"device", "nic"},
    {"link type", "link_type"},
    {"gid index", "gid_index"},
    {"pcie relax order", "pcie_relaxed_ordering"},
}};

/// "4", "1024[B]", "2048B" -> the number.
std::optional<double> leading_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (!rest.empty() && rest != "[B]" && rest != "B") return std::nullopt;
  return value;
}

/// "RDMA_Write Bidirectional BW Test", "RDMA_Write_Bidirectional_BW_Test" -> operation, direction.
Result<void> read_title(const std::string& title, Configuration& settings,
                        const std::string& source) {
  if (title.empty()) return {};
  const std::string name = normal_name(title) + ' ';
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kVerbs = {
      {{"send ", "SEND"}, {"rdma write ", "WRITE"}, {"rdma read ", "READ"}, {"atomic ", "ATOMIC"}}};
  for (const auto& [prefix, operation] : kVerbs) {
    if (name.starts_with(prefix)) settings.set("operation", std::string(operation));
  }
  if (!settings.contains("operation")) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: the test \"{}\" is of no verb that greynic knows", source, title));
  }
  const bool both = name.find(" bidirectional ") != std::string::npos;
  settings.set("direction", std::string(both ? "bidirectional" : "unidirectional"));
  return {};
}

Result<Configuration> read_settings(const PerftestReport& report, const std::string& source) {
  Configuration settings;
  if (auto read = read_title(report.title, settings, source); !read) return pass_on(read);
  for (const auto& [field, factor] : kNumberFields) {
    const auto found = report.settings.find(std::string(field));
    if (found == report.settings.end()) continue;
    const auto value = leading_number(found->second);
    if (!value || *value < 0.0) {
      return fail(ErrorCode::kBadInput, fmt::format("{}: \"{}\" is \"{}\", which is no number",
                                                    source, field, found->second));
    }
    settings.set(factor, *value);
  }
  if (const auto type = report.settings.find("connection type"); type != report.settings.end()) {
    settings.set("transport", type->second);
  }
  if (const auto srq = report.settings.find("using srq"); srq != report.settings.end()) {
    settings.set("shared_receive_queue", srq->second == "ON");
  }
  if (report.settings.contains("test with events")) {
    settings.set("completion_mode", std::string("events"));
  }
  return settings;
}

Result<void> merge(Configuration& settings, const Configuration& from_name,
                   const std::string& source) {
  for (const auto& [factor, level] : from_name.levels()) {
    const FactorValue* there = settings.find(factor);
    if (there && *there != level) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: its name says {} = {}, its content {}", source, factor,
                              to_string(level), to_string(*there)));
    }
    settings.set(factor, level);
  }
  return {};
}

void take_measures(const PerftestRow& row, Observation& observation) {
  for (const auto& [name, value] : row.values) {
    const bool is_measure = name != column::kBytes && name != column::kIterations &&
                            name != column::kServiceLevel && name != column::kDeviation;
    if (is_measure) observation.measures[name] = {value, std::nullopt};
  }
  const auto deviation = row.values.find(std::string(column::kDeviation));
  const auto iterations = row.values.find(std::string(column::kIterations));
  const auto mean = observation.measures.find(std::string(measure::kLatencyMean));
  // Newer versions sum whole microseconds, so a deviation below 1 us comes out as 0: not known.
  if (deviation != row.values.end() && iterations != row.values.end() &&
      mean != observation.measures.end() && deviation->second > 0.0 && iterations->second > 0.0) {
    mean->second.standard_error = deviation->second / std::sqrt(iterations->second);
  }
  observation.latency = row.samples;
}

}  // namespace

Result<std::vector<Observation>> translate(const PerftestReport& report,
                                           const Configuration& from_name,
                                           const std::string& source) {
  auto settings = read_settings(report, source);
  if (!settings) return pass_on(settings);
  Observation common;
  for (const auto& [field, name] : kEnvironmentFields) {
    const auto found = report.settings.find(std::string(field));
    if (found != report.settings.end()) common.environment[std::string(name)] = found->second;
  }
  common.environment["log"] = source;
  std::vector<Observation> observations;
  for (const PerftestRow& row : report.rows) {
    Observation observation = common;
    observation.asked = *settings;
    const auto set = [&](std::string_view from, std::string_view factor) {
      const auto found = row.values.find(std::string(from));
      if (found != row.values.end()) observation.asked.set(factor, found->second);
    };
    set(column::kBytes, "message_bytes");
    set(column::kServiceLevel, "service_level");
    const std::string place = row.line == 0 ? source : fmt::format("{}:{}", source, row.line);
    if (auto merged = merge(observation.asked, from_name, place); !merged) return pass_on(merged);
    take_measures(row, observation);
    observation.outcome = Outcome::kMeasured;
    observations.push_back(std::move(observation));
  }
  if (report.rows.empty() && !report.failure.empty()) {
    Observation broken = common;
    broken.asked = std::move(*settings);
    if (auto merged = merge(broken.asked, from_name, source); !merged) return pass_on(merged);
    broken.outcome = Outcome::kFailed;
    broken.reason = report.failure;
    observations.push_back(std::move(broken));
  }
  return observations;
}

}  // namespace greynic::results
