#pragma once

/// SEND_WITH_INV at the receiving end: a window is bound, its receive is posted, a message ends the
/// window, and both begin again. A sender that finds no receive is held back by receiver-not-ready,
/// so it never names a key that is not yet valid.

#include <optional>
#include <string>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

/// Binds a window of a lane under its next key, a request of the send queue, in which nothing else
/// may be under way; waits for it, at most plan.stall_limit. Says what went wrong.
[[nodiscard]] std::optional<std::string> bind_window(Endpoint& endpoint, std::uint32_t lane,
                                                     std::uint32_t index);

}  // namespace greynic::verbs
