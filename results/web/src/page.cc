#include "greynic/web/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "greynic/core/measure.h"
#include "greynic/files/json_file.h"

namespace greynic::web {

namespace {

constexpr std::string_view kECharts = "echarts.min.js";

std::string_view asset(std::span<const EmbeddedFile> assets, std::string_view name) {
  for (const EmbeddedFile& file : assets) {
    if (file.name == name) return file.text;
  }
  return {};
}

/// JSON inside a <script>: no text of it can end the element.
std::string script_safe(std::string text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

/// Parts of a measure's name that say its unit.
constexpr std::array<std::string_view, 9> kUnitWords = {"gbps", "mops",  "mpps",  "us",    "ns",
                                                        "ms",   "share", "bytes", "cycles"};

}  // namespace

Result<void> check_live_pages(std::span<const EmbeddedFile> assets) {
  if (!asset(assets, kECharts).empty()) return {};
  return fail(ErrorCode::kMissing,
              "live pages need the npm package echarts, which this greynic was built without; "
              "scripts/setup.sh installs it, then build again");
}

std::string Table::text() const {
  const auto cell = [&](std::size_t column, const char* tag, std::string_view text) {
    const bool is_number = columns_[column].starts_with('>');
    return fmt::format("<{}{}>{}</{}>", tag, is_number ? " class=\"n\"" : "", escape_markup(text),
                       tag);
  };
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string_view name = columns_[i];
    out += cell(i, "th", name.starts_with('>') ? name.substr(1) : name);
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows_) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) out += cell(i, "td", row[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

void Page::section(std::string_view id, std::string_view heading) {
  if (open_section_) body_ += "</section>\n";
  open_section_ = true;
  body_ += fmt::format("<section id=\"{}\"><h2>{}</h2>\n", id, escape_markup(heading));
  navigation_ += fmt::format("<a href=\"#{}\">{}</a>", id, escape_markup(heading));
}

void Page::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", escape_markup(text));
}

void Page::folded(std::string_view summary, const std::string& markup) {
  body_ +=
      fmt::format("<details><summary>{}</summary>{}</details>\n", escape_markup(summary), markup);
}

void Page::chart(nlohmann::json description, std::string_view caption, bool small) {
  if (asset(assets_, kECharts).empty()) return;
  body_ += fmt::format(
      "<figure class=\"{}\"><div class=\"chart\" data-chart=\"{}\" data-kind=\"{}\" role=\"img\" "
      "aria-label=\"{}\">"
      "</div><figcaption>{}</figcaption></figure>\n",
      small ? "small" : "wide", charts_.size(), description.at("kind").get<std::string>(),
      escape_markup(caption), escape_markup(caption));
  charts_.push_back(std::move(description));
}

void Page::badge(std::string_view text, std::string_view tone) {
  badges_ += fmt::format("<span class=\"badge {}\">{}</span>\n", tone, escape_markup(text));
}

void Page::command(std::string_view label, std::string_view text) {
  command_ = fmt::format("<div class=\"label\">{}</div><pre class=\"command\">{}</pre>\n",
                         escape_markup(label), escape_markup(text));
}

void Page::fact(std::string_view name, std::string_view text) {
  facts_ +=
      fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_markup(name), escape_markup(text));
}

void Page::card(std::string_view label, std::string_view value, std::string_view note,
                std::string_view tone) {
  cards_ += fmt::format(
      "<div class=\"card {}\"><div class=\"label\">{}</div><div class=\"value\">{}</div>"
      "<div class=\"note\">{}</div></div>\n",
      tone, escape_markup(label), escape_markup(value), escape_markup(note));
}

std::string Page::text() const {
  const std::string data = script_safe(files::json_text(charts_));
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  // An empty icon: a browser would else ask the network for one.
  out += "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title>\n<style>{}</style></head><body>\n", escape_markup(title_),
                     asset(assets_, "page.css"));
  out +=
      fmt::format("<header><div class=\"brand\">greynic</div><h1>{}</h1>\n", escape_markup(title_));
  out += fmt::format("<div class=\"badges\">{}</div>\n{}<dl>{}</dl>\n", badges_, command_, facts_);
  out += fmt::format("<div class=\"cards\">\n{}</div></header>\n<nav>{}</nav>\n<main>\n", cards_,
                     navigation_);
  out += body_;
  if (open_section_) out += "</section>\n";
  out += "</main>\n";
  const std::string_view echarts = asset(assets_, kECharts);
  if (echarts.empty()) {
    return out +
           "<p class=\"hint\">Pictures need the npm package echarts, which greynic was built "
           "without: "
           "scripts/setup.sh installs it, then build again. The tables hold every number.</p>\n"
           "</body></html>\n";
  }
  out +=
      "<noscript><p class=\"hint\">Pictures need JavaScript; the tables hold every number."
      "</p></noscript>\n";
  out += fmt::format("<script type=\"application/json\" id=\"charts\">{}</script>\n", data);
  for (const std::string_view script : {echarts, asset(assets_, "charts.js")}) {
    out += "<script>";
    out += script;
    out += "</script>\n";
  }
  return out + "</body></html>\n";
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string interval(double low, double high) { return fmt::format("[{:.4g}, {:.4g}]", low, high); }

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string unit_of(std::string_view measure) {
  const MeasureInfo* info = find_measure(measure);
  if (info == nullptr) return {};
  return info->unit == "us" ? "µs" : std::string(info->unit);
}

std::string title_of(std::string_view measure) {
  const std::string unit = unit_of(measure);
  std::string title;
  for (std::size_t at = 0; at <= measure.size();) {
    const std::size_t end = std::min(measure.find('_', at), measure.size());
    const std::string_view word = measure.substr(at, end - at);
    const bool is_unit = !unit.empty() && std::ranges::find(kUnitWords, word) != kUnitWords.end();
    if (!is_unit) title += (title.empty() ? "" : " ") + std::string(word);
    at = end + 1;
  }
  return unit.empty() ? title : fmt::format("{} ({})", title, unit);
}

nlohmann::json axis_of(std::string_view measure, std::span<const double> values) {
  const MeasureInfo* info = find_measure(measure);
  const Axis axis = info == nullptr ? Axis::kLinear : info->axis;
  std::string scale = axis == Axis::kShare ? "share" : "linear";
  if (axis == Axis::kLogarithmic && !values.empty()) {
    const auto [least, most] = std::ranges::minmax_element(values);
    if (*least > 0.0 && *most >= 10 * *least) scale = "log";
  }
  return {{"title", title_of(measure)}, {"scale", scale}};
}

}  // namespace greynic::web
