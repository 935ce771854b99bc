#pragma once

/// A file that was compiled into the program (cmake: greynic_embed), so that it runs without its
/// tree.

#include <span>
#include <string_view>

namespace greynic {

struct EmbeddedFile {
  std::string_view name;  ///< without folder, e.g. "campaign.schema.json"
  std::string_view text;
};

}  // namespace greynic
