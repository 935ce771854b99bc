#pragma once

/// Reads a campaign file (docs/formats/campaign.md): levels spelled as lists, ranges or powers come
/// out as plain lists; every name is checked against the factors. Constraints stay text.

#include <string>
#include <vector>

#include "greynic/core/campaign.h"

namespace greynic::files {

/// kBadInput names the file, the path inside it and the remedy.
[[nodiscard]] Result<Campaign> read_campaign(const std::string& path);
[[nodiscard]] Result<Campaign> parse_campaign(std::string_view text, const std::string& source);

/// Applies `--set factor=level,level` overrides in order; replaces the levels, keeps the rest.
[[nodiscard]] Result<Campaign> override_levels(Campaign campaign,
                                               const std::vector<std::string>& overrides);

}  // namespace greynic::files
