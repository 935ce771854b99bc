#include "greynic/testgen/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "greynic/files/campaign_file.h"

namespace greynic::testgen {
namespace {

std::string campaign_text(const std::string& design) {
  return R"({ "version": 1, "name": "small",
  "factors": {
    "transport": { "type": "categorical", "levels": ["RC", "UC", "UD"] },
    "operation": { "type": "categorical", "levels": ["SEND", "WRITE", "READ"] },
    "message_bytes": { "type": "numeric", "levels": [64, 1024, 65536] },
    "shared_receive_queue": { "type": "bool" },
    "qp_count": { "type": "numeric", "levels": [1, 8, 64] } },
  "constraints": ["qp_count * message_bytes <= 524288"],
  "forbidden": [{ "transport": "UC", "shared_receive_queue": true }],
  "design": )" +
         design + R"(,
  "baseline": { "transport": "RC", "operation": "SEND", "message_bytes": 65536,
                "shared_receive_queue": false, "qp_count": 1 } })";
}

Campaign campaign_with(const std::string& design) {
  auto campaign = files::parse_campaign(campaign_text(design), "small.json");
  EXPECT_TRUE(campaign) << campaign.error().message;
  return std::move(*campaign);
}

/// The rules of the campaign and of RDMA, written once more by hand.
bool allowed(const Configuration& c) {
  const std::string transport = c.text("transport");
  const std::string operation = c.text("operation");
  const double bytes = c.number("message_bytes");
  if (c.number("qp_count") * bytes > 524288) return false;
  if (transport == "UC" && (c.flag("shared_receive_queue") || operation == "READ")) return false;
  if (transport == "UD" && (operation != "SEND" || bytes > 1024)) return false;
  return true;
}

std::set<std::string> all_allowed() {
  std::set<std::string> names;
  for (const char* transport : {"RC", "UC", "UD"}) {
    for (const char* operation : {"SEND", "WRITE", "READ"}) {
      for (const double bytes : {64.0, 1024.0, 65536.0}) {
        for (const bool shared : {false, true}) {
          for (const double qps : {1.0, 8.0, 64.0}) {
            Configuration c{{"transport", std::string(transport)},
                            {"operation", std::string(operation)},
                            {"message_bytes", bytes},
                            {"shared_receive_queue", shared},
                            {"qp_count", qps}};
            if (allowed(c)) names.insert(c.name());
          }
        }
      }
    }
  }
  return names;
}

// Claim:  the full design is exactly the valid configurations, the baseline first.
// Oracle: nested loops over all levels and the rules written by hand.
TEST(Plan, FullDesignIsEveryValidConfigurationOnce) {
  const auto plan = make_plan(campaign_with("\"full\""), {});
  ASSERT_TRUE(plan) << plan.error().message;
  std::set<std::string> names;
  for (const Configuration& c : plan->configurations) names.insert(c.name());
  EXPECT_EQ(names, all_allowed());
  EXPECT_EQ(names.size(), plan->configurations.size());
  EXPECT_EQ(plan->configurations[0].number("message_bytes"), 65536);
  EXPECT_EQ(plan->report.raw.exact, true);
  EXPECT_EQ(describe(plan->report.raw), "162");
  EXPECT_EQ(describe(plan->report.after_constraints), std::to_string(names.size()));
}

// Claim:  every design keeps to the rules, starts with the baseline and repeats nothing; a covering
//         design has every pair that some valid configuration has.
TEST(Plan, EveryDesignIsValidAndCoversWhatItPromises) {
  for (const char* design : {"\"pairwise\"", "\"3-way\"", "{\"random\": 20}",
                             "{\"points\": [{\"qp_count\": 8, \"transport\": \"UD\", "
                             "\"message_bytes\": 64}]}"}) {
    const auto plan = make_plan(campaign_with(design), {});
    ASSERT_TRUE(plan) << design << ": " << plan.error().message;
    std::set<std::string> names;
    for (const Configuration& c : plan->configurations) {
      EXPECT_TRUE(allowed(c)) << c.name();
      EXPECT_EQ(c.levels().size(), 5U);
      EXPECT_TRUE(names.insert(c.name()).second) << c.name();
    }
    EXPECT_EQ(plan->configurations[0].text("transport"), "RC");
    if (std::string(design) == "{\"random\": 20}") {
      EXPECT_GE(plan->configurations.size(), 20U);
    }
    if (std::string(design) != "\"pairwise\"") continue;
    EXPECT_LT(plan->configurations.size(), 20U);
    std::set<std::string> wanted;
    std::set<std::string> found;
    const auto pairs = [](const Configuration& c, std::set<std::string>& out) {
      for (const auto& a : c.levels()) {
        for (const auto& b : c.levels()) {
          if (a.first < b.first) out.insert(Configuration{a, b}.name());
        }
      }
    };
    for (const std::string& name : all_allowed()) pairs(*parse_configuration(name), wanted);
    for (const Configuration& c : plan->configurations) pairs(c, found);
    EXPECT_EQ(found, wanted);
  }
}

// Claim:  a design by a model measures as many settings as its budget says, the baseline among
//         them, each once.
TEST(Plan, KeepsTheBudgetOfADesignByAModel) {
  PlanOptions options;
  options.model_design = [](const Campaign&, std::span<const Configuration> candidates,
                            std::uint64_t budget,
                            std::uint64_t) -> Result<std::vector<Configuration>> {
    const std::size_t count = std::min<std::size_t>(candidates.size(), budget);
    return std::vector<Configuration>(candidates.begin(),
                                      candidates.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const std::size_t budget : {1U, 2U, 20U}) {
    const std::string design =
        R"({ "model": "pipeline", "budget": )" + std::to_string(budget) + " }";
    const auto plan = make_plan(campaign_with(design), options);
    ASSERT_TRUE(plan) << plan.error().message;
    std::set<std::string> names;
    for (const Configuration& c : plan->configurations) names.insert(c.name());
    EXPECT_EQ(plan->configurations.size(), budget);
    EXPECT_EQ(names.size(), budget);
  }
}

// Claim:  a plan that was written is read back the same, overrides included.
TEST(Plan, SurvivesItsFile) {
  Campaign campaign = campaign_with("\"pairwise\"");
  PlanOptions options;
  options.overrides = {"qp_count=1,4"};
  options.seed = 9;
  auto changed = files::override_levels(campaign, options.overrides);
  ASSERT_TRUE(changed) << changed.error().message;
  const auto plan = make_plan(*changed, options);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::string path =
      (std::filesystem::temp_directory_path() / "greynic_plan_test.json").string();
  ASSERT_TRUE(write_plan(*plan, path));
  const auto again = read_plan(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->configurations, plan->configurations);
  EXPECT_EQ(again->seed, 9U);
  EXPECT_EQ(again->campaign.find("qp_count")->levels, changed->find("qp_count")->levels);
  EXPECT_EQ(describe(again->report.after_constraints), describe(plan->report.after_constraints));
}

// Claim:  a plan has each operation on exactly the transports that define it.
// Oracle: the table of operations and service types of the InfiniBand specification (volume 1,
//         9.8), written by hand.
TEST(Plan, HasEachOperationWhereItIsDefined) {
  const auto campaign = files::parse_campaign(R"({ "version": 1, "name": "operations",
    "factors": {
      "transport": { "type": "categorical", "levels": ["RC", "UC", "UD"] },
      "operation": { "type": "categorical", "levels": ["SEND", "SEND_WITH_IMM", "SEND_WITH_INV",
                     "WRITE", "WRITE_WITH_IMM", "READ", "CAS", "FADD", "ATOMIC"] },
      "message_bytes": { "type": "numeric", "levels": [8, 64] } },
    "design": "full",
    "baseline": { "transport": "RC", "operation": "SEND", "message_bytes": 64 } })",
                                              "operations.json");
  ASSERT_TRUE(campaign) << campaign.error().message;
  const auto plan = make_plan(*campaign, {});
  ASSERT_TRUE(plan) << plan.error().message;
  std::set<std::string> planned;
  for (const Configuration& c : plan->configurations) {
    planned.insert(c.text("transport") + " " + c.text("operation"));
  }
  EXPECT_EQ(planned,
            (std::set<std::string>{"RC SEND", "RC SEND_WITH_IMM", "RC SEND_WITH_INV", "RC WRITE",
                                   "RC WRITE_WITH_IMM", "RC READ", "RC CAS", "RC FADD", "RC ATOMIC",
                                   "UC SEND", "UC SEND_WITH_IMM", "UC WRITE", "UC WRITE_WITH_IMM",
                                   "UD SEND", "UD SEND_WITH_IMM"}));
}

// Claim:  what the device cannot do is left out of the plan, and said; the time is told.
TEST(Plan, LeavesOutWhatTheDeviceLacks) {
  PlanOptions options;
  options.device =
      DeviceLimits{"twin:x", {{"qp_count", 8}}, {{"transport", {"RC", "UD"}}}, 2.0, false};
  const auto plan = make_plan(campaign_with("\"full\""), options);
  ASSERT_TRUE(plan) << plan.error().message;
  for (const Configuration& c : plan->configurations) {
    EXPECT_LE(c.number("qp_count"), 8);
    EXPECT_NE(c.text("transport"), "UC");
  }
  EXPECT_NEAR(
      plan->report.target_seconds.value(),
      3.0 * static_cast<double>(plan->configurations.size()) * plan->campaign.measure.repeats,
      1e-6);
}

// Claim:  a level that no configuration can have is named with the rule that forbids it, and with
//         the value of a factor of that rule that the campaign does not vary; no other level is.
TEST(Plan, NamesLevelsThatNoConfigurationCanHave) {
  for (const char* design : {"\"full\"", "\"pairwise\"", "\"3-way\""}) {
    Campaign campaign = campaign_with(design);
    for (Factor& factor : campaign.factors) {
      if (factor.name == "message_bytes") factor.levels.emplace_back(524287.0);
      if (factor.name == "operation") factor.levels.emplace_back(std::string("ATOMIC"));
    }
    campaign.constraints.push_back("message_bytes < 400000 || rules_per_mask > 1");
    const auto plan = make_plan(campaign, {});
    ASSERT_TRUE(plan) << design << ": " << plan.error().message;
    std::vector<std::string> told;
    for (const std::string& note : plan->report.notes) {
      if (note.starts_with("in no configuration: ")) told.push_back(note.substr(21));
    }
    ASSERT_EQ(told.size(), 2U) << design;
    EXPECT_TRUE(told[0].starts_with("operation=ATOMIC: ") ||
                told[1].starts_with("operation=ATOMIC: "));
    const std::string& bytes = told[0].starts_with("message_bytes") ? told[0] : told[1];
    EXPECT_NE(bytes.find("message_bytes < 400000"), std::string::npos) << bytes;
  }
  Campaign campaign = campaign_with("\"pairwise\"");
  campaign.constraints.clear();
  for (Factor& factor : campaign.factors) {
    if (factor.name == "message_bytes") factor.levels.emplace_back(33554432.0);
  }
  const auto plan = make_plan(campaign, {});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_FALSE(plan->report.notes.empty());
  EXPECT_NE(plan->report.notes.back().find("mr_bytes is 16777216"), std::string::npos)
      << plan->report.notes.back();
}

// Claim:  a baseline that breaks a rule is refused, and the rule named.
TEST(Plan, RefusesABaselineThatBreaksARule) {
  Campaign campaign = campaign_with("\"pairwise\"");
  campaign.baseline.set("transport", std::string("UD"));
  const auto plan = make_plan(campaign, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(plan.error().message.find("message_bytes <= mtu_bytes"), std::string::npos)
      << plan.error().message;
}

// Claim:  a plan beyond the limit is refused with its size, at once.
TEST(Plan, RefusesASpaceThatIsTooBig) {
  Campaign campaign = campaign_with("\"full\"");
  for (int i = 0; i < 40; ++i) {
    Factor factor;
    factor.name = "extra" + std::to_string(i);
    for (double level = 0; level < 10; ++level) factor.levels.emplace_back(level);
    campaign.factors.push_back(factor);
  }
  const auto plan = make_plan(campaign, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kTooBig);
  EXPECT_NE(plan.error().message.find("e41"), std::string::npos) << plan.error().message;
}

// Claim:  who is more patient gets a smaller plan of triples, the same one each time.
// Oracle: twelve factors of two and three levels need at least 27 rows.
TEST(Plan, PatienceBuysRows) {
  Campaign campaign;
  campaign.design = {.kind = DesignKind::kCovering, .strength = 3};
  for (int i = 0; i < 12; ++i) {
    Factor factor{.name = "n" + std::to_string(i), .type = FactorType::kNumeric};
    for (int level = 0; level < (i % 2 == 0 ? 3 : 2); ++level)
      factor.levels.emplace_back(1.0 + level);
    campaign.baseline.set(factor.name, factor.levels.front());
    campaign.factors.push_back(std::move(factor));
  }
  PlanOptions options;
  const auto usual = make_plan(campaign, options);
  options.patience = 100.0;
  const auto patient = make_plan(campaign, options);
  const auto again = make_plan(campaign, options);
  ASSERT_TRUE(usual && patient && again);
  EXPECT_LT(patient->configurations.size(), usual->configurations.size());
  EXPECT_GE(patient->configurations.size(), 27U);
  EXPECT_EQ(patient->configurations, again->configurations);
}

}  // namespace
}  // namespace greynic::testgen
