#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/journal.h"
#include "common/named_headers.h"
#include "greynic/flows/rule_commands.h"
#include "greynic/os/program.h"
#include "random_rules.h"
#include "tc/tc_driver.h"
#include "tc/tc_flower.h"
#include "tc/tc_target.h"
#include "tc/veth_wire.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// A value that tc has words for, or none.
std::optional<FieldMatch> worded_part(MatchField field, std::mt19937_64& random) {
  if (!tc_takes(field) || field == F::kCtLabel) return std::nullopt;
  if (field == F::kVlanPresent) return exactly(field, 1);
  if (field == F::kSvlanPresent || field == F::kSvlanId || field == F::kSvlanPriority) {
    return std::nullopt;  // behind a first tag only, which random_rules does not know
  }
  if (field == F::kArpOperation) return exactly(field, 1 + random() % 2);
  if (field == F::kIpFragment) {
    constexpr std::array<std::pair<unsigned, unsigned>, 4> kForms = {
        {{0, 3}, {1, 1}, {1, 3}, {3, 3}}};
    const auto& form = kForms[random() % kForms.size()];
    return FieldMatch{field, form.first, form.second};
  }
  if (field == F::kCtState) {
    constexpr std::array<unsigned, 5> kStates = {0x20, 0x21, 0x22, 0x2a, 0x24};
    const U128 value = kStates[random() % kStates.size()];
    return FieldMatch{field, value, value | (random() & 0x3f) | 0x20};
  }
  const FieldFormat format = info(field).format;
  if (format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6) {
    const U128 bits =
        full_mask(field) & ~(full_mask(field) >> (1 + random() % (info(field).width_bits - 1)));
    return FieldMatch{field, random_value(field, random) & bits, bits};
  }
  if (!tc_takes_any_mask(field) || field == F::kVxlanVni) {
    return exactly(field, random_value(field, random));
  }
  return any_masked(field, random);
}

std::vector<Action> worded_actions(const Match&, std::mt19937_64& random) {
  std::vector<Action> actions = count_and_mark(random);
  switch (random() % 5) {
    case 0:
      actions.push_back({.kind = ActionKind::kPushVlan, .number = random() % 4095});
      actions.push_back(Action::forward("sink"));
      break;
    case 1:
      actions.push_back({.kind = ActionKind::kPopVlan});
      actions.push_back(Action::forward("sink"));
      actions.push_back(Action::forward("source"));
      break;
    case 2:
      actions.push_back({.kind = ActionKind::kVxlanEncap,
                         .number = random() % (1U << 24),
                         .text = fmt::format("src=10.1.2.{},dst=10.4.5.{},port={}", random() % 256,
                                             random() % 256, 1 + random() % 65535)});
      actions.push_back(Action::forward("sink"));
      break;
    case 3:
      actions.push_back({.kind = ActionKind::kVxlanDecap});
      actions.push_back(Action::jump(random() % 1000));
      break;
    default:
      actions.push_back(Action::drop());
  }
  return actions;
}

// Claim:  `tc -batch` with our commands installs the rules that were meant.
// Oracle: the kernel's filters, read over netlink by code that shares nothing with the commands.
TEST(TcCommands, InstallTheRulesThatWereMeant) {
  if (const auto obstacle = tc_obstacle(); !obstacle.why_not.empty()) {
    GTEST_SKIP() << obstacle.why_not << "; " << obstacle.remedy;
  }
  if (os::find_program("tc").empty()) {
    GTEST_SKIP() << "tc is not installed; apt-get install iproute2";
  }
  const std::uint64_t seed = seed_or(31);
  const RuleSet rules = random_rules(
      {.part = worded_part, .actions = worded_actions, .tables = 8, .priorities = 60'000}, 300,
      seed);
  const Layout layout = flat_layout(rules);
  const auto text = rule_commands(layout, *command_form(fmt::format("tc:{}", VethWire::kPort)));
  ASSERT_TRUE(text) << text.error().message << " seed " << seed;
  std::string path = "/tmp/greynic-commands-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << *text;

  auto wire = VethWire::create();
  ASSERT_TRUE(wire) << wire.error().message;
  ASSERT_TRUE((*wire)->ensure_sink("sink"));
  Result<RuleSet> back = fail(ErrorCode::kInternal, "not read");
  const auto entered = (*wire)->place().inside([&] {
    for (const auto& words :
         {std::vector<std::string>{"tc", "qdisc", "add", "dev", VethWire::kPort, "clsact"},
          std::vector<std::string>{"tc", "-batch", path}}) {
      const auto ran = os::run({.words = words});
      EXPECT_TRUE(ran) << ran.error().message << " seed " << seed;
    }
    auto driver = TcDriver::open(VethWire::kPort, TcPlace::kBoth, Journal::in_memory());
    ASSERT_TRUE(driver) << driver.error().message;
    back = (*driver)->list();
  });
  std::filesystem::remove(path);
  ASSERT_TRUE(entered);
  ASSERT_TRUE(back) << back.error().message;
  const RuleSet wanted = rules_of(with_headers(layout));
  ASSERT_EQ(back->rules.size(), wanted.rules.size()) << "seed " << seed;
  for (std::size_t i = 0; i < wanted.rules.size(); ++i) {
    EXPECT_EQ(back->rules[i].table, wanted.rules[i].table);
    ASSERT_EQ(to_string(back->rules[i].match), to_string(wanted.rules[i].match)) << "seed " << seed;
    ASSERT_EQ(back->rules[i].actions, wanted.rules[i].actions)
        << to_string(wanted.rules[i].match) << " seed " << seed;
  }
}

}  // namespace
}  // namespace greynic::flows
