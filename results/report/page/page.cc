#include "page/page.h"

#include <fmt/core.h>

#include <array>
#include <span>

#include "greynic/core/embedded.h"

namespace greynic::report {

std::span<const EmbeddedFile> embedded_web();

namespace {

std::string_view asset(std::string_view name) {
  for (const EmbeddedFile& file : embedded_web()) {
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

/// Suffixes of measure names and the units they stand for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kUnits = {{
    {"_gbps", "Gbit/s"},
    {"_mops", "million/s"},
    {"_mpps", "million packets/s"},
    {"_us", "µs"},
    {"_ns", "ns"},
    {"_ms", "ms"},
    {"_bytes", "bytes"},
    {"_share", "share"},
}};

/// Where the unit stands in a measure's name; it may be followed by a qualifier (latency_us_p99).
std::pair<std::size_t, std::size_t> unit_at(std::string_view measure) {
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::size_t at = measure.find(kUnits[i].first);
    if (at == std::string_view::npos) continue;
    const std::size_t end = at + kUnits[i].first.size();
    if (end == measure.size() || measure[end] == '_') return {at, i};
  }
  return {std::string_view::npos, 0};
}

}  // namespace

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
  body_ += fmt::format(
      "<figure class=\"{}\"><div class=\"chart\" data-chart=\"{}\" role=\"img\" aria-label=\"{}\">"
      "</div><figcaption>{}</figcaption></figure>\n",
      small ? "small" : "wide", charts_.size(), escape_markup(caption), escape_markup(caption));
  charts_.push_back(std::move(description));
}

void Page::card(std::string_view label, std::string_view value, std::string_view note,
                std::string_view tone) {
  cards_ += fmt::format(
      "<div class=\"card {}\"><div class=\"label\">{}</div><div class=\"value\">{}</div>"
      "<div class=\"note\">{}</div></div>\n",
      tone, escape_markup(label), escape_markup(value), escape_markup(note));
}

std::string Page::text() const {
  const std::string data =
      script_safe(charts_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // An empty icon: a browser would else ask the network for one.
  out += "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title>\n<style>{}</style></head><body>\n", escape_markup(title_),
                     asset("report.css"));
  out +=
      fmt::format("<header><div class=\"brand\">greynic</div><h1>{}</h1>\n", escape_markup(title_));
  out += fmt::format("<div class=\"cards\">\n{}</div></header>\n<nav>{}</nav>\n<main>\n", cards_,
                     navigation_);
  out += body_;
  if (open_section_) out += "</section>\n";
  out +=
      "</main>\n<noscript><p class=\"hint\">Pictures need JavaScript; the tables hold every number."
      "</p></noscript>\n";
  out += fmt::format("<script type=\"application/json\" id=\"charts\">{}</script>\n", data);
  for (const std::string_view script : {asset("echarts.min.js"), asset("report.js")}) {
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
  const auto [at, unit] = unit_at(measure);
  return at == std::string_view::npos ? std::string() : std::string(kUnits[unit].second);
}

std::string title_of(std::string_view measure) {
  const auto [at, unit] = unit_at(measure);
  std::string name(measure);
  if (at != std::string_view::npos) name.erase(at, kUnits[unit].first.size());
  for (char& c : name) c = c == '_' ? ' ' : c;
  if (at != std::string_view::npos) name += fmt::format(" ({})", kUnits[unit].second);
  return name;
}

}  // namespace greynic::report
