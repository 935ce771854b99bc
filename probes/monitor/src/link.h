#pragma once

/// Messages on the agent's socket, each with at most one file beside it (greynic_zero_format.h).

#include <optional>
#include <string>
#include <string_view>

#include "greynic_zero_format.h"

namespace greynic::monitor {

[[nodiscard]] zero_link_message make_message(zero_link_kind kind, std::string_view text = {});

/// False when the other side has gone or takes no more.
bool send_message(int socket, const zero_link_message& message, int file = -1);

struct Received {
  zero_link_message message{};
  int file = -1;  ///< whoever takes the message closes it
};
/// Nothing: nothing has come, or (`gone`) the other side has gone or speaks otherwise.
[[nodiscard]] std::optional<Received> receive_message(int socket, bool& gone);

/// A connected socket; -1 and errno.
[[nodiscard]] int connect_to(const std::string& path);

}  // namespace greynic::monitor
