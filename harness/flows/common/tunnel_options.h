#pragma once

/// The outer header of a VXLAN encapsulation as Action::text has it:
/// "src=10.0.0.1,dst=10.0.0.2,port=4789".

#include <cstdint>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::flows {

struct TunnelOptions {
  std::uint32_t src = 0;  ///< host byte order
  std::uint32_t dst = 0;
  std::uint16_t port = 4789;
};

/// kBadInput says what is missing or unknown. Without a port it is VXLAN's own.
[[nodiscard]] Result<TunnelOptions> read_tunnel_options(std::string_view text);
[[nodiscard]] std::string to_text(const TunnelOptions& options);

}  // namespace greynic::flows
