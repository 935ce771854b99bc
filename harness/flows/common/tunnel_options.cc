#include "common/tunnel_options.h"

#include <fmt/core.h>

#include "greynic/core/match_field.h"

namespace greynic::flows {

Result<TunnelOptions> read_tunnel_options(std::string_view text) {
  TunnelOptions options;
  bool has_src = false;
  bool has_dst = false;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    const bool port = name == "port";
    const auto number =
        field_value_from_string(port ? MatchField::kL4DstPort : MatchField::kIpv4Src, value);
    if (!number || (!port && name != "src" && name != "dst")) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("'{}' is not src=ADDRESS, dst=ADDRESS or port=NUMBER", item));
    }
    if (port) options.port = static_cast<std::uint16_t>(*number);
    if (name == "src") options.src = static_cast<std::uint32_t>(*number);
    if (name == "dst") options.dst = static_cast<std::uint32_t>(*number);
    has_src = has_src || name == "src";
    has_dst = has_dst || name == "dst";
  }
  if (!has_src || !has_dst) {
    return fail(ErrorCode::kBadInput, "it needs src=ADDRESS and dst=ADDRESS of the outer header");
  }
  return options;
}

std::string to_text(const TunnelOptions& options) {
  return fmt::format("src={},dst={},port={}",
                     field_value_to_string(MatchField::kIpv4Src, options.src),
                     field_value_to_string(MatchField::kIpv4Dst, options.dst), options.port);
}

}  // namespace greynic::flows
