#pragma once

/// A page that is one file, with everything it needs inside: escaped text, tables, sections, and
/// charts described as JSON for charts.js, which draws them with Apache ECharts.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/embedded.h"
#include "greynic/core/result.h"
#include "greynic/results/markup.h"

namespace greynic::web {

using results::escape_markup;

/// page.css and charts.js, and echarts.min.js where the build had it: for pages that a server gives.
[[nodiscard]] std::span<const EmbeddedFile> files();
/// kMissing with the remedy when ECharts is not there: live pages are nothing without it.
[[nodiscard]] Result<void> check_live_pages(std::span<const EmbeddedFile> assets = files());

/// Colours of causes, here and in page.css and charts.js; a seventh cause takes the first again.
inline constexpr int kCauseColours = 6;

/// A table whose cells are text; numbers are right-aligned by their column.
class Table {
 public:
  /// A name that begins with '>' is of a column of numbers.
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The page in the making. Without ECharts among the assets it has no pictures, and says so.
class Page {
 public:
  explicit Page(std::string title, std::span<const EmbeddedFile> assets = files())
      : title_(std::move(title)), assets_(assets) {}

  void section(std::string_view id, std::string_view heading);
  void paragraph(std::string_view text);
  /// Text in HTML already.
  void raw(std::string_view markup) { body_ += markup; }
  void table(const Table& table) { body_ += table.text(); }
  /// A table behind a line that opens it.
  void folded(std::string_view summary, const std::string& markup);
  /// A figure: "kind" tells charts.js how to draw it; the caption stands below.
  void chart(nlohmann::json description, std::string_view caption, bool small = false);
  void begin_grid() { body_ += "<div class=\"grid\">\n"; }
  void end_grid() { body_ += "</div>\n"; }
  /// The head of the page: what was measured, in one word each; the command; name and text.
  void badge(std::string_view text, std::string_view tone);
  void command(std::string_view label, std::string_view text);
  void fact(std::string_view name, std::string_view text);
  /// A number of the summary at the top.
  void card(std::string_view label, std::string_view value, std::string_view note,
            std::string_view tone = "");

  [[nodiscard]] std::string text() const;

 private:
  std::string title_;
  std::span<const EmbeddedFile> assets_;
  std::string badges_;
  std::string command_;
  std::string facts_;
  std::string cards_;
  std::string navigation_;
  std::string body_;
  nlohmann::json charts_ = nlohmann::json::array();
  bool open_section_ = false;
};

/// "12.3", "0.0045", "1.2e+07": four digits, for people.
[[nodiscard]] std::string number(double value);
/// "[11.9, 12.7]"
[[nodiscard]] std::string interval(double low, double high);
/// "37.5 %"
[[nodiscard]] std::string percent(double share);
/// "bandwidth_gbps" -> "Gbit/s", by the table of measures; empty for a measure it does not know.
[[nodiscard]] std::string unit_of(std::string_view measure);
/// "bandwidth_gbps" -> "bandwidth (Gbit/s)"
[[nodiscard]] std::string title_of(std::string_view measure);
/// Title and scale of an axis that shows these values: "share", "log" where the table of measures
/// says so and the values span a decade, else "linear".
[[nodiscard]] nlohmann::json axis_of(std::string_view measure, std::span<const double> values);

}  // namespace greynic::web
