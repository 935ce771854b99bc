#pragma once

#include <string>
#include <string_view>

namespace greynic::files {

/// Finds a file that comes with greynic: campaigns, topologies, rules and examples.
///
/// `name` is used as it is when there is such a file. Else it is looked for in what is installed
/// beside the program (../share/greynic), then in the source tree that it was built from: as a path
/// below them (configs/campaigns/mask_wall.json), as a file of configs/`folder`, or without its
/// extension (mask_wall). A name that is found nowhere comes back as it is, for the message of
/// whoever opens it.
[[nodiscard]] std::string shipped_file(std::string_view folder, const std::string& name);

}  // namespace greynic::files
