#include "target_options.h"

#include <fmt/format.h>

#include <charconv>

#include "greynic/core/units.h"

namespace greynic::verbs {
namespace {

Result<bool> read_flag(const std::string& name, const std::string& value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return fail(ErrorCode::kBadInput,
              fmt::format("option {}: write true or false, not '{}'", name, value));
}

Result<void> read_option(const std::string& name, const std::string& value,
                         TargetOptions& options) {
  const auto flag_into = [&](bool& place) -> Result<void> {
    const auto flag = read_flag(name, value);
    if (!flag) return pass_on(flag);
    place = *flag;
    return {};
  };
  if (name == "mode") {
    if (value != "bandwidth" && value != "latency") {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option mode: bandwidth or latency, not '{}'", value));
    }
    options.base.mode = value == "latency" ? Mode::kLatency : Mode::kBandwidth;
    return {};
  }
  if (name == "port") {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), options.port);
    if (error != std::errc{} || end != value.data() + value.size()) {
      return fail(ErrorCode::kBadInput, fmt::format("option port: '{}' is no number", value));
    }
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
  if (name == "posting") {
    if (value != "plain" && value != "extended") {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option posting: plain or extended, not '{}'", value));
    }
    options.base.extended_posting = value == "extended";
    return {};
  }
  if (name == "connect") {
    if (value != "exchange" && value != "rdma_cm") {
      return fail(ErrorCode::kBadInput,
                  fmt::format("option connect: exchange or rdma_cm, not '{}'", value));
    }
    options.base.connection_manager = value == "rdma_cm";
    return {};
  }
  if (name == "validate") return flag_into(options.base.validate);
  if (name == "huge_pages") return flag_into(options.base.huge_pages);
  if (name == "gid")
    options.base.gid_rule = value;
  else if (name == "peer_gid")
    options.peer_gid = value;
  else if (name == "peer_device")
    options.peer_device = value;
  else if (name != "peer" && name != "certificates") {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("option {}: there are mode, port, gid, peer, peer_device, peer_gid, "
                    "certificates, validate, sizes, huge_pages, posting, connect, stall, patience",
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
