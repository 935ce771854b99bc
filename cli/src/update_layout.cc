#include "update_layout.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/loop/layout_cost.h"
#include "greynic/optimizer/update.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "progress.h"

namespace greynic::cli {
namespace {

/// Of sorted seconds, in microseconds.
double step_us(const std::vector<double>& seconds, double share) {
  if (seconds.empty()) return 0.0;
  const auto last = static_cast<double>(seconds.size() - 1);
  return 1e6 * seconds[static_cast<std::size_t>(share * last + 0.5)];
}

/// Index nodes and cubes that a step may look at while a second thread makes full layouts: more take
/// a millisecond.
constexpr std::uint64_t kMostBeside = 10'000;

/// All that is printed.
struct Told {
  optimizer::UpdateSum sum;
  optimizer::LayoutCost before;  ///< of the old layout with its own rules
  optimizer::LayoutCost after;
  double drift = 0.0;
  double most_drift = 0.0;  ///< that was allowed
  std::string exceeded;     ///< what the steps' layout exceeded, so that all was laid out anew
  verify::Verdict verdict;
};

std::string update_text(const Told& told) {
  const optimizer::UpdateSum& sum = told.sum;
  std::string text = fmt::format("{} rules came, {} went, {} stayed; {} changed their weight\n",
                                 sum.came, sum.gone, sum.kept, sum.weighed);
  if (!sum.step_seconds.empty()) {
    text += fmt::format(
        "{} steps: half of them took at most {:.1f} us, 99 % {:.1f} us, all {:.1f} us; {} laid all "
        "rules out anew\n",
        sum.step_seconds.size(), step_us(sum.step_seconds, 0.5), step_us(sum.step_seconds, 0.99),
        step_us(sum.step_seconds, 1.0), sum.rebuilds);
  }
  if (sum.waited > 0) {
    text +=
        fmt::format("of {} steps the packets went to software meanwhile, for {:.1f} ms at most\n",
                    sum.waited, 1e3 * sum.longest_wait_seconds);
  }
  if (!told.exceeded.empty()) {
    text += "the steps led beyond a limit of the device, so all rules were laid out anew: " +
            told.exceeded + "\n";
  }
  text +=
      fmt::format("{} rules of the layout added, {} removed; {} matchers added, {} removed\n",
                  sum.entries_added, sum.entries_removed, sum.matchers_added, sum.matchers_removed);
  const auto row = [&text](std::string_view what, const auto& before, const auto& after) {
    text += fmt::format("{:<28} {:>26} {:>26}\n", what, before, after);
  };
  row("", "before", "after");
  row("matchers, in all tables", told.before.matchers, told.after.matchers);
  row("rules", told.before.rules, told.after.rules);
  row("matchers tried, mean", fmt::format("{:.2f}", told.before.matchers_tried),
      fmt::format("{:.2f}", told.after.matchers_tried));
  row("matchers tried, 99 %", told.before.matchers_tried_p99, told.after.matchers_tried_p99);
  text += fmt::format(
      "drift: {:.2f} % over the last full layout, {:.2f} % at most; beyond {:.3g} % all rules are "
      "laid "
      "out anew\n",
      100.0 * told.drift, 100.0 * sum.most_drift, 100.0 * told.most_drift);
  return text + fmt::format(
                    "equivalent: each step proven, and the whole by verify ({} comparisons, {} "
                    "regions)\n",
                    told.verdict.comparisons, told.verdict.regions);
}

std::string update_json(const Told& told, const UpdateFlags& flags) {
  const optimizer::UpdateSum& sum = told.sum;
  return files::json_text(
      nlohmann::json{
          {"version", 1},
          {"was", flags.was.path},
          {"rules", {{"came", sum.came}, {"gone", sum.gone}, {"stayed", sum.kept}}},
          {"steps",
           {{"count", sum.step_seconds.size()},
            {"weights", sum.weighed},
            {"full_layouts", sum.rebuilds},
            {"by_software", sum.waited},
            {"by_software_ms_most", 1e3 * sum.longest_wait_seconds},
            {"us_median", step_us(sum.step_seconds, 0.5)},
            {"us_p99", step_us(sum.step_seconds, 0.99)},
            {"us_most", step_us(sum.step_seconds, 1.0)}}},
          {"layout",
           {{"rules_added", sum.entries_added},
            {"rules_removed", sum.entries_removed},
            {"matchers_added", sum.matchers_added},
            {"matchers_removed", sum.matchers_removed}}},
          {"drift", {{"end", told.drift}, {"most", sum.most_drift}, {"allowed", told.most_drift}}},
          {"before", loop::to_json(told.before)},
          {"after", loop::to_json(told.after)},
          {"proof",
           {{"comparisons", told.verdict.comparisons}, {"regions", told.verdict.regions}}}},
      1);
}

}  // namespace

Result<UpdatedLayout> update_layout(const UpdateFlags& flags, RuleSet rules,
                                    const std::string& traffic,
                                    const optimizer::OptimizeOptions& options, std::uint64_t seed) {
  auto was = loop::load_rules(flags.was, terminal_talk());
  if (!was) return pass_on(was);
  const auto layout = files::read_layout(flags.layout);
  if (!layout) return pass_on(layout);
  Told told;
  Traffic packets;
  for (RuleSet* set : {&*was, &rules}) {
    auto made = rules::traffic_for(traffic, *set, seed);
    if (!made) return pass_on(made);
    packets = std::move(*made);
    // Equal weights are no weights: then a step for each rule that stays is spared.
    if (traffic != "uniform") optimizer::weigh_rules(*set, packets);
    if (set == &*was) told.before = optimizer::cost_of(*layout, packets);
  }
  auto live = optimizer::LiveLayout::create(
      *was, *layout,
      {.search = options,
       .max_drift = flags.most_drift,
       .full_layouts =
           flags.beside ? optimizer::FullLayouts::kBeside : optimizer::FullLayouts::kNever,
       .most_comparisons = flags.beside ? kMostBeside : optimizer::LiveOptions{}.most_comparisons});
  if (!live) return live.error().while_doing("updating " + flags.layout);
  Progress progress("updating", 1.0);
  auto sum = optimizer::update(*live, *was, rules, [&](double share) { progress.update(share); });
  progress.clear();
  if (!sum) return pass_on(sum);
  told.sum = std::move(*sum);
  // Steps know no limits of a device; full layouts do.
  if (const auto kept = keeps_to(live->layout(), options.limits); !kept) {
    told.exceeded = kept.error().message;
    if (const auto anew = live->replace(rules); !anew) return pass_on(anew);
    ++told.sum.rebuilds;
  }
  UpdatedLayout updated{live->layout(), {}, {}};
  auto verdict = verify::verify(rules, updated.layout);
  if (!verdict) return verdict.error().while_doing("proving the updated layout");
  if (!verdict->equivalent) {
    return fail(
        ErrorCode::kInternal,
        fmt::format("the updated layout is wrong for the packet {}; please report the rules",
                    to_string(verdict->counterexample->packet)));
  }
  told.verdict = std::move(*verdict);
  told.after = optimizer::cost_of(updated.layout, packets);
  told.drift = live->drift();
  told.most_drift = flags.most_drift;
  updated.text = update_text(told);
  updated.json_text = update_json(told, flags);
  return updated;
}

}  // namespace greynic::cli
