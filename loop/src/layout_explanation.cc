#include "greynic/loop/layout_explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greynic::loop {
namespace {

constexpr std::size_t kRowsShown = 10;

std::string percent(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

template <typename Item, typename Row>
std::string rows(const std::vector<Item>& items, std::string_view what, const Row& row) {
  std::string text;
  const std::size_t shown = std::min(items.size(), kRowsShown);
  for (std::size_t i = 0; i < shown; ++i) text += row(items[i]);
  if (items.size() > shown)
    text += fmt::format("  ... and {} {} more\n", items.size() - shown, what);
  return text;
}

/// "at matcher 3 of table 0 (ipv4_dst=10.1.0.0/16), then at matcher 2 of table 7".
std::string way_text(const std::vector<optimizer::FlowStep>& way) {
  std::string text;
  for (const optimizer::FlowStep& step : way) {
    text += text.empty() ? "" : ", then ";
    if (step.match) {
      text += fmt::format("matcher {} of table {} ({})", step.tried, step.table,
                          to_string(*step.match));
    } else {
      text += fmt::format("all {} matchers of table {}, without a hit", step.tried, step.table);
    }
  }
  return text.empty() ? "no table" : text;
}

std::string flow_row(const optimizer::FlowChange& flow) {
  std::string rule = "no rule";
  if (!flow.decided_by.empty()) rule = fmt::format("line {}", flow.decided_by.front() + 1);
  return fmt::format("  {:>7} {:>9} {:>9}  {} decides {}\n{:>30}before: {}\n{:>30}after: {}\n",
                     percent(flow.share), tried_on(flow.before), tried_on(flow.after), rule,
                     to_string(flow.packet), "", way_text(flow.before), "", way_text(flow.after));
}

std::string why_table(const optimizer::TableRole& table) {
  if (table.entered) return "packets start here";
  if (table.ways_in == 0) return "no jump leads here";
  if (table.way_in_mask.fields().empty()) {
    return fmt::format("{} ways in; most come from table {}, which did not decide them",
                       table.ways_in, table.way_in_table);
  }
  return fmt::format("{} ways in; most come from table {}, told apart by {}", table.ways_in,
                     table.way_in_table, to_string(table.way_in_mask));
}

std::string table_row(const optimizer::TableRole& table) {
  return fmt::format("  {:>7} {:>9.2f} {:>9} {:>9}  table {}: {}\n", percent(table.share),
                     table.tried, table.matchers, table.rules, table.id, why_table(table));
}

std::string mask_row(const optimizer::MaskChange& change) {
  return fmt::format("  {:>7} {:>9.2f} {:>9.2f} {:>9} {:>9}  {}\n", percent(change.share),
                     change.tried_before, change.tried_after, change.matchers_before,
                     change.matchers_after, to_string(change.mask));
}

nlohmann::json way_json(const std::vector<optimizer::FlowStep>& way) {
  nlohmann::json steps = nlohmann::json::array();
  for (const optimizer::FlowStep& step : way) {
    nlohmann::json made = {{"table", step.table}, {"matchers_tried", step.tried}};
    if (step.match) made["match"] = to_string(*step.match);
    steps.push_back(std::move(made));
  }
  return steps;
}

}  // namespace

std::string to_text(const optimizer::Explanation& explanation) {
  std::string text = fmt::format("\nHottest flows\n  {:>7} {:>9} {:>9}  {}\n", "share", "before",
                                 "after", "matchers tried, and why");
  text += rows(explanation.flows, "flows", flow_row);
  text += fmt::format("\nTables of the layout\n  {:>7} {:>9} {:>9} {:>9}  {}\n", "share", "tried",
                      "matchers", "rules", "why");
  text += rows(explanation.tables, "tables", table_row);
  text += fmt::format(
      "\nMasks, by what their packets save (matchers tried by the packets that they decided)\n"
      "  {:>7} {:>9} {:>9} {:>9} {:>9}  mask\n  {:>7} {:>9} {:>9} {:>9} {:>9}\n",
      "share", "tried", "tried", "matchers", "matchers", "", "before", "after", "before", "after");
  return text + rows(explanation.masks, "masks", mask_row);
}

nlohmann::json to_json(const optimizer::Explanation& explanation) {
  nlohmann::json masks = nlohmann::json::array();
  for (const optimizer::MaskChange& change : explanation.masks) {
    masks.push_back({{"mask", to_string(change.mask)},
                     {"share", change.share},
                     {"rules", change.rules},
                     {"matchers_before", change.matchers_before},
                     {"matchers_after", change.matchers_after},
                     {"tried_before", change.tried_before},
                     {"tried_after", change.tried_after}});
  }
  nlohmann::json tables = nlohmann::json::array();
  for (const optimizer::TableRole& table : explanation.tables) {
    tables.push_back({{"id", table.id},
                      {"share", table.share},
                      {"matchers", table.matchers},
                      {"rules", table.rules},
                      {"tried_mean", table.tried},
                      {"ways_in", table.ways_in},
                      {"why", why_table(table)}});
  }
  nlohmann::json flows = nlohmann::json::array();
  for (const optimizer::FlowChange& flow : explanation.flows) {
    flows.push_back({{"packet", to_string(flow.packet)},
                     {"share", flow.share},
                     {"from", flow.decided_by},
                     {"before", way_json(flow.before)},
                     {"after", way_json(flow.after)}});
  }
  return {{"masks", std::move(masks)}, {"tables", std::move(tables)}, {"flows", std::move(flows)}};
}

nlohmann::json to_json(const optimizer::GrowthCurve& curve) {
  nlohmann::json points = nlohmann::json::array();
  for (const optimizer::GrowthPoint& point : curve.points) {
    points.push_back({{"growth", point.growth},
                      {"rules", point.rules},
                      {"matchers_tried_mean", point.matchers_tried},
                      {"matchers_tried_p99", point.matchers_tried_p99}});
  }
  return points;
}

nlohmann::json to_json(const optimizer::MaskCurve& curve) {
  nlohmann::json points = nlohmann::json::array();
  for (const optimizer::MaskPoint& point : curve.points) {
    points.push_back({{"growth", point.growth},
                      {"entries", point.entries},
                      {"masks", point.masks},
                      {"masks_at_least", point.fewest}});
  }
  return {{"masks", curve.masks}, {"points", std::move(points)}, {"taken", curve.taken}};
}

std::string to_text(const optimizer::MaskCurve& curve) {
  std::string text = fmt::format("\n{:>8} {:>9} {:>8} {:>10} {:>10}\n", "growth", "entries",
                                 "masks", "of those", "at least");
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const optimizer::MaskPoint& point = curve.points[i];
    const double share = static_cast<double>(point.masks) / static_cast<double>(curve.masks);
    text +=
        fmt::format("{:>8} {:>9} {:>8} {:>8.1f} % {:>10}{}\n", point.growth, point.entries,
                    point.masks, 100.0 * share, point.fewest, i == curve.taken ? "  <- taken" : "");
  }
  return text + fmt::format("of {} masks of the rules\n", curve.masks);
}

}  // namespace greynic::loop
