#include "greynic/core/configuration.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "greynic/core/campaign.h"
#include "greynic/core/units.h"

namespace greynic {
namespace {

using T = FactorType;
using G = FactorGroup;
using Words = std::array<std::string_view, 4>;

constexpr Words kTransports = {"RC", "UC", "UD", "XRC"};
constexpr std::array<std::string_view, 9> kOperations = {
    "SEND",          "WRITE",          "READ", "ATOMIC", "SEND_WITH_IMM",
    "SEND_WITH_INV", "WRITE_WITH_IMM", "CAS",  "FADD"};
constexpr std::array<std::string_view, 3> kDoorbells = {"default", "dedicated", "shared_qp"};
constexpr std::array<std::string_view, 3> kDirections = {"unidirectional", "bidirectional",
                                                         "loopback"};
constexpr std::array<std::string_view, 3> kCompletion = {"polling", "events", "hybrid"};
constexpr std::array<std::string_view, 19> kFaults = {
    "none",         "remote_key",      "remote_bounds",    "remote_access",    "local_key",
    "local_length", "receive_length",  "receive_missing",  "peer_silent",      "flush",
    "cq_overrun",   "remote_disabled", "remote_domain",    "remote_alignment", "local_domain",
    "send_state",   "send_elements",   "receive_elements", "handle_domain"};
constexpr std::array<std::string_view, 3> kMixes = {"uniform", "mixed_sge", "mixed_requests"};
constexpr std::array<std::string_view, 3> kPlacements = {"local", "cross_socket", "gpu"};
constexpr std::array<std::string_view, 2> kPlatforms = {"intel", "amd"};
constexpr double kMost = 9007199254740992.0;

FactorInfo number(std::string_view name, G group, std::string_view unit, double minimum,
                  double maximum, double standard, std::string_view meaning) {
  return {name, T::kNumeric, group, unit, minimum, maximum, {}, FactorValue(standard), meaning};
}

FactorInfo choice(std::string_view name, G group, std::span<const std::string_view> categories,
                  std::string_view meaning) {
  return {name,       T::kCategorical,
          group,      "",
          0,          0,
          categories, FactorValue(std::string(categories.front())),
          meaning};
}

FactorInfo flag_factor(std::string_view name, G group, bool standard, std::string_view meaning) {
  return {name, T::kBool, group, "", 0, 1, {}, FactorValue(standard), meaning};
}

const std::vector<FactorInfo>& table() {
  static const std::vector<FactorInfo> rows = {
      choice("transport", G::kVerbs, kTransports, "QP type"),
      choice("operation", G::kVerbs, kOperations, "verb that is posted"),
      number("qp_count", G::kVerbs, "count", 1, 1 << 24, 1, "active QPs of the test"),
      number("qps_per_cq", G::kVerbs, "count", 1, 1 << 24, 1, "QPs that share one CQ"),
      number("send_queue_depth", G::kVerbs, "slots", 1, 1 << 20, 128,
             "send WQEs of one QP that may be outstanding"),
      number("receive_queue_depth", G::kVerbs, "slots", 0, 1 << 20, 512,
             "receive WQEs of one QP or SRQ"),
      flag_factor("shared_receive_queue", G::kVerbs, false, "receive WQEs come from an SRQ"),
      number("message_bytes", G::kVerbs, "bytes", 0, 2147483648.0, 65536, "payload of one message"),
      number("sge_count", G::kVerbs, "count", 0, 64, 1, "scatter-gather elements of one WQE"),
      number("mtu_bytes", G::kVerbs, "bytes", 256, 9000, 1024, "path MTU: payload of one packet"),
      number("inline_bytes", G::kVerbs, "bytes", 0, 4096, 0,
             "messages up to this size are inlined"),
      number("signal_every", G::kVerbs, "count", 1, 1 << 20, 1,
             "one send in this many asks for a CQE"),
      number("post_batch", G::kVerbs, "count", 1, 1 << 16, 1, "WQEs handed over by one doorbell"),
      number("mr_count", G::kVerbs, "count", 1, 1 << 24, 1, "memory regions registered and used"),
      number("mr_bytes", G::kVerbs, "bytes", 1, kMost, 16777216, "size of one memory region"),
      number("thread_count", G::kVerbs, "count", 1, 4096, 1, "threads that post and poll"),
      choice(
          "doorbell_sharing", G::kVerbs, kDoorbells,
          "who shares a doorbell register: as the driver decides, a register for each thread, or "
          "one QP for all threads"),
      choice("direction", G::kVerbs, kDirections, "who sends to whom"),
      choice("completion_mode", G::kVerbs, kCompletion, "how completions are waited for"),
      number("offered_rate", G::kVerbs, "1/s", 0, 1e12, 0,
             "messages a second that the test asks for; 0: as fast as possible"),
      choice("fault", G::kVerbs, kFaults, "what the test does wrong on purpose"),
      number("receive_post_batch", G::kVerbs, "count", 1, 1 << 16, 1,
             "receive WQEs handed over by one call"),
      choice("message_mix", G::kVerbs, kMixes,
             "all messages alike, short and long elements in one SG list, or one long request "
             "among short ones"),
      number("client_encap_masks", G::kESwitch, "masks", 0, 100000, 0,
             "flow groups a request is checked against where it is encapsulated"),
      number("client_decap_masks", G::kESwitch, "masks", 0, 100000, 0,
             "flow groups an answer is checked against where it is decapsulated"),
      number("server_encap_masks", G::kESwitch, "masks", 0, 100000, 0,
             "flow groups an answer is checked against where it is encapsulated"),
      number("server_decap_masks", G::kESwitch, "masks", 0, 100000, 0,
             "flow groups a request is checked against where it is decapsulated"),
      number("rules_per_mask", G::kESwitch, "rules", 1, 1 << 24, 1, "rules in each flow group"),
      number("flow_count", G::kESwitch, "flows", 1, 1 << 30, 1, "distinct flows in the traffic"),
      number("flow_setup_rate", G::kESwitch, "1/s", 0, 1e9, 0, "new flows a second"),
      number("vxlan_contexts", G::kESwitch, "count", 0, 1 << 24, 1,
             "VXLAN encapsulation contexts in use"),
      number("counter_poll_ms", G::kESwitch, "ms", 0, 1e6, 1000,
             "period of reading flow counters; 0: never"),
      number("flow_idle_ms", G::kESwitch, "ms", 1, 1e7, 10000,
             "idle time after which a flow is removed"),
      choice("host_platform", G::kHost, kPlatforms, "CPU of both hosts"),
      choice("memory_placement", G::kHost, kPlacements,
             "where buffers lie: near the RNIC, on the far socket of one host, on a GPU"),
      flag_factor("pcie_relaxed_ordering", G::kHost, true, "the RNIC may reorder DMA writes"),
      flag_factor("pcie_acs_redirect", G::kHost, false,
                  "PCIe bridges send peer traffic through the root complex"),
      number("vf_unbind_rate", G::kHost, "1/s", 0, 1e6, 0,
             "virtual functions unbound a second while traffic runs"),
      number("container_count", G::kHost, "count", 1, 1e7, 1,
             "containers that share the RNIC; on a fleet, all of its containers"),
      number("host_count", G::kHost, "count", 2, 1e6, 2,
             "hosts of the fleet; without a fleet, all but one of them send to that one"),
      flag_factor("exact_match_cache", G::kESwitch, true, "the switch keeps an exact-match cache"),
      flag_factor("signature_match_cache", G::kESwitch, false,
                  "the switch keeps a signature-match cache"),
  };
  return rows;
}

auto place_of(auto& levels, std::string_view name) {
  return std::lower_bound(
      levels.begin(), levels.end(), name,
      [](const auto& level, std::string_view wanted) { return level.first < wanted; });
}

std::optional<double> read_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string to_string(const FactorValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const double* number = std::get_if<double>(&value)) return number_to_string(*number);
  return std::get<std::string>(value);
}

Result<FactorValue> parse_factor_value(FactorType type, std::string_view text) {
  switch (type) {
    case FactorType::kBool:
      if (text == "true" || text == "1" || text == "on") return FactorValue(true);
      if (text == "false" || text == "0" || text == "off") return FactorValue(false);
      return fail(ErrorCode::kBadInput, fmt::format("'{}' is neither true nor false", text));
    case FactorType::kNumeric:
      if (const auto value = read_number(text)) return FactorValue(*value);
      if (const auto bytes = parse_bytes(text))
        return FactorValue(static_cast<double>(bytes->count));
      return fail(ErrorCode::kBadInput,
                  fmt::format("'{}' is not a number; sizes may carry a unit, such as 8MiB", text));
    case FactorType::kCategorical:
      if (text.empty()) return fail(ErrorCode::kBadInput, "a category has no name");
      return FactorValue(std::string(text));
  }
  return fail(ErrorCode::kInternal, "unknown factor type");
}

std::span<const FactorInfo> known_factors() { return table(); }

const FactorInfo* find_factor(std::string_view name) {
  for (const FactorInfo& row : table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Configuration::Configuration(std::initializer_list<std::pair<std::string, FactorValue>> levels) {
  for (const auto& [name, value] : levels) set(name, value);
}

void Configuration::set(std::string_view name, FactorValue value) {
  const auto place = place_of(levels_, name);
  if (place != levels_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    levels_.emplace(place, std::string(name), std::move(value));
  }
}

void Configuration::erase(std::string_view name) {
  const auto place = place_of(levels_, name);
  if (place != levels_.end() && place->first == name) levels_.erase(place);
}

const FactorValue* Configuration::find(std::string_view name) const {
  const auto place = place_of(levels_, name);
  return place != levels_.end() && place->first == name ? &place->second : nullptr;
}

double Configuration::number(std::string_view name, double fallback) const {
  const auto as_number = [](const FactorValue* value) -> std::optional<double> {
    if (value == nullptr) return std::nullopt;
    if (const double* number = std::get_if<double>(value)) return *number;
    if (const bool* flag = std::get_if<bool>(value)) return *flag ? 1.0 : 0.0;
    return std::nullopt;
  };
  if (const auto set = as_number(find(name))) return *set;
  if (const FactorInfo* row = find_factor(name))
    return as_number(&row->standard).value_or(fallback);
  return fallback;
}

std::string Configuration::text(std::string_view name) const {
  if (const FactorValue* value = find(name)) return to_string(*value);
  if (const FactorInfo* row = find_factor(name)) return to_string(row->standard);
  return {};
}

bool Configuration::flag(std::string_view name) const { return number(name) != 0.0; }

std::string Configuration::name() const {
  std::string text;
  for (const auto& [factor, value] : levels_) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", factor, to_string(value));
  }
  return text;
}

Result<Configuration> parse_configuration(std::string_view text) {
  Configuration configuration;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("'{}' is not factor=level; write for example qp_count=64", item));
    }
    const std::string_view name = item.substr(0, equals);
    const std::string_view level = item.substr(equals + 1);
    if (configuration.contains(name)) {
      return fail(ErrorCode::kBadInput, fmt::format("factor {} is set twice", name));
    }
    if (const FactorInfo* row = find_factor(name)) {
      auto value = parse_factor_value(row->type, level);
      if (!value) return value.error().while_doing(fmt::format("reading factor {}", name));
      configuration.set(name, *value);
    } else if (const auto number = read_number(level)) {
      configuration.set(name, *number);
    } else if (level == "true" || level == "false") {
      configuration.set(name, level == "true");
    } else {
      configuration.set(name, std::string(level));
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return configuration;
}

namespace {
struct HopNames {
  Hop hop;
  std::string_view name;
  std::string_view factor;
};
constexpr std::array<HopNames, 4> kHops = {{
    {Hop::kClientEncap, "client_encap", "client_encap_masks"},
    {Hop::kServerDecap, "server_decap", "server_decap_masks"},
    {Hop::kServerEncap, "server_encap", "server_encap_masks"},
    {Hop::kClientDecap, "client_decap", "client_decap_masks"},
}};
}  // namespace

std::string_view to_string(Hop hop) { return kHops[static_cast<std::size_t>(hop)].name; }

std::string_view mask_factor(Hop hop) { return kHops[static_cast<std::size_t>(hop)].factor; }

Result<Hop> hop_named(std::string_view name) {
  for (const HopNames& row : kHops) {
    if (row.name == name) return row.hop;
  }
  return fail(ErrorCode::kBadInput,
              fmt::format("{} is no hop; there are client_encap, server_decap, server_encap and "
                          "client_decap",
                          name));
}

const Factor* Campaign::find(std::string_view factor) const {
  for (const Factor& candidate : factors) {
    if (candidate.name == factor) return &candidate;
  }
  return nullptr;
}

}  // namespace greynic
