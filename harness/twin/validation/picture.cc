#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "greynic/twin/validation.h"

/// A picture as SVG: published points as circles joined by dashes, the twin as plain lines.

namespace greynic::twin {
namespace {

constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 70, kRight = 210, kTop = 40, kBottom = 55;
constexpr std::array<const char*, 6> kColours = {"#1b6ca8", "#c8553d", "#3c8d53",
                                                 "#8e5ea2", "#b8860b", "#444444"};

/// One axis: from values to pixels, with round ticks.
struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool logarithmic = false;

  [[nodiscard]] double scale(double v) const { return logarithmic ? std::log10(v) : v; }
  [[nodiscard]] double at(double v) const {
    return from + (scale(v) - scale(low)) / (scale(high) - scale(low)) * (to - from);
  }
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> result;
    if (logarithmic) {
      for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 1.0001;
           decade *= 10) {
        if (decade >= low * 0.9999) result.push_back(decade);
      }
      if (result.size() >= 2) return result;
      return {low, high};
    }
    double step = std::pow(10, std::floor(std::log10((high - low) / 4)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if ((high - low) / step > 8) step *= factor;
    }
    for (double tick = std::ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) {
      result.push_back(std::abs(tick) < step * 1e-9 ? 0.0 : tick);
    }
    return result;
  }
};

Axis axis_of(const std::vector<Series>& series, bool second, bool logarithmic) {
  Axis axis;
  axis.logarithmic = logarithmic;
  bool first = true;
  for (const Series& line : series) {
    for (const auto& point : line.points) {
      const double value = second ? point.second : point.first;
      axis.low = first ? value : std::min(axis.low, value);
      axis.high = first ? value : std::max(axis.high, value);
      first = false;
    }
  }
  if (!logarithmic && second) axis.low = std::min(axis.low, 0.0);
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  if (second) axis.high += logarithmic ? axis.high * 0.2 : (axis.high - axis.low) * 0.05;
  return axis;
}

}  // namespace

std::string Picture::to_svg() const {
  Axis x = axis_of(series, false, log_x);
  Axis y = axis_of(series, true, log_y);
  x.from = kLeft;
  x.to = kWidth - kRight;
  y.from = kHeight - kBottom;
  y.to = kTop;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"22\" font-size=\"15\">{3}</text>\n",
      kWidth, kHeight, kLeft, title);
  for (const double tick : x.ticks()) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e4e4e4\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        x.at(tick), y.from, y.to, y.from + 18, tick);
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#e4e4e4\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        x.from, y.at(tick), x.to, x.from - 8, y.at(tick) + 4, tick);
  }
  svg += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n"
      "<text transform=\"translate(16 {3}) rotate(-90)\" text-anchor=\"middle\">{4}</text>\n",
      (x.from + x.to) / 2, kHeight - 14, x_label, (y.from + y.to) / 2, y_label);
  // A published line and the twin's line after it share a colour.
  std::size_t colour = 0;
  double legend = kTop + 8;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Series& line = series[i];
    if (i > 0 && !(series[i - 1].published && !line.published)) ++colour;
    const char* ink = kColours[colour % kColours.size()];
    std::string path;
    for (const auto& [px, py] : line.points) {
      path += fmt::format("{:.1f},{:.1f} ", x.at(px), y.at(py));
      if (line.published) {
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(px),
                           y.at(py), ink);
      }
    }
    const char* dash = line.published ? "4 4" : "none";
    svg += fmt::format(
        "<polyline points=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"1.6\" "
        "stroke-dasharray=\"{2}\"/>\n<line x1=\"{3}\" y1=\"{4}\" x2=\"{5}\" y2=\"{4}\" "
        "stroke=\"{1}\" stroke-width=\"1.6\" stroke-dasharray=\"{2}\"/>"
        "<text x=\"{6}\" y=\"{7}\" font-size=\"10\">{8}</text>\n",
        path, ink, dash, x.to + 12, legend, x.to + 34, x.to + 40, legend + 4, line.name);
    legend += 16;
  }
  return svg + "</svg>\n";
}

}  // namespace greynic::twin
