#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "greynic/optimizer/mask_curve.h"
#include "greynic/verify/verify.h"
#include "src/ambiguous.h"
#include "src/key_table.h"
#include "src/masks/sites.h"
#include "src/problem.h"

namespace greynic::optimizer {
namespace {

using masks::Merging;
using masks::Sites;

constexpr double kMostGrowth = 4.0;

/// The rules of one input table by mask.
struct MergedTable {
  std::uint32_t id = 0;
  std::size_t given = 0;  ///< rules
  Problem deciding;
  std::vector<std::uint32_t> mask_of_row;
  Sites sites;
};

MergedTable merged_table(const RuleSet& rules, std::uint32_t id,
                         const std::vector<std::uint32_t>& members, double most_growth) {
  Effects effects;
  Problem all = make_problem(rules, members, effects);
  const std::vector<bool> redundant = redundant_rows(all);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t row = 0; row < redundant.size(); ++row) {
    if (!redundant[row]) kept.push_back(row);
  }
  Problem deciding = part_of(all, kept);
  std::vector<std::uint32_t> rows(deciding.rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<std::vector<Word>> masks;
  std::vector<std::size_t> counts;
  std::vector<std::uint32_t> mask_of_row(rows.size());
  for (const Group& group : groups_by_mask(deciding, rows)) {
    for (const std::uint32_t row : group.rows) {
      mask_of_row[row] = static_cast<std::uint32_t>(masks.size());
    }
    masks.push_back(mask_of(deciding.rows, group.rows.front()));
    counts.push_back(group.rows.size());
  }
  const auto most = static_cast<std::size_t>(most_growth * static_cast<double>(members.size()));
  Sites sites(std::move(masks), std::move(counts), most);
  return {id, members.size(), std::move(deciding), std::move(mask_of_row), std::move(sites)};
}

double extra_allowed(const MergedTable& table, double growth) {
  return std::max(0.0, growth * static_cast<double>(table.given) -
                           static_cast<double>(table.deciding.rows.size()));
}

/// All values of the bits that the site looks at and the row does not; the row's own value first.
void write_out(const Word* value, const Word* mask, const std::vector<Word>& site,
               std::vector<std::vector<Word>>& values) {
  const std::size_t words = site.size();
  values.assign(1, {value, value + words});
  for (std::size_t w = 0; w < words; ++w) {
    for (Word open = site[w] & ~mask[w]; open != 0; open &= open - 1) {
      const Word bit = open & (~open + 1);
      const std::size_t count = values.size();
      for (std::size_t i = 0; i < count; ++i) {
        values.push_back(values[i]);
        values.back()[w] |= bit;
      }
    }
  }
}

/// The rules of the table under the masks of their sites; of equal entries only the first counts.
void add_written_out(const RuleSet& rules, const MergedTable& table, const Merging& merging,
                     RuleSet& written) {
  std::set<std::pair<std::uint32_t, std::vector<Word>>> known;
  std::vector<std::vector<Word>> values;
  const Ternaries& t = table.deciding.rows;
  for (std::uint32_t row = 0; row < t.size(); ++row) {
    const std::uint32_t place = merging.site_of[table.mask_of_row[row]];
    const std::vector<Word>& site = table.sites.candidate(place);
    write_out(t.value[row], t.mask[row], site, values);
    const FlowRule& rule = rules.rules[table.deciding.rule[row]];
    for (const std::vector<Word>& value : values) {
      if (!known.emplace(place, value).second) continue;
      FlowRule entry = rule;
      entry.match = table.deciding.columns.unpack(value.data(), site.data());
      entry.priority = static_cast<RulePriority>(row);
      entry.weight = 0.0;
      written.rules.push_back(std::move(entry));
    }
  }
}

std::vector<double> growths_with(double growth) {
  std::set<double> all = {1.0, 1.1, 1.25, 1.5, 2.0, 3.0, kMostGrowth};
  if (growth > 0.0) all.insert(growth);
  return {all.begin(), all.end()};
}

Result<OptimizedLayout> lay_out_merged(const RuleSet& rules, const Traffic& traffic,
                                       const OptimizeOptions& options,
                                       const std::vector<MergedTable>& tables,
                                       const std::vector<Merging>& mergings) {
  RuleSet written{{}, rules.source};
  for (std::size_t i = 0; i < tables.size(); ++i) {
    add_written_out(rules, tables[i], mergings[i], written);
  }
  OptimizeOptions chain = options;
  chain.single_table = true;
  chain.max_growth = 1.0;
  chain.limits.most_ranges = 0;
  auto made = optimize(written, traffic, chain);
  if (!made) return made;
  const auto verdict = verify::verify(rules, made->layout);
  if (!verdict) return verdict.error().while_doing("proving the chain of merged masks");
  if (!verdict->equivalent) {
    return fail(ErrorCode::kInternal,
                fmt::format("the chain of merged masks is wrong for the packet {}; please report "
                            "the rules",
                            to_string(verdict->counterexample->packet)));
  }
  made->proof.tables += made->layout.tables.size();
  made->proof.pairs += verdict->comparisons;
  made->proof.regions += verdict->regions;
  made->before = cost_of(layout_in_rule_order(rules), traffic);
  if (options.cost) {
    auto predicted = options.cost(made->before.shares_by_tried);
    if (!predicted) return pass_on(predicted);
    made->before.prediction = std::move(*predicted);
  }
  made->rules_given = rules.rules.size();
  made->rules_dropped = rules.rules.size();
  for (const MergedTable& table : tables) made->rules_dropped -= table.deciding.rows.size();
  made->notes = ambiguous_pairs(rules);
  return made;
}

std::vector<MergedTable> merged_tables(const RuleSet& rules, double growth) {
  std::vector<MergedTable> tables;
  for (const auto& [id, members] : rules_by_table(rules)) {
    tables.push_back(merged_table(rules, id, members, std::max(growth, kMostGrowth)));
  }
  return tables;
}

/// A curve, and for each table what its point means.
struct DrawnCurve {
  MaskCurve curve;
  std::vector<Merging> taken;
};

DrawnCurve curve_of(const std::vector<MergedTable>& tables, double growth) {
  DrawnCurve drawn;
  MaskCurve& curve = drawn.curve;
  std::vector<std::vector<masks::Merged>> by_table;
  for (const MergedTable& table : tables) curve.masks += table.sites.masks();
  for (const double allowed : growths_with(growth)) curve.points.push_back({allowed, 0, 0, 0});
  for (const MergedTable& table : tables) {
    std::vector<double> extra;
    for (const MaskPoint& point : curve.points) extra.push_back(extra_allowed(table, point.growth));
    by_table.push_back(masks::merge(table.sites, extra));
    const std::vector<masks::Merged>& merged = by_table.back();
    for (std::size_t i = 0; i < merged.size(); ++i) {
      MaskPoint& point = curve.points[i];
      point.masks += merged[i].merging.kept;
      point.fewest += merged[i].fewest;
      point.entries +=
          table.deciding.rows.size() + static_cast<std::size_t>(merged[i].merging.extra);
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const MaskPoint& point = curve.points[i];
    const double product = static_cast<double>(point.entries) * static_cast<double>(point.masks);
    if (growth > 0.0 ? point.growth != growth : !(product < least)) continue;
    least = product;
    curve.taken = i;
  }
  for (auto& merged : by_table) drawn.taken.push_back(std::move(merged[curve.taken].merging));
  return drawn;
}

}  // namespace

MaskCurve mask_curve(const RuleSet& rules, double growth) {
  return curve_of(merged_tables(rules, growth), growth).curve;
}

Result<MergedMasks> merge_masks(const RuleSet& rules, const Traffic& traffic,
                                const OptimizeOptions& options, double growth) {
  const auto start = std::chrono::steady_clock::now();
  if (rules.rules.empty()) return fail(ErrorCode::kBadInput, "there are no rules to lay out");
  if (growth != 0.0 && (!(growth >= 1.0) || !std::isfinite(growth))) {
    return fail(ErrorCode::kBadInput, "the growth of the rules must be at least 1");
  }
  const std::vector<MergedTable> tables = merged_tables(rules, growth);
  DrawnCurve drawn = curve_of(tables, growth);
  MergedMasks merged;
  merged.curve = std::move(drawn.curve);
  auto made = lay_out_merged(rules, traffic, options, tables, drawn.taken);
  if (!made) return pass_on(made);
  merged.layout = std::move(*made);
  merged.layout.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return merged;
}

}  // namespace greynic::optimizer
