#include <fmt/core.h>

#include "greynic/results/compare.h"
#include "greynic/results/markup.h"

namespace greynic::results {
namespace {

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
    cases +=
        fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escape_markup(comparison.metric),
                    escape_markup(comparison.configuration.name()));
    const std::string effect = effect_text(comparison);
    if (comparison.verdict == Verdict::kRegressed || comparison.verdict == Verdict::kBroke) {
      cases += fmt::format(">\n      <failure type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
                           to_string(comparison.verdict), escape_markup(effect));
    } else if (comparison.verdict == Verdict::kNotJudged) {
      ++skipped;
      cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                           escape_markup(comparison.reason));
    } else {
      cases += fmt::format(">\n      <system-out>{}: {}</system-out>\n    </testcase>\n",
                           to_string(comparison.verdict), escape_markup(effect));
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" "
      "errors=\"0\">\n"
      "    <properties><property name=\"method\" value=\"{}\"/></properties>\n{}"
      "  </testsuite>\n</testsuites>\n",
      escape_markup(name), report.comparisons.size(), report.regressions, skipped,
      escape_markup(report.method), cases);
}

}  // namespace greynic::results
