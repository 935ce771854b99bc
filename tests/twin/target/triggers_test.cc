#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "greynic/files/campaign_file.h"
#include "symptom.h"
#include "target/defects.h"

/// Every planted defect, every part of its trigger, from one table: what the twin plants C1 to C18
/// by, and for S1 to S9, whose thresholds come out of simulated processes, a load and what puts
/// each part of it at rest.

namespace greynic::twin {
namespace {

struct LoadPart {
  std::string factor;
  double provokes, rests;
};
struct Load {
  const char* defect;
  Symptom symptom;
  std::vector<LoadPart> parts;
};

const std::vector<Load>& loads() {
  static const std::vector<Load> all = {
      {"S1",
       Symptom::kSlow,
       {{"counter_poll_ms", 1000, 999}, {"flow_idle_ms", 1000, 1001}, {"flow_count", 1e6, 16}}},
      {"S2", Symptom::kSlow, {{"flow_setup_rate", 100000, 20000}, {"rules_per_mask", 10000, 1000}}},
      {"S3", Symptom::kOutcome, {{"flow_count", 131072, 16384}, {"container_count", 64, 4}}},
      {"S4", Symptom::kDeletion, {{"rules_per_mask", 10000, 8192}, {"flow_setup_rate", 1000, 0}}},
      {"S5",
       Symptom::kSlow,
       {{"counter_poll_ms", 5000, 3000}, {"flow_setup_rate", 1000, 0}, {"flow_count", 3000, 1e5}}},
      {"S6", Symptom::kPauses, {{"server_decap_masks", 200, 0}}},
      {"S7", Symptom::kOutcome, {{"vf_unbind_rate", 1, 0}, {"container_count", 16, 8}}},
      {"S8", Symptom::kOutcome, {{"vxlan_contexts", 4097, 4096}}},
      {"S9", Symptom::kSlow, {{"flow_setup_rate", 100000, 20000}, {"rules_per_mask", 10000, 1000}}},
  };
  return all;
}

/// Collie's Table 2: low rate without pauses; the others pause.
bool is_slow_by_collie(std::string_view name) {
  constexpr std::string_view kSlow[] = {"C2", "C6", "C7", "C8", "C14"};
  return std::find(std::begin(kSlow), std::end(kSlow), name) != std::end(kSlow);
}

struct Part {
  std::string words;  ///< as docs/twin/defects.md has it
  std::vector<Configuration> at_rest;
};
struct Planted {
  std::string name;
  Symptom symptom = Symptom::kNone;
  Configuration whole;
  std::vector<Part> parts;
};

/// What no trigger names. Messages of S1 to S8 are long, so that neither threads nor QPs bound the
/// rate, and queues shallow, so that nobody works off a backlog while the sender stands still.
Configuration base(const char* messages) {
  return parse_configuration(std::string("qp_count=8,thread_count=8,signal_every=8,"
                                         "flow_idle_ms=10000,counter_poll_ms=100,") +
                             messages)
      .value();
}

Configuration with(Configuration c, std::string_view factor, const FactorValue& value) {
  c.set(factor, value);
  return c;
}

Planted planted(const Load& load) {
  Planted result{load.defect, load.symptom, base("message_bytes=16384,send_queue_depth=16"), {}};
  for (const LoadPart& part : load.parts) result.whole.set(part.factor, part.provokes);
  for (const LoadPart& part : load.parts) {
    result.parts.push_back({fmt::format("`{}` {} (not {})", part.factor, part.provokes, part.rests),
                            {with(result.whole, part.factor, part.rests)}});
  }
  return result;
}

std::string words(const Condition& condition) {
  const char* sign = condition.kind == Condition::Kind::kAtLeast  ? ">="
                     : condition.kind == Condition::Kind::kAtMost ? "<="
                                                                  : "=";
  return fmt::format(
      "`{}`{} {} {}", condition.factor, condition.both_directions ? " of both directions" : "",
      sign,
      condition.text.empty() ? fmt::format("{}", condition.number) : std::string(condition.text));
}

FactorValue holding(const Condition& condition) {
  if (condition.text.empty()) return condition.number;
  if (find_factor(condition.factor)->type == FactorType::kBool) return condition.text == "true";
  return std::string(condition.text);
}

/// The least change that takes the condition away; of a category, each of the others.
std::vector<FactorValue> broken(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::kAtLeast:
      return {condition.both_directions ? condition.number / 2 - 1 : condition.number - 1};
    case Condition::Kind::kAtMost:
      return {2 * condition.number + 1};
    case Condition::Kind::kIs:
      break;
  }
  if (condition.text.empty()) return {condition.number == 1024 ? 4096.0 : 1024.0};
  const FactorInfo* info = find_factor(condition.factor);
  if (info->type == FactorType::kBool) return {condition.text != "true"};
  std::vector<FactorValue> others;
  for (const std::string_view other : info->categories) {
    if (other != condition.text) others.emplace_back(std::string(other));
  }
  return others;
}

Planted planted(const Defect& defect) {
  Planted result{std::string(defect.name),
                 is_slow_by_collie(defect.name) ? Symptom::kSlow : Symptom::kPauses,
                 base("message_bytes=512,send_queue_depth=64"),
                 {}};
  const auto names = [&](std::string_view factor) {
    return std::any_of(defect.trigger.begin(), defect.trigger.end(),
                       [&](const Condition& condition) { return condition.factor == factor; });
  };
  // Where a trigger names no transport, messages as long as Collie's: fewer bytes under way than
  // the receive buffer holds cannot bring pauses.
  if (!names("transport")) result.whole.set("message_bytes", 262144.0);
  // UD carries messages of one packet: room for those that are too long for the trigger.
  if (!names("mtu_bytes")) result.whole.set("mtu_bytes", 4096.0);
  // Of a factor that has both a least and a largest level, the least.
  for (const auto kind :
       {Condition::Kind::kAtMost, Condition::Kind::kIs, Condition::Kind::kAtLeast}) {
    for (const Condition& condition : defect.trigger) {
      if (condition.kind == kind) result.whole.set(condition.factor, holding(condition));
    }
  }
  for (const Condition& condition : defect.trigger) {
    Part part{words(condition), {}};
    for (const FactorValue& value : broken(condition)) {
      part.at_rest.push_back(with(result.whole, condition.factor, value));
    }
    result.parts.push_back(std::move(part));
  }
  return result;
}

Planted planted(const std::string& name) {
  for (const Load& load : loads()) {
    if (load.defect == name) return planted(load);
  }
  for (const Defect& defect : defects()) {
    if (defect.name == name) return planted(defect);
  }
  return {};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Defect& defect : defects()) all.emplace_back(defect.name);
  return all;
}

/// Cells of a defect's row in docs/twin/defects.md.
std::vector<std::string> row_of(const std::string& name) {
  std::ifstream in(GREYNIC_SOURCE_DIR "/docs/twin/defects.md");
  std::vector<std::string> cells;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| " + name + " |")) continue;
    std::istringstream row(line.substr(2));
    for (std::string cell; std::getline(row, cell, '|');) {
      cells.push_back(cell.substr(0, cell.find_last_not_of(' ') + 1));
      row.ignore();  // the blank before the next cell
    }
  }
  return cells;
}

class PlantedDefect : public testing::TestWithParam<std::string> {};

// Claim:  each planted defect shows when all of its trigger holds, with the symptom that was
//         published, and vanishes when any single part of the trigger is taken away.
// Oracle: the same configuration measured without defects; Collie's Table 2 for C1 to C18.
// Method: one part after another is put at rest, by the smallest step or by every other category,
//         and the others stay. What RDMA cannot do (UD WRITE, UC READ) is refused either way.
TEST_P(PlantedDefect, ShowsExactlyWhenItsWholeTriggerHolds) {
  const Planted defect = planted(GetParam());
  ASSERT_FALSE(defect.parts.empty());
  EXPECT_EQ(symptom(defect.name, defect.whole), defect.symptom) << defect.whole.name();
  for (const Part& part : defect.parts) {
    for (const Configuration& less : part.at_rest) {
      EXPECT_EQ(symptom(defect.name, less), Symptom::kNone)
          << "without " << part.words << " at " << less.name();
    }
  }
}

// Claim:  docs/twin/defects.md names every part of every trigger, and none that is not one.
// Oracle: the table itself.
TEST_P(PlantedDefect, IsDocumentedWithAllPartsOfItsTrigger) {
  const Planted defect = planted(GetParam());
  std::vector<std::string> parts;
  for (const Part& part : defect.parts) parts.push_back(part.words);
  const std::vector<std::string> row = row_of(defect.name);
  ASSERT_GE(row.size(), 4U) << "the page has no row for " << defect.name;
  const bool collie = defect.name[0] == 'C';
  EXPECT_EQ(collie ? row[2] : row.back(), fmt::format("{}", fmt::join(parts, ", ")));
  if (collie) EXPECT_EQ(row[3], defect.symptom == Symptom::kSlow ? "slow" : "pauses");
}

INSTANTIATE_TEST_SUITE_P(All, PlantedDefect, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// Claim:  what the triggers of S1 to S8 do not name is no part of them.
// Oracle: by the definition of a part: a factor of which some level makes the symptom vanish.
// Method: every level of every other factor of configs/campaigns/no_symptom.json, one at a time;
//         levels that cannot be combined with the load are left out.
TEST(SwitchTriggers, NameEveryFactorThatTheyDependOn) {
  const auto campaign =
      files::read_campaign(GREYNIC_SOURCE_DIR "/configs/campaigns/no_symptom.json");
  ASSERT_TRUE(campaign) << campaign.error().message;
  int tried = 0;
  for (const Load& load : loads()) {
    const Planted defect = planted(load);
    for (const Factor& factor : campaign->factors) {
      const bool is_part =
          std::any_of(load.parts.begin(), load.parts.end(),
                      [&](const LoadPart& part) { return part.factor == factor.name; });
      // A crowd of senders fills its receiver's line even when each stands still half of the time.
      if (is_part || factor.name == "host_count") continue;
      for (const FactorValue& level : factor.levels) {
        // READ carries its data the other way, past other masks.
        if (defect.name == "S6" && level == FactorValue(std::string("READ"))) continue;
        const Configuration other = with(defect.whole, factor.name, level);
        if (measured("none", other).outcome != Outcome::kMeasured) continue;
        ++tried;
        EXPECT_NE(symptom(defect.name, other), Symptom::kNone)
            << defect.name << " with " << factor.name << "=" << to_string(level);
      }
    }
  }
  EXPECT_GT(tried, 300);
}

}  // namespace
}  // namespace greynic::twin
