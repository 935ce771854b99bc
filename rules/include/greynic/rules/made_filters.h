#pragma once

/// Filter sets made from a seed, in the manner of ClassBench's families: for demonstrations, and for
/// tests that must not depend on files. Addresses come from a tree of networks, so that prefixes
/// contain one another; the families differ in how many fields are wild and in the port ranges:
///
///     acl   few wild sources, exact destination ports: many hosts and services
///     fw    many wild addresses, wide port ranges: many overlaps, each line many rules
///     ipc   between the two
///
/// They are not ClassBench's own sets, nor fitted to its seeds: figures of the two do not compare.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::rules {

struct MadeFilters {
  std::string family = "acl";
  std::uint64_t count = 1000;  ///< lines, all different; a line with ranges is several rules
  std::uint64_t seed = 1;
};

/// Reads "made:FAMILY:COUNT:SEED", of which COUNT and SEED may be left out; empty when the text
/// does not begin with "made:". kBadInput says what is wrong with it.
[[nodiscard]] Result<std::optional<MadeFilters>> made_filters_named(std::string_view text);

/// The same seed gives the same text on every machine. Lines of many bits tend to come first, as
/// people write them. kBadInput: a family that is not there, or a count outside 1..1,000,000.
[[nodiscard]] Result<std::string> made_filters(const MadeFilters& wanted);

}  // namespace greynic::rules
