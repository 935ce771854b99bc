#pragma once

/// The constraint language of campaigns, topologies and our JSON models (docs/formats/campaign.md):
///
///     transport == "UD" -> operation == "SEND"
///     qp_count * send_depth <= 65536 && (mtu_bytes in {1024, 4096} || !inline_data)
///     if shared_receive_queue then transport in {"RC", "UD"} else srq_depth == 0

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/language/cover_model.h"

namespace greynic::language {

/// The value of a name that is no parameter of the model (a factor that a campaign leaves at its
/// standard). Empty: the name is unknown.
using ConstantLookup = std::function<std::optional<FactorValue>(std::string_view name)>;

/// Reads one constraint over the parameters of `model`. kBadInput names model.source, `where`, the
/// column (1-based, in `text`), what is wrong and what would be right.
[[nodiscard]] Result<Expr> parse_constraint(std::string_view text, const CoverModel& model,
                                            std::string_view where,
                                            const ConstantLookup& constants = {});

/// The names that a constraint reads, in order, as often as it does.
[[nodiscard]] std::vector<std::string> names_in(std::string_view text);

}  // namespace greynic::language
