#include "greynic/loop/follow.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/optimizer/reorder.h"
#include "greynic/verify/verify.h"

namespace greynic::loop {
namespace {

std::filesystem::path kept_layout(const FollowOptions& options) {
  return std::filesystem::path(options.store) / "layout.json";
}

/// The layout that an earlier follower left; empty where there is none.
Result<std::optional<Layout>> stored_layout(const FollowOptions& options) {
  if (options.store.empty()) return std::optional<Layout>();
  std::error_code trouble;
  std::filesystem::create_directories(options.store, trouble);
  if (trouble) {
    return fail(ErrorCode::kMissing,
                fmt::format("the folder {} cannot be made: {}", options.store, trouble.message()));
  }
  const auto path = kept_layout(options);
  if (!std::filesystem::exists(path)) return std::optional<Layout>();
  auto read = files::read_layout(path.string());
  if (!read) return pass_on(read);
  return std::optional(std::move(*read));
}

std::string_view name_of(FollowDid did) {
  switch (did) {
    case FollowDid::kWaited:
      return "waited";
    case FollowDid::kLeft:
      return "left";
    case FollowDid::kStepped:
      return "stepped";
    case FollowDid::kConfirmed:
      return "confirmed";
    case FollowDid::kRolledBack:
      return "rolled back";
  }
  return "";
}

}  // namespace

std::string to_text(const FollowReport& report) {
  const auto now =
      fmt::format("{:.0f} packets tried {:.2f} matchers", report.packets, report.tried_now);
  switch (report.did) {
    case FollowDid::kWaited:
      return fmt::format("{:.0f} packets: too few to conclude anything", report.packets);
    case FollowDid::kLeft:
      return fmt::format("{}, {:.2f} in the best order: left as it is", now, report.tried_best);
    case FollowDid::kStepped:
      return fmt::format(
          "{}, {:.2f} in the best order: {} rules changed their place, {:.2f} "
          "predicted",
          now, report.tried_best, report.rules_changed, report.tried_predicted);
    case FollowDid::kConfirmed:
      return fmt::format("{}: the gain came", now);
    case FollowDid::kRolledBack:
      return fmt::format("{}: the gain did not come, {} rules went back to their places", now,
                         report.rules_changed);
  }
  return now;
}

std::string to_json_text(const FollowReport& report) {
  nlohmann::json document = {{"did", name_of(report.did)}, {"packets", report.packets}};
  if (report.did == FollowDid::kWaited) return files::json_text(document);
  document["matchers_tried_mean"] = report.tried_now;
  document["matchers_tried_best"] = report.tried_best;
  document["rules_changed"] = report.rules_changed;
  if (report.did == FollowDid::kStepped) {
    document["matchers_tried_predicted"] = report.tried_predicted;
  }
  return files::json_text(document);
}

Result<Follower> Follower::start(RuleSet rules, const Layout& layout, target::RuleHolder& holder,
                                 FollowOptions options) {
  Follower follower(std::move(rules), holder, std::move(options));
  auto stored = stored_layout(follower.options_);
  if (!stored) return pass_on(stored);
  // A store of other rules, or of a hand that changed it, is no layout of these.
  follower.resumed_ = stored->has_value() && follower.prove(**stored).has_value();
  if (!follower.resumed_) {
    if (const auto proven = follower.prove(layout); !proven) return pass_on(proven);
  }
  if (const auto there = follower.put(follower.resumed_ ? **stored : layout); !there) {
    return pass_on(there);
  }
  return follower;
}

Result<void> Follower::prove(const Layout& layout) const {
  const auto verdict = verify::verify(rules_, layout);
  if (!verdict) return verdict.error().while_doing("proving the layout");
  if (verdict->equivalent) return {};
  return fail(ErrorCode::kInternal, fmt::format("the layout is wrong for the packet {}",
                                                to_string(verdict->counterexample->packet)));
}

Result<void> Follower::put(const Layout& layout) {
  // As written: a form that the device searches faster would have other rules to count.
  const target::FittedLayout fitted = holder_->fit(layout, target::LayoutForm::kAsWritten);
  if (const auto there = holder_->install(fitted, nullptr, options_.placement); !there) {
    return there.error().while_doing("installing the layout");
  }
  layout_ = fitted.layout();
  if (!options_.store.empty()) {
    if (auto kept = files::write_layout(layout_, kept_layout(options_).string()); !kept) {
      return kept;
    }
  }
  auto counters = read_counters();
  if (!counters) return pass_on(counters);
  last_ = std::move(*counters);
  return {};
}

Result<std::map<Follower::Place, std::uint64_t>> Follower::read_counters() {
  const auto counted = holder_->counted_rules();
  if (!counted) return counted.error().while_doing("reading the counters of the rules");
  std::map<Place, std::uint64_t> counters;
  for (const auto& row : *counted) counters[{row.rule.table, row.rule.match}] += row.packets;
  return counters;
}

std::vector<double> Follower::hits(const Layout& layout,
                                   const std::map<Place, std::uint64_t>& now) const {
  const auto value = [](const std::map<Place, std::uint64_t>& counters, const Place& place) {
    const auto found = counters.find(place);
    return found == counters.end() ? 0 : found->second;
  };
  std::vector<double> hits;
  std::map<Place, bool> seen;  // of two rules alike the first is hit
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const Place place{table.id, rule.match};
        const std::uint64_t count = value(now, place);
        const std::uint64_t before = value(last_, place);
        const bool first = seen.try_emplace(place, true).second;
        // A counter that fell began anew.
        const std::uint64_t came = count >= before ? count - before : count;
        hits.push_back(first ? static_cast<double>(came) : 0.0);
      }
    }
  }
  return hits;
}

/// Of the last step: both layouts under the packets that came since.
Result<void> Follower::judge(FollowReport& report, const std::map<Place, std::uint64_t>& now) {
  const Pending step = std::move(*pending_);
  pending_.reset();
  const double before = optimizer::tried_by_counted(step.before, hits(step.before, now));
  report.rules_changed = step.rules_changed;
  report.did = FollowDid::kConfirmed;
  last_ = now;
  if (before - report.tried_now >= before * step.predicted_gain / 2.0) return {};
  report.did = FollowDid::kRolledBack;
  return put(step.before);
}

Result<FollowReport> Follower::poll() {
  const auto now = read_counters();
  if (!now) return pass_on(now);
  auto step = optimizer::reorder(layout_, hits(layout_, *now), options_.most_rules);
  FollowReport report{.packets = step.packets,
                      .tried_now = step.tried_before,
                      .tried_best = step.tried_best,
                      .tried_predicted = step.tried_after};
  if (report.packets < static_cast<double>(options_.fewest_packets)) return report;
  if (pending_) {
    if (const auto judged = judge(report, *now); !judged) return pass_on(judged);
    return report;
  }
  last_ = *now;
  report.did = FollowDid::kLeft;
  const bool worth_it = step.tried_best < (1.0 - options_.act_above) * step.tried_before;
  if (!worth_it || step.rules_changed == 0) return report;
  if (const auto proven = prove(step.layout); !proven) return pass_on(proven);
  Pending pending{layout_, 1.0 - step.tried_after / step.tried_before, step.rules_changed};
  if (const auto there = put(step.layout); !there) return pass_on(there);
  pending_ = std::move(pending);
  report.did = FollowDid::kStepped;
  report.rules_changed = step.rules_changed;
  return report;
}

}  // namespace greynic::loop
