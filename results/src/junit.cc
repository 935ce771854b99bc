#include <fmt/format.h>

#include "greynic/results/compare.h"

namespace greynic::results {
namespace {

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 has no way to write other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' ? '?' : c;
    }
  }
  return out;
}

std::string effect_text(const Comparison& comparison) {
  if (comparison.verdict == Verdict::kBroke || comparison.verdict == Verdict::kMended) {
    return comparison.reason;
  }
  const double scale = comparison.is_difference ? 1.0 : 100.0;
  return fmt::format(
      "{:.6g} -> {:.6g}: {:+.3g}{} (95 % interval {:+.3g} to {:+.3g}), adjusted p {:.3g}",
      comparison.base_mean, comparison.new_mean, comparison.effect * scale,
      comparison.is_difference ? "" : " %", comparison.effect_low * scale,
      comparison.effect_high * scale, comparison.p_worse);
}

}  // namespace

std::string junit_text(const CompareReport& report, const std::string& name) {
  std::size_t skipped = 0;
  std::string cases;
  for (const Comparison& comparison : report.comparisons) {
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml(comparison.metric),
                         xml(comparison.configuration.name()));
    const std::string effect = effect_text(comparison);
    if (comparison.verdict == Verdict::kRegressed || comparison.verdict == Verdict::kBroke) {
      cases += fmt::format(">\n      <failure type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
                           to_string(comparison.verdict), xml(effect));
    } else if (comparison.verdict == Verdict::kNotJudged) {
      ++skipped;
      cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                           xml(comparison.reason));
    } else {
      cases += fmt::format(">\n      <system-out>{}: {}</system-out>\n    </testcase>\n",
                           to_string(comparison.verdict), xml(effect));
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" "
      "errors=\"0\">\n"
      "    <properties><property name=\"method\" value=\"{}\"/></properties>\n{}"
      "  </testsuite>\n</testsuites>\n",
      xml(name), report.comparisons.size(), report.regressions, skipped, xml(report.method), cases);
}

}  // namespace greynic::results
