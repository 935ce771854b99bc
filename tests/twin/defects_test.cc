#include "defects.h"

#include <gtest/gtest.h>

#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

/// A configuration in which every part of a trigger holds.
Configuration triggering(const Defect& defect) {
  Configuration c = parse_configuration(
                        "qp_count=8,thread_count=8,message_bytes=512,send_queue_depth=64,"
                        "flow_idle_ms=1000,counter_poll_ms=100,signal_every=8")
                        .value();
  for (const Condition& condition : defect.trigger) {
    const std::string factor(condition.factor);
    const FactorInfo* info = find_factor(factor);
    switch (condition.kind) {
      case Condition::Kind::kAtLeast:
      case Condition::Kind::kAtMost:
        c.set(factor, condition.number);
        break;
      case Condition::Kind::kIs:
        if (condition.text.empty()) {
          c.set(factor, condition.number);
        } else if (info->type == FactorType::kBool) {
          c.set(factor, condition.text == "true");
        } else {
          c.set(factor, std::string(condition.text));
        }
        break;
      case Condition::Kind::kAtLeastFactor:
        c.set(factor, c.number(condition.text));
        break;
      case Condition::Kind::kOverContextLimit:
        c.set(factor, 100000.0);
        break;
    }
  }
  // A message that has both a least and a largest size takes the least.
  for (const Condition& condition : defect.trigger) {
    if (condition.factor == "message_bytes" && condition.kind == Condition::Kind::kAtLeast) {
      c.set("message_bytes", condition.number);
    }
  }
  return c;
}

/// The same, with one part taken away.
Configuration without(Configuration c, const Condition& condition) {
  const std::string factor(condition.factor);
  const FactorInfo* info = find_factor(factor);
  switch (condition.kind) {
    case Condition::Kind::kAtLeast:
      c.set(factor, condition.both_directions ? condition.number / 2 - 1 : condition.number - 1);
      break;
    case Condition::Kind::kAtMost:
      c.set(factor, 2 * condition.number + 1);
      break;
    case Condition::Kind::kIs:
      if (condition.text.empty()) {
        c.set(factor, condition.number == 1024 ? 4096.0 : 1024.0);
      } else if (info->type == FactorType::kBool) {
        c.set(factor, condition.text != "true");
      } else {
        for (const std::string_view other : info->categories) {
          if (other != condition.text) c.set(factor, std::string(other));
        }
        if (factor == "transport" && condition.text == "RC") c.set(factor, std::string("UC"));
        if (factor == "transport" && condition.text == "UD") c.set(factor, std::string("RC"));
        if (factor == "operation") {
          c.set(factor, std::string(condition.text == "SEND" ? "WRITE" : "SEND"));
        }
        if (factor == "direction") c.set(factor, std::string("unidirectional"));
      }
      break;
    case Condition::Kind::kAtLeastFactor:
      c.set(factor, c.number(condition.text) - 1);
      break;
    case Condition::Kind::kOverContextLimit:
      c.set(factor, 1.0);
      break;
  }
  return c;
}

/// Does the defect make a difference? Pauses of more than a thousandth, a fifth of the rate, an
/// outcome, or a slower rule deletion (Collie's definition of an anomaly, and ScalaCN's symptoms).
bool symptom(const std::string& defect, const Configuration& configuration) {
  const auto measured = [&](const std::string& name) {
    target::MeasureRequest request;
    request.configuration = configuration;
    request.seed = 5;
    request.duration = std::chrono::milliseconds(2);
    return target::measure_one(*create("twin:cx6?threads=1&defects=" + name).value(), request)
        .value();
  };
  const Observation with = measured(defect);
  const Observation none = measured("none");
  if (with.outcome != none.outcome) return true;
  if (with.outcome != Outcome::kMeasured) return false;
  EXPECT_LE(*none.value("pause_share"), 0.001) << configuration.name();
  return *with.value("pause_share") > 0.001 ||
         *with.value(measure::kPacketRate) < 0.8 * *none.value(measure::kPacketRate) ||
         *with.value("rule_delete_us") > 1.5 * *none.value("rule_delete_us");
}

class PlantedDefects : public testing::TestWithParam<std::size_t> {};

// Claim:  a defect shows when its whole trigger holds, and vanishes with any single part of it.
// Oracle: the same configuration measured without defects.
// Method: each part is taken away in turn, the others stay. S6 has no part: its test is below.
TEST_P(PlantedDefects, ShowExactlyWhenTheWholeTriggerHolds) {
  const Defect& defect = defects()[GetParam()];
  if (defect.trigger.empty()) GTEST_SKIP() << "has no trigger but masks; see MasksInSequence";
  const std::string name(defect.name);
  const Configuration whole = triggering(defect);
  EXPECT_TRUE(symptom(name, whole)) << name << " at " << whole.name();
  for (const Condition& part : defect.trigger) {
    const Configuration less = without(whole, part);
    EXPECT_FALSE(symptom(name, less))
        << name << " without " << part.factor << " at " << less.name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedDefects, testing::Range<std::size_t>(0, kDefectCount),
                         [](const auto& test) { return std::string(defects()[test.param].name); });

// Claim:  masks cost nothing when S6 is off, and bandwidth when it is on (as it is by default).
// Oracle: the line rate.
TEST(MasksInSequence, CostBandwidthOnlyWithS6) {
  target::MeasureRequest request;
  request.configuration =
      parse_configuration("qp_count=4,message_bytes=65536,server_decap_masks=40").value();
  const auto gbps = [&](const char* name) {
    return *target::measure_one(*create(name).value(), request).value().value(measure::kBandwidth);
  };
  EXPECT_GT(gbps("twin:cx6?defects=none"), 170);
  EXPECT_LT(gbps("twin:cx6?defects=S6"), 60);
  EXPECT_EQ(gbps("twin:cx6?defects=S6"), gbps("twin:cx6"));
}

}  // namespace
}  // namespace greynic::twin
