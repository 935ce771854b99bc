#pragma once

/// The options of a twin that set how its hosts work ("twin:cx6?loss=0.001&rnr_retry=3"), each read
/// and bounded in one place. Which model, switch or fleet it is, target.cc reads.

#include <string>

#include "greynic/core/result.h"
#include "parameters/host_load.h"

namespace greynic::twin {

/// Puts one option in; false: there is none of that name. kBadInput says what to write.
[[nodiscard]] Result<bool> read_load_option(const std::string& name, const std::string& text,
                                            HostLoadOptions& options);

/// Their names, for a message.
[[nodiscard]] std::string load_options();

/// One of two words.
[[nodiscard]] Result<bool> read_choice(const std::string& option, const std::string& text,
                                       const char* no, const char* yes);

}  // namespace greynic::twin
