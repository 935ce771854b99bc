#include <fmt/core.h>

#include "greynic/results/compare.h"
#include "greynic/results/markup.h"

namespace greynic::results {
namespace {

std::string effect_text(const Comparison& comparison) {
  if (!comparison.reason.empty()) return comparison.reason;
  const double scale = comparison.is_difference ? 1.0 : 100.0;
  return fmt::format(
      "{:.6g} -> {:.6g}: {:+.3g}{} (95 % interval {:+.3g} to {:+.3g}), adjusted p {:.3g}",
      comparison.base_mean, comparison.new_mean, comparison.effect * scale,
      comparison.is_difference ? "" : " %", comparison.effect_low * scale,
      comparison.effect_high * scale, comparison.p_worse);
}

std::string test_case(std::string_view suite, const Configuration& configuration,
                      const std::string& content) {
  return fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n      {}\n    </testcase>\n",
                     escape_markup(suite), escape_markup(configuration.name()), content);
}

std::string skipped(const std::string& why) {
  return fmt::format("<skipped message=\"{}\"/>", escape_markup(why));
}

std::string content_of(const Comparison& comparison) {
  const std::string effect = effect_text(comparison);
  switch (comparison.change) {
    case Change::kRegressed:
    case Change::kBroke:
      return fmt::format("<failure type=\"{}\" message=\"{}\"/>", to_string(comparison.change),
                         escape_markup(effect));
    case Change::kNotJudged:
      return skipped(effect);
    default:
      return fmt::format("<system-out>{}: {}</system-out>", to_string(comparison.change),
                         escape_markup(effect));
  }
}

}  // namespace

std::string junit_text(const CompareReport& report, const std::string& name) {
  std::string cases;
  for (const Comparison& comparison : report.comparisons) {
    cases += test_case(comparison.metric, comparison.configuration, content_of(comparison));
  }
  for (const Configuration& missing : report.only_base) {
    cases += test_case("configuration", missing, skipped("the new run lacks this configuration"));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" "
      "errors=\"0\">\n"
      "    <properties><property name=\"method\" value=\"{}\"/></properties>\n{}"
      "  </testsuite>\n</testsuites>\n",
      escape_markup(name), report.comparisons.size() + report.only_base.size(), report.regressions,
      report.not_judged + report.only_base.size(), escape_markup(report.method), cases);
}

}  // namespace greynic::results
