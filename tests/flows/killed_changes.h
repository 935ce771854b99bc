#pragma once

/// Changes of rules that are killed in the middle, and what the next opening of the switch finds.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "greynic/flows/flow_driver.h"
#include "random_rules.h"

namespace greynic::flows {

/// Drop rules on consecutive IPv4 destinations, of seven priorities.
[[nodiscard]] inline RuleSet numbered_rules(std::uint32_t count, std::uint32_t first) {
  RuleSet set;
  for (std::uint32_t i = 0; i < count; ++i) {
    FlowRule rule;
    rule.match.set(MatchField::kEtherType, 0x0800);
    rule.match.set(MatchField::kIpv4Dst, first + i);
    rule.priority = i % 7;
    rule.actions = {Action::drop()};
    set.rules.push_back(std::move(rule));
  }
  return set;
}

/// What of rules is compared: a switch lists them in an order of its own.
[[nodiscard]] inline std::vector<std::string> sorted_texts(const RuleSet& rules) {
  std::vector<std::string> texts;
  for (const FlowRule& rule : rules.rules) {
    texts.push_back(std::to_string(rule.priority) + " " + to_string(rule.match));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

/// Opens the switch, kills a child that changes `before` into `wanted`, opens again, recovers:
/// until 20 changes were cut short. Each time the rules are those of before, or those wanted.
///
/// The longest wait before a kill follows the machine, shorter after a change that was finished
/// and longer after one that was not, so that kills fall into all of it on a fast machine too.
inline void kill_changes(const std::function<std::unique_ptr<FlowDriver>()>& open,
                         const RuleSet& before, const RuleSet& wanted, std::uint64_t usual_seed) {
  constexpr int kCutShort = 20;
  constexpr int kRounds = 200;
  const std::uint64_t seed = seed_or(usual_seed);
  std::mt19937_64 random(seed);
  double longest_ms = 50;
  int cut_short = 0;
  for (int round = 0; round < kRounds && cut_short < kCutShort; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setpgid(0, 0);
      _exit(open()->apply(wanted).has_value() ? 0 : 1);
    }
    setpgid(child, child);
    const double wait_ms = std::uniform_real_distribution<>(0, longest_ms)(random);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(wait_ms));
    kill(-child, SIGKILL);  // with a program that it may be running
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      ++cut_short;
      longest_ms *= 1.2;
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0) << "round " << round << " of seed " << seed;
      longest_ms *= 0.8;
    }
    const auto reopened = open();
    const auto recovered = reopened->recover();
    ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
    const auto rules = reopened->list();
    ASSERT_TRUE(rules.has_value()) << rules.error().message;
    const auto texts = sorted_texts(*rules);
    ASSERT_TRUE(texts == sorted_texts(before) || texts == sorted_texts(wanted))
        << "round " << round << " of seed " << seed << " left " << texts.size() << " rules";
    ASSERT_TRUE(reopened->roll_back().has_value());
    ASSERT_EQ(sorted_texts(*reopened->list()), sorted_texts(before))
        << "round " << round << " of seed " << seed;
  }
  EXPECT_EQ(cut_short, kCutShort) << "of " << kRounds << " changes, with seed " << seed;
}

}  // namespace greynic::flows
