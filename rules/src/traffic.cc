#include "greynic/rules/traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"

namespace greynic::rules {
namespace {

using nlohmann::json;

/// A packet that matches the rule; wild bits of the fields that it looks at are random.
Packet packet_inside(const FlowRule& rule, const std::vector<MatchField>& fields,
                     std::mt19937_64& random) {
  Packet packet;
  for (const MatchField field : fields) {
    const U128 noise = (U128{random()} << 64 | random()) & full_mask(field);
    packet.set(field, noise);
  }
  for (const FieldMatch& entry : rule.match.fields()) {
    packet.set(entry.field, entry.value | (packet.value(entry.field) & ~entry.bits));
  }
  return packet;
}

/// Every field that a rule of the set looks at, in canonical order, by table.
std::vector<MatchField> fields_of(const RuleSet& rules, std::uint32_t table) {
  Mask all;
  for (const FlowRule& rule : rules.rules) {
    if (rule.table != table) continue;
    for (const FieldMatch& entry : rule.match.fields()) all.add(entry.field, entry.bits);
  }
  std::vector<MatchField> fields;
  for (const FieldMask& entry : all.fields()) fields.push_back(entry.field);
  return fields;
}

Result<Packet> packet_from(const json& object, const std::string& source, const std::string& here) {
  Packet packet;
  for (const auto& [name, value] : object.items()) {
    const auto field = match_field_named(name);
    if (!field) {
      return files::bad_value(source, here + "/" + name,
                              "is not a match field (docs/formats/layout.md)");
    }
    const auto number = field_value_from_string(*field, value.get<std::string>());
    if (!number) {
      return files::bad_value(source, here + "/" + name,
                              fmt::format("{} is no value of this {}-bit field",
                                          files::json_text(value), info(*field).width_bits));
    }
    packet.set(*field, *number);
  }
  return packet;
}

}  // namespace

Result<Traffic> parse_traffic(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (const auto checked = files::check_schema(*document, "traffic", source); !checked) {
    return pass_on(checked);
  }
  Traffic traffic;
  const json& flows = document->at("flows");
  for (std::size_t i = 0; i < flows.size(); ++i) {
    auto packet = packet_from(flows[i].at("packet"), source, fmt::format("/flows/{}/packet", i));
    if (!packet) return pass_on(packet);
    traffic.flows.push_back({.packet = std::move(*packet),
                             .weight = flows[i].value("weight", 1.0),
                             .table = flows[i].value("table", std::uint32_t{0})});
  }
  return traffic;
}

Result<Traffic> read_traffic(const std::string& path) {
  const auto text = files::read_text(path);
  if (!text) return pass_on(text);
  return parse_traffic(*text, path);
}

Result<void> write_traffic(const Traffic& traffic, const std::string& path) {
  json flows = json::array();
  for (const TrafficFlow& flow : traffic.flows) {
    json packet = json::object();
    for (const auto& [field, value] : flow.packet.values()) {
      packet[std::string(info(field).name)] = field_value_to_string(field, value);
    }
    json row = {{"packet", std::move(packet)}, {"weight", flow.weight}};
    if (flow.table != 0) row["table"] = flow.table;
    flows.push_back(std::move(row));
  }
  const json document = {{"version", 1}, {"flows", std::move(flows)}};
  return files::write_text(path, files::json_text(document, 1) + "\n");
}

Traffic uniform_traffic(const RuleSet& rules, std::uint64_t seed) {
  return zipf_traffic(rules, 0.0, seed);
}

Traffic zipf_traffic(const RuleSet& rules, double exponent, std::uint64_t seed,
                     std::size_t packets) {
  std::mt19937_64 random(seed);
  Traffic traffic;
  traffic.drawn = true;
  traffic.flows.reserve(packets * rules.rules.size());
  std::map<std::uint32_t, std::vector<MatchField>> fields;
  for (std::size_t drawn = 0; drawn < packets; ++drawn) {
    for (const FlowRule& rule : rules.rules) {
      auto known = fields.find(rule.table);
      if (known == fields.end()) {
        known = fields.emplace(rule.table, fields_of(rules, rule.table)).first;
      }
      traffic.flows.push_back(
          {.packet = packet_inside(rule, known->second, random), .table = rule.table});
    }
  }
  std::vector<std::size_t> rank(rules.rules.size());
  std::iota(rank.begin(), rank.end(), std::size_t{1});
  for (std::size_t i = rank.size(); i > 1; --i) std::swap(rank[i - 1], rank[random() % i]);
  for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
    traffic.flows[i].weight = std::pow(static_cast<double>(rank[i % rank.size()]), -exponent);
  }
  return traffic;
}

Result<Traffic> traffic_for(std::string_view what, const RuleSet& rules, std::uint64_t seed,
                            std::size_t packets) {
  if (what == "uniform") return zipf_traffic(rules, 0.0, seed, packets);
  if (what.starts_with("zipf:")) {
    const std::string_view text = what.substr(5);
    double exponent = -1.0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, exponent);
    if (error != std::errc{} || stop != end || !(exponent >= 0.0 && exponent <= 10.0)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--traffic {}: the exponent must be in 0..10, e.g. zipf:1.1", what));
    }
    return zipf_traffic(rules, exponent, seed, packets);
  }
  return read_traffic(std::string(what));
}

}  // namespace greynic::rules
