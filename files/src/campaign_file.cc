#include "greynic/files/campaign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "greynic/core/mask_group.h"
#include "greynic/core/units.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::files {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLevels = 65535;

Result<std::vector<FactorValue>> progression(const json& spec, const std::string& source,
                                             const std::string& here) {
  double from = 0.0;
  double to = 0.0;
  double step = 1.0;
  double base = 0.0;  // 0: an arithmetic progression
  if (spec.contains("powers_of_two")) {
    from = spec["powers_of_two"][0].get<double>();
    to = spec["powers_of_two"][1].get<double>();
    base = 2.0;
  } else if (spec.contains("powers")) {
    from = spec["powers"]["from"].get<double>();
    to = spec["powers"]["to"].get<double>();
    base = spec["powers"]["base"].get<double>();
  } else {
    from = spec["range"]["from"].get<double>();
    to = spec["range"]["to"].get<double>();
    step = spec["range"].value("step", 1.0);
  }
  if (from > to || !(step > 0.0) || (base != 0.0 && (base <= 1.0 || from <= 0.0))) {
    return bad_value(source, here,
                     "must go up: from <= to, step > 0; powers need base > 1 and from > 0");
  }
  std::vector<FactorValue> levels;
  double value = from;
  for (std::size_t i = 1; value <= to * (1.0 + 1e-12); ++i) {
    levels.emplace_back(value);
    if (levels.size() > kMostLevels) return bad_value(source, here, "has more than 65535 levels");
    value = base != 0.0 ? value * base : from + static_cast<double>(i) * step;
  }
  return levels;
}

/// Text that agrees with the declared type, or why not.
std::string wrong_type(FactorType type, const FactorValue& level) {
  const bool fits =
      (type == FactorType::kBool && std::holds_alternative<bool>(level)) ||
      (type == FactorType::kNumeric && std::holds_alternative<double>(level)) ||
      (type == FactorType::kCategorical && std::holds_alternative<std::string>(level));
  return fits ? std::string()
              : fmt::format("level {} is not of the factor's type", to_string(level));
}

/// Complains when a factor of the common table is given a level that it cannot have.
std::string outside_table(const FactorInfo& row, const FactorValue& level) {
  if (const double* number = std::get_if<double>(&level)) {
    if (*number < row.minimum || *number > row.maximum) {
      return fmt::format("level {} is outside {} to {}", to_string(level),
                         number_to_string(row.minimum), number_to_string(row.maximum));
    }
  } else if (const auto* word = std::get_if<std::string>(&level)) {
    if (std::find(row.categories.begin(), row.categories.end(), *word) == row.categories.end()) {
      return fmt::format("level {} is not one of {}", *word, fmt::join(row.categories, ", "));
    }
  }
  return {};
}

Result<void> check_levels(const Factor& factor, const std::string& source,
                          const std::string& here) {
  const FactorInfo* row = find_factor(factor.name);
  if (row != nullptr && row->type != factor.type) {
    return bad_value(source, here + "/type", "is not the type of this factor in docs/factors.md");
  }
  std::set<FactorValue> seen;
  for (const FactorValue& level : factor.levels) {
    std::string wrong = wrong_type(factor.type, level);
    if (wrong.empty() && row != nullptr) wrong = outside_table(*row, level);
    if (wrong.empty() && !seen.insert(level).second) {
      wrong = fmt::format("level {} stands twice", to_string(level));
    }
    if (!wrong.empty()) return bad_value(source, here, wrong);
  }
  for (const auto* numbers : {&factor.weights, &factor.costs}) {
    if (!numbers->empty() && numbers->size() != factor.levels.size()) {
      return bad_value(source, here, "weights and costs need one number for each level");
    }
  }
  return {};
}

Result<Factor> read_factor(const std::string& name, const json& spec, const std::string& source) {
  const std::string here = "/factors/" + name;
  Factor factor;
  factor.name = name;
  const auto type = spec.at("type").get<std::string>();
  factor.type = type == "numeric" ? FactorType::kNumeric
                : type == "bool"  ? FactorType::kBool
                                  : FactorType::kCategorical;
  const auto forms = spec.count("levels") + spec.count("powers_of_two") + spec.count("powers") +
                     spec.count("range");
  if (forms > 1) {
    return bad_value(source, here, "give levels, powers_of_two, powers or range, only one of them");
  }
  if (spec.contains("levels")) {
    for (const json& level : spec["levels"]) {
      if (level.is_boolean()) {
        factor.levels.emplace_back(level.get<bool>());
      } else if (level.is_number()) {
        factor.levels.emplace_back(level.get<double>());
      } else {
        factor.levels.emplace_back(level.get<std::string>());
      }
    }
  } else if (forms == 1) {
    if (factor.type != FactorType::kNumeric) {
      return bad_value(source, here, "ranges and powers are for numeric factors; list the levels");
    }
    auto levels = progression(spec, source, here);
    if (!levels) return pass_on(levels);
    factor.levels = std::move(*levels);
  } else if (factor.type == FactorType::kBool) {
    factor.levels = {FactorValue(false), FactorValue(true)};
  } else {
    return bad_value(source, here, "has no levels; add levels, powers_of_two, powers or range");
  }
  factor.weights = spec.value("weights", std::vector<double>{});
  factor.costs = spec.value("costs", std::vector<double>{});
  factor.only_if = spec.value("only_if", std::string());
  if (auto good = check_levels(factor, source, here); !good) return pass_on(good);
  return factor;
}

/// Every factor named must exist and every level be one of its levels.
Result<void> check_partial(const Campaign& campaign, const Configuration& partial,
                           const std::string& here) {
  for (const auto& [name, level] : partial.levels()) {
    const Factor* factor = campaign.find(name);
    if (factor == nullptr) {
      return bad_value(campaign.source, here + "/" + name, "is not a factor of this campaign");
    }
    if (std::find(factor->levels.begin(), factor->levels.end(), level) == factor->levels.end()) {
      return bad_value(campaign.source, here + "/" + name,
                       fmt::format("{} is not a level of this factor", to_string(level)));
    }
  }
  return {};
}

/// Every factor named must exist, but a measured point need not be one of the listed levels.
Result<void> check_point(const Campaign& campaign, const Configuration& point,
                         const std::string& here) {
  for (const auto& [name, level] : point.levels()) {
    const Factor* factor = campaign.find(name);
    const FactorInfo* row = find_factor(name);
    if (factor == nullptr && row == nullptr) {
      return bad_value(campaign.source, here + "/" + name, "is not a factor of this campaign");
    }
    std::string wrong = wrong_type(factor != nullptr ? factor->type : row->type, level);
    if (wrong.empty() && row != nullptr) wrong = outside_table(*row, level);
    if (!wrong.empty()) return bad_value(campaign.source, here + "/" + name, wrong);
  }
  return {};
}

Result<std::vector<Configuration>> read_list(const json& array, const std::string& source,
                                             const std::string& here) {
  std::vector<Configuration> list;
  for (const json& item : array) {
    auto configuration =
        configuration_from_json(item, source, fmt::format("{}/{}", here, list.size()));
    if (!configuration) return pass_on(configuration);
    list.push_back(std::move(*configuration));
  }
  return list;
}

Result<Design> read_design(const json& spec, const std::string& source) {
  Design design;
  if (spec.is_string()) {
    const auto name = spec.get<std::string>();
    if (name == "full") {
      design.kind = DesignKind::kFull;
    } else {
      design.strength = name == "pairwise" ? 2 : name.front() - '0';
    }
  } else if (spec.contains("random")) {
    design.kind = DesignKind::kRandom;
    design.count = spec["random"].get<std::uint64_t>();
  } else if (spec.contains("points")) {
    design.kind = DesignKind::kPoints;
    auto points = read_list(spec["points"], source, "/design/points");
    if (!points) return pass_on(points);
    design.points = std::move(*points);
  } else if (spec.contains("model")) {
    design.kind = DesignKind::kModel;
    design.law = spec["model"].get<std::string>();
    design.count = spec["budget"].get<std::uint64_t>();
  } else {
    design.strength = spec.at("strength").get<int>();
    for (const json& group : spec.value("groups", json::array())) {
      design.groups.push_back(
          {group.at("factors").get<std::vector<std::string>>(), group.at("strength").get<int>()});
    }
  }
  return design;
}

/// The masks, and their factors behind the campaign's own.
Result<void> read_masks(const json& document, Campaign& campaign) {
  auto groups = mask_groups_from_json(document.at("masks"), campaign.source);
  if (!groups) return pass_on(groups);
  campaign.masks = std::move(*groups);
  campaign.mask_order = document.value("mask_order", false);
  const auto add = [&](Factor factor, const std::string& here) -> Result<void> {
    if (campaign.find(factor.name) != nullptr) {
      return bad_value(campaign.source, here, "makes a second factor " + factor.name);
    }
    campaign.factors.push_back(std::move(factor));
    return {};
  };
  for (std::size_t i = 0; i < campaign.masks.size(); ++i) {
    const std::string here = fmt::format("/masks/{}", i);
    const MaskGroup& group = campaign.masks[i];
    if (campaign.find(mask_factor(group.hop)) != nullptr) {
      return bad_value(campaign.source, here,
                       fmt::format("says which masks there are at {}, and so does the factor {}; "
                                   "remove one of the two",
                                   to_string(group.hop), mask_factor(group.hop)));
    }
    auto factors = mask_factors(group);
    if (!factors) return bad_value(campaign.source, here, factors.error().message);
    for (MaskFactor& made : *factors) {
      if (auto added = add(std::move(made.factor), here); !added) return added;
    }
  }
  if (!campaign.mask_order) return {};
  for (Factor& factor : order_factors(campaign.masks)) {
    if (auto added = add(std::move(factor), "/mask_order"); !added) return added;
  }
  return {};
}

Result<WallRule> read_wall(const json& spec, const std::string& source) {
  WallRule wall;
  wall.metric = spec.at("metric").get<std::string>();
  const auto bound = [&](const char* key) -> std::optional<double> {
    if (!spec.contains(key)) return std::nullopt;
    return spec[key].get<double>();
  };
  wall.below_baseline_by = bound("below_baseline_by");
  wall.above_baseline_by = bound("above_baseline_by");
  wall.below = bound("below");
  wall.above = bound("above");
  if (wall.below_baseline_by.has_value() + wall.above_baseline_by.has_value() +
          wall.below.has_value() + wall.above.has_value() !=
      1) {
    return bad_value(source, "/wall",
                     "needs exactly one of below_baseline_by, above_baseline_by, below, above");
  }
  return wall;
}

Result<void> check_names(const Campaign& campaign) {
  for (std::size_t i = 0; i < campaign.forbidden.size(); ++i) {
    if (auto good = check_partial(campaign, campaign.forbidden[i], fmt::format("/forbidden/{}", i));
        !good) {
      return good;
    }
  }
  for (std::size_t i = 0; i < campaign.seeds.size(); ++i) {
    if (auto good = check_partial(campaign, campaign.seeds[i], fmt::format("/seeds/{}", i));
        !good) {
      return good;
    }
  }
  for (std::size_t i = 0; i < campaign.design.points.size(); ++i) {
    if (auto good =
            check_point(campaign, campaign.design.points[i], fmt::format("/design/points/{}", i));
        !good) {
      return good;
    }
  }
  if (auto good = check_point(campaign, campaign.baseline, "/baseline"); !good) return good;
  for (const StrengthGroup& group : campaign.design.groups) {
    for (const std::string& name : group.factors) {
      if (campaign.find(name) == nullptr) {
        return bad_value(campaign.source, "/design/groups", name + " is not a factor");
      }
    }
  }
  if (campaign.baseline.empty() &&
      (campaign.wall.below_baseline_by || campaign.wall.above_baseline_by)) {
    return bad_value(campaign.source, "/baseline",
                     "is missing; the wall is stated as a share of it");
  }
  return {};
}

}  // namespace

Result<Campaign> parse_campaign(std::string_view text, const std::string& source) {
  auto parsed = parse_json(text, source);
  if (!parsed) return pass_on(parsed);
  if (auto fits = check_schema(*parsed, "campaign", source); !fits) return pass_on(fits);
  const json& document = *parsed;
  Campaign campaign;
  campaign.source = source;
  campaign.text = text;
  try {
    campaign.name = document.at("name").get<std::string>();
    for (const auto& [name, spec] : document.at("factors").items()) {
      auto factor = read_factor(name, spec, source);
      if (!factor) return pass_on(factor);
      campaign.factors.push_back(std::move(*factor));
    }
    if (document.contains("masks")) {
      if (auto done = read_masks(document, campaign); !done) return pass_on(done);
    }
    campaign.constraints = document.value("constraints", std::vector<std::string>{});
    auto forbidden = read_list(document.value("forbidden", json::array()), source, "/forbidden");
    if (!forbidden) return pass_on(forbidden);
    campaign.forbidden = std::move(*forbidden);
    auto seeds = read_list(document.value("seeds", json::array()), source, "/seeds");
    if (!seeds) return pass_on(seeds);
    campaign.seeds = std::move(*seeds);
    campaign.topology = document.value("topology", std::string());
    auto design = read_design(document.at("design"), source);
    if (!design) return pass_on(design);
    campaign.design = std::move(*design);
    auto baseline =
        configuration_from_json(document.value("baseline", json::object()), source, "/baseline");
    if (!baseline) return pass_on(baseline);
    campaign.baseline = std::move(*baseline);
    if (document.contains("wall")) {
      auto wall = read_wall(document["wall"], source);
      if (!wall) return pass_on(wall);
      campaign.wall = std::move(*wall);
    } else if (!campaign.baseline.empty()) {
      campaign.wall.below_baseline_by = 0.2;
    }
    if (document.contains("measure")) {
      const json& measure = document["measure"];
      campaign.measure.repeats = measure.value("repeats", campaign.measure.repeats);
      const double seconds = measure.value("seconds", 1.0);
      if (!(seconds < 1e6)) return bad_value(source, "/measure/seconds", "is more than 11 days");
      campaign.measure.duration = std::chrono::nanoseconds(std::llround(seconds * 1e9));
      campaign.measure.metrics = measure.value("metrics", std::vector<std::string>{});
    }
  } catch (const json::exception& error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", source, error.what()));
  }
  if (auto good = check_names(campaign); !good) return pass_on(good);
  return campaign;
}

Result<Campaign> read_campaign(const std::string& path) {
  auto text = read_text(path);
  if (!text) return pass_on(text);
  return parse_campaign(*text, path);
}

Result<Campaign> override_levels(Campaign campaign, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto factor =
        std::find_if(campaign.factors.begin(), campaign.factors.end(),
                     [&](const Factor& candidate) { return candidate.name == name; });
    if (equals == std::string::npos || factor == campaign.factors.end()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--set {}: write factor=level,level with a factor of {}", text,
                              campaign.source));
    }
    factor->levels.clear();
    factor->weights.clear();
    factor->costs.clear();
    std::string_view rest = std::string_view(text).substr(equals + 1);
    while (true) {
      const std::size_t comma = rest.find(',');
      auto level = parse_factor_value(factor->type, rest.substr(0, comma));
      if (!level) return level.error().while_doing("--set " + text);
      factor->levels.push_back(std::move(*level));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (auto good = check_levels(*factor, "--set", "/" + name); !good) return pass_on(good);
  }
  if (auto good = check_names(campaign); !good) return pass_on(good);
  return campaign;
}

}  // namespace greynic::files
