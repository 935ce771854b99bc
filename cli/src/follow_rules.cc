#include "follow_rules.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "greynic/target/interrupt.h"
#include "talk.h"

namespace greynic::cli {
namespace {

/// False when a signal came meanwhile.
bool wait(std::chrono::nanoseconds duration) {
  constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(100);
  const auto end = std::chrono::steady_clock::now() + duration;
  for (auto now = end - duration; !target::interrupted() && now < end;
       now = std::chrono::steady_clock::now()) {
    std::this_thread::sleep_for(std::min(kLook, end - now));
  }
  return !target::interrupted();
}

}  // namespace

int follow_rules(const FollowFlags& flags, RuleSet rules, const Layout& layout,
                 target::RuleHolder& holder) {
  auto follower = loop::Follower::start(std::move(rules), layout, holder, flags.options);
  if (!follower) return tell(follower.error());
  say(fmt::format(
      "{} with {} rules is installed, proven; looking at its counters every {:.3g} s, "
      "and acting when that saves over {:.3g} % of the matchers tried; Ctrl-C ends it",
      follower->resumed() ? "the layout of " + flags.options.store : "the layout",
      follower->layout().rule_count(), std::chrono::duration<double>(flags.every).count(),
      100.0 * flags.options.act_above));
  for (int polls = 0; !flags.polls || polls < *flags.polls; ++polls) {
    if (!wait(flags.every)) break;
    const auto report = follower->poll();
    if (!report) return tell(report.error());
    print("{}\n", flags.as_json ? loop::to_json_text(*report) : loop::to_text(*report));
    std::fflush(stdout);
  }
  say("the layout stays on the device");
  return 0;
}

}  // namespace greynic::cli
