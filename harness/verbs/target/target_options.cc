#include "target/target_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "greynic/core/units.h"

namespace greynic::verbs {
namespace {

/// "16,20us": completions and time.
Result<CqModeration> read_moderation(std::string_view text) {
  CqModeration moderation;
  const std::size_t comma = std::min(text.find(','), text.size());
  const char* const end = text.data() + comma;
  const auto [stop, error] = std::from_chars(text.data(), end, moderation.completions);
  const auto period = parse_duration(text.substr(std::min(comma + 1, text.size())));
  const std::int64_t us = period ? period->count() / 1000 : 0;
  if (error != std::errc{} || stop != end || moderation.completions == 0 || us < 1 || us > 65535) {
    return fail(ErrorCode::kBadInput,
                fmt::format("option cq_moderation: '{}' is not COMPLETIONS,TIME, such as 16,20us "
                            "(to 65535 of each)",
                            text));
  }
  moderation.period_us = static_cast<std::uint16_t>(us);
  return moderation;
}

Result<void> read_option(const std::string& name, const std::string& value,
                         TargetOptions& options) {
  // One of two words; is it the second?
  const auto choose = [&](const char* first, const char* second, bool& place) -> Result<void> {
    if (value != first && value != second) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option {}: {} or {}, not '{}'", name, first, second, value));
    }
    place = value == second;
    return {};
  };
  if (name == "mode") {
    bool latency = false;
    auto chosen = choose("bandwidth", "latency", latency);
    options.base.mode = latency ? Mode::kLatency : Mode::kBandwidth;
    return chosen;
  }
  if (name == "posting") return choose("plain", "extended", options.base.extended_posting);
  if (name == "connect") return choose("exchange", "rdma_cm", options.base.connection_manager);
  if (name == "validate") return choose("false", "true", options.base.validate);
  if (name == "huge_pages") return choose("false", "true", options.base.huge_pages);
  if (name == "optional_counters") return choose("false", "true", options.optional_counters);
  if (name == "srq") return choose("one", "per_cq", options.base.srq_per_cq);
  if (name == "port") {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), options.port);
    if (error != std::errc{} || end != value.data() + value.size()) {
      return fail(ErrorCode::kBadInput, fmt::format("option port: '{}' is no number", value));
    }
    return {};
  }
  if (name == "cq_moderation") {
    const auto moderation = read_moderation(value);
    if (!moderation) return pass_on(moderation);
    options.base.cq_moderation = *moderation;
    return {};
  }
  if (name == "sizes") {
    auto sizes = parse_sizes(value);
    if (!sizes) return pass_on(sizes);
    options.base.sizes = std::move(*sizes);
    return {};
  }
  if (name == "stall" || name == "patience") {
    const auto duration = parse_duration(value);
    if (!duration) return duration.error().while_doing("option " + name);
    if (name == "patience") {
      options.patience = *duration;
    } else {
      options.base.stall_limit = std::chrono::ceil<std::chrono::milliseconds>(*duration);
    }
    return {};
  }
  if (name == "gid") {
    options.base.gid_rule = value;
  } else if (name == "peer_gid") {
    options.peer_gid = value;
  } else if (name == "peer_device") {
    options.peer_device = value;
  } else if (name == "peer_counters") {
    options.peer_counters = value;
  } else if (name == "counters") {
    options.counters = value;
  } else if (name != "peer" && name != "certificates") {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("option {}: there are mode, port, gid, peer, peer_device, peer_gid, "
                    "peer_counters, certificates, validate, sizes, huge_pages, counters, "
                    "optional_counters, posting, connect, srq, cq_moderation, stall, patience",
                    name));
  }
  return {};
}

}  // namespace

Result<TargetOptions> read_options(const std::map<std::string, std::string>& given) {
  TargetOptions options;
  for (const auto& [name, value] : given) {
    if (auto done = read_option(name, value, options); !done) return pass_on(done);
  }
  return options;
}

}  // namespace greynic::verbs
