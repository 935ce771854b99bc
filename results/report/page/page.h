#pragma once

/// The pieces of the page: escaped text, tables, sections, and charts described as JSON for
/// report.js.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/results/markup.h"

namespace greynic::report {

using results::escape_markup;

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

/// The page in the making.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void section(std::string_view id, std::string_view heading);
  void paragraph(std::string_view text);
  /// Text in HTML already.
  void raw(std::string_view markup) { body_ += markup; }
  void table(const Table& table) { body_ += table.text(); }
  /// A table behind a line that opens it.
  void folded(std::string_view summary, const std::string& markup);
  /// A figure: "kind" tells report.js how to draw it; the caption stands below.
  void chart(nlohmann::json description, std::string_view caption, bool small = false);
  void begin_grid() { body_ += "<div class=\"grid\">\n"; }
  void end_grid() { body_ += "</div>\n"; }
  /// A number of the summary at the top.
  void card(std::string_view label, std::string_view value, std::string_view note,
            std::string_view tone = "");

  [[nodiscard]] std::string text() const;

 private:
  std::string title_;
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
/// "bandwidth_gbps" -> "Gbit/s": the unit that a measure's name carries, empty when none is known.
[[nodiscard]] std::string unit_of(std::string_view measure);
/// "bandwidth_gbps" -> "bandwidth (Gbit/s)"
[[nodiscard]] std::string title_of(std::string_view measure);

}  // namespace greynic::report
