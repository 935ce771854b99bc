/// What a step of a live layout takes, and how far it falls behind full layouts:
///
///     live_layout_bench [--growth G] [--steps N] [--drift D] [--beside] [--most N] [--every US] [SET...]
///
/// With --beside full layouts are made in a second thread: then it is also told how many steps waited for
/// one, and for how long at most until it was in effect. --most: index nodes and cubes that a step may
/// look at. --every: microseconds from step to step; otherwise one follows the other at once.
///
/// SET is a rule file or made:FAMILY:COUNT:SEED. A tenth of the rules is held back. Each two steps put
/// one of them in at its place and take a random rule out; each fourth changes a weight, too. For each
/// kind of step: median, 99 %, most, in microseconds of this machine. Then, at a quarter, a half and
/// all of the steps: share of the rules that changed, matchers tried as counted by the steps and as
/// counted by packets over those of a full layout of the same rules, rules of both. Without --drift,
/// nothing is laid out anew unless a step needs it.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "greynic/optimizer/live.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"

namespace {

using namespace greynic;
using optimizer::LiveLayout;
using optimizer::LiveStep;

struct Settings {
  optimizer::LiveOptions options;
  std::size_t steps = 2000;
  std::chrono::microseconds every{0};
};

class Times {
 public:
  template <typename Step>
  Result<LiveStep> take(Step step) {
    const auto start = std::chrono::steady_clock::now();
    auto done = step();
    const auto end = std::chrono::steady_clock::now();
    us_.push_back(std::chrono::duration<double, std::micro>(end - start).count());
    if (done && done->rebuilt) ++rebuilt_;
    if (done && done->waits) ++waiting_;
    return done;
  }
  void print(const char* kind) {
    if (us_.empty()) return;
    std::sort(us_.begin(), us_.end());
    const auto at = [this](double share) {
      return us_[static_cast<std::size_t>(share * static_cast<double>(us_.size() - 1))];
    };
    fmt::print(
        "  {:<8} {:>6} steps: median {:>8.1f}  99 % {:>8.1f}  most {:>10.1f} us, {} anew, {} "
        "waited\n",
        kind, us_.size(), at(0.5), at(0.99), us_.back(), rebuilt_, waiting_);
  }

 private:
  std::vector<double> us_;
  std::size_t rebuilt_ = 0;
  std::size_t waiting_ = 0;
};

Result<RuleSet> read(const std::string& name) {
  const auto made = rules::made_filters_named(name);
  if (!made) return pass_on(made);
  if (!*made) return rules::read_rules(name);
  const auto text = rules::made_filters(**made);
  if (!text) return pass_on(text);
  return rules::parse_rules(*text, name);
}

void compare(const LiveLayout& live, const Settings& settings, double changed) {
  const RuleSet rules = live.rules();
  const Layout layout = live.layout();
  const Traffic traffic = rules::uniform_traffic(rules, 9);
  const auto full = optimizer::optimize(rules, traffic, settings.options.search);
  const auto verdict = verify::verify(rules, layout);
  if (!full || !verdict) {
    fmt::print("  {}\n", !full ? full.error().message : verdict.error().message);
    return;
  }
  const optimizer::LayoutCost cost = optimizer::cost_of(layout, traffic);
  fmt::print(
      "  {:>4.1f} % changed: drift {:>6.2f} % counted by steps; {:.2f} matchers tried, full layout "
      "{:.2f}: {:>6.2f} %; {} rules, full layout {}; verify: {}\n",
      100.0 * changed, 100.0 * live.drift(), cost.matchers_tried, full->after.matchers_tried,
      100.0 * (cost.matchers_tried / full->after.matchers_tried - 1.0), cost.rules,
      full->after.rules, verdict->equivalent ? "equivalent" : "NOT EQUIVALENT");
}

int follow(const std::string& name, const Settings& settings) {
  const auto all = read(name);
  if (!all) return fmt::print("{}\n", all.error().message), 1;
  std::mt19937_64 random(5);
  RuleSet first;
  std::vector<std::int64_t> id_of(all->rules.size(), -1);  // of rules that are in
  std::vector<std::size_t> out;
  std::vector<std::size_t> in;
  for (std::size_t i = 0; i < all->rules.size(); ++i) {
    if (random() % 10 == 0) {
      out.push_back(i);
      continue;
    }
    id_of[i] = static_cast<std::int64_t>(first.rules.size());
    in.push_back(i);
    first.rules.push_back(all->rules[i]);
  }
  const auto base =
      optimizer::optimize(first, rules::uniform_traffic(first, 9), settings.options.search);
  if (!base) return fmt::print("{}\n", base.error().message), 1;
  auto live = LiveLayout::create(first, base->layout, settings.options);
  if (!live) return fmt::print("{}\n", live.error().message), 1;
  fmt::print("{}: {} rules, {:.2f} matchers tried\n", name, first.rules.size(),
             base->after.matchers_tried);
  Times inserts;
  Times erases;
  Times weights;
  auto next_step = std::chrono::steady_clock::now();
  bool waits = false;
  auto waits_since = next_step;
  std::chrono::duration<double, std::milli> longest{0};
  for (std::size_t step = 1; step <= settings.steps; ++step) {
    next_step += settings.every;
    std::this_thread::sleep_until(next_step);
    Result<LiveStep> done = LiveStep{};
    if (step % 2 == 1 && !out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      const std::size_t chosen = out.back();
      std::optional<optimizer::RuleId> next;
      for (std::size_t i = chosen + 1; i < id_of.size() && !next; ++i) {
        if (id_of[i] >= 0) next = static_cast<optimizer::RuleId>(id_of[i]);
      }
      done = inserts.take([&] { return live->insert(all->rules[chosen], next); });
      if (done) id_of[chosen] = done->rule;
      out.pop_back();
      in.push_back(chosen);
    } else {
      std::swap(in[random() % in.size()], in.back());
      const std::size_t chosen = in.back();
      done =
          erases.take([&] { return live->erase(static_cast<optimizer::RuleId>(id_of[chosen])); });
      id_of[chosen] = -1;
      in.pop_back();
      out.push_back(chosen);
    }
    if (!done) return fmt::print("{}\n", done.error().message), 1;
    const auto now = std::chrono::steady_clock::now();
    if (done->waits && !waits) waits_since = now;
    if (!done->waits && waits) longest = std::max<decltype(longest)>(longest, now - waits_since);
    waits = done->waits;
    if (step % 4 == 0) {
      const auto id = static_cast<optimizer::RuleId>(id_of[in[random() % in.size()]]);
      const double weight = 0.5 + static_cast<double>(random() % 100) / 100.0;
      (void)weights.take([&] { return live->weigh(id, weight); });
    }
    if (step % (settings.steps / 4) == 0 && step != settings.steps / 4 * 3) {
      compare(*live, settings, static_cast<double>(step) / static_cast<double>(first.rules.size()));
      next_step = std::chrono::steady_clock::now();
      waits = false;
    }
  }
  inserts.print("insert");
  erases.print("erase");
  weights.print("weigh");
  if (settings.options.full_layouts == optimizer::FullLayouts::kBeside) {
    fmt::print("  longest until waiting steps were in effect: {:.1f} ms\n", longest.count());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  settings.options.max_drift = std::numeric_limits<double>::infinity();
  std::vector<std::string> sets;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--growth" && i + 1 < count) {
      settings.options.search.max_growth = std::stod(arguments[++i]);
    } else if (argument == "--steps" && i + 1 < count) {
      settings.steps = std::max(4UL, std::stoul(arguments[++i]));
    } else if (argument == "--drift" && i + 1 < count) {
      settings.options.max_drift = std::stod(arguments[++i]);
    } else if (argument == "--beside") {
      settings.options.full_layouts = optimizer::FullLayouts::kBeside;
    } else if (argument == "--most" && i + 1 < count) {
      settings.options.most_comparisons = std::stoull(arguments[++i]);
    } else if (argument == "--every" && i + 1 < count) {
      settings.every = std::chrono::microseconds(std::stoll(arguments[++i]));
    } else {
      sets.push_back(argument);
    }
  }
  if (sets.empty()) sets = {"made:acl:1000:1", "made:fw:150:2", "made:ipc:1000:3"};
  int failed = 0;
  for (const std::string& set : sets) failed += follow(set, settings);
  return failed == 0 ? 0 : 1;
}
