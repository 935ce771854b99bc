#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "program.h"

namespace greynic::integration {
namespace {

/// Factors of the causes that `explain` names, each cause as "factor,factor", after a run of the
/// campaign. Both commands run in the source tree, as docs/twin/defects.md shows them.
std::vector<std::string> causes(const std::string& campaign, const std::string& target) {
  std::filesystem::current_path(GREYNIC_SOURCE_DIR);
  const Folder folder;
  const std::string run = folder / "run.db";
  const Outcome ran =
      greynic(folder, "run " + campaign + " --target '" + target + "' --seed 3 --out " + run);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Outcome explained = greynic(folder, "explain " + run + " --target '" + target + "' --json");
  EXPECT_EQ(explained.exit_code, 1) << explained.err;  // a wall was found
  std::vector<std::string> found;
  const auto document = nlohmann::json::parse(explained.out, nullptr, false);
  if (document.is_discarded()) return found;
  for (const auto& cause : document.at("causes")) {
    std::string factors;
    for (const auto& part : cause.at("terms")) {
      if (!factors.empty()) factors += ",";
      factors += part.at("factor").get<std::string>();
    }
    found.push_back(factors);
  }
  return found;
}

bool has(const std::vector<std::string>& causes, const std::string& cause) {
  return std::find(causes.begin(), causes.end(), cause) != causes.end();
}

// Claim:  the program finds the planted cause behind each symptom of switch and driver.
// Oracle: the fault that was planted; its parts stand in docs/twin/defects.md.
TEST(SwitchCampaigns, LeadToThePlantedCause) {
  EXPECT_TRUE(has(causes("configs/campaigns/vxlan_contexts.json", "twin:cx6?defects=S8"),
                  "vxlan_contexts"));
  // Counters are read once a second in the baseline: a shorter idle time is what makes them late.
  EXPECT_TRUE(has(causes("configs/campaigns/counter_staleness.json", "twin:cx6?defects=S1"),
                  "flow_count,flow_idle_ms"));
  EXPECT_TRUE(has(causes("configs/campaigns/counter_staleness.json", "twin:cx6?defects=S2"),
                  "flow_setup_rate,rules_per_mask"));
  EXPECT_TRUE(has(causes("configs/campaigns/counter_staleness.json", "twin:cx6?defects=S5"),
                  "counter_poll_ms,flow_setup_rate"));
}

// Claim:  the program names the number of containers, and nothing else, as what brings a fleet
//         down.
// Oracle: the mechanism; message sizes, operations and a few masks do not matter at this density.
// Method: configs/campaigns/fleet_wall.json at a tenth of its size, with the same density.
TEST(FleetCampaign, NamesTheNumberOfContainers) {
  const Folder folder;
  auto document = nlohmann::json::parse(text_of(kSource + "/configs/campaigns/fleet_wall.json"));
  auto& containers = document["factors"]["container_count"]["levels"];
  for (auto& level : containers) level = level.get<double>() / 10;
  document["baseline"]["container_count"] = 40000;
  std::ofstream(folder / "fleet.json") << document.dump();
  EXPECT_EQ(causes(folder / "fleet.json", "twin:cx6?hosts=800&rnics=4000"),
            std::vector<std::string>{"container_count"});
}

// Claim:  tune measures a layout on a fleet of several RNIC models, its own as one that is split between
//         hardware and slow path, and tells how long new flows wait before and after; two hosts have
//         no slow path and refuse the split one.
// Oracle: what a shorter walk must do; the exit codes.
TEST(FleetCampaign, MeasuresLayoutsOnSeveralModels) {
  const Folder folder;
  std::ofstream(folder / "small.json") << R"({"version": 1, "name": "small",
    "factors": {"server_decap_masks": {"type": "numeric", "levels": [0, 8, 32]}},
    "design": "full",
    "baseline": {"server_decap_masks": 0}, "wall": {"metric": "bandwidth_gbps", "below_baseline_by": 0.2},
    "measure": {"repeats": 2, "seconds": 1}})";
  const std::string fleet = "'twin:cx5?fleet=training&hosts=8&models=cx5,cx7'";
  const Outcome split =
      greynic(folder, "optimize made:acl:120:3 --hardware 40% --traffic zipf:1.1 -o " +
                          (folder / "split.json"));
  ASSERT_EQ(split.exit_code, 0) << split.err;
  const std::string tune =
      "tune " + (folder / "small.json") + " --rules made:acl:120:3 --pairs 2 --json --target ";
  for (const std::string& layout : {std::string(), " --layout " + (folder / "split.json")}) {
    const Outcome tuned = greynic(
        folder, tune + fleet + layout + " --out " + (folder / (layout.empty() ? "own" : "given")));
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const auto gain = nlohmann::json::parse(tuned.out).at("gain");
    const auto change = [&](const char* measure) {
      return gain.at("measures_after").at(measure).get<double>() /
             gain.at("measures_before").at(measure).get<double>();
    };
    EXPECT_LT(change("flow_start_us_p50"), 1.0);
    EXPECT_DOUBLE_EQ(gain.at("measures_after").at("layout_share").get<double>(), 1.0);
    if (!layout.empty()) continue;  // what is left to software costs more there than masks do
    EXPECT_GT(gain.at("ratio").get<double>(), 1.2);
    EXPECT_GT(change("bandwidth_gbps.cx5"), 1.2);
    EXPECT_LT(change("latency_us_mean"), 0.8);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "own/report.html"));
  const Outcome pair = greynic(folder, tune + "twin:cx5 --layout " + (folder / "split.json") +
                                           " --out " + (folder / "pair"));
  EXPECT_NE(pair.exit_code, 0);
  EXPECT_NE(pair.err.find("slow path"), std::string::npos) << pair.err;
}

/// A small campaign, and the fleet of two models of which one has few lookup recipes.
std::string small_campaign(const Folder& folder) {
  std::ofstream(folder / "small.json") << R"({"version": 1, "name": "small",
    "factors": {"server_decap_masks": {"type": "numeric", "levels": [0, 8, 32]}},
    "design": "full",
    "baseline": {"server_decap_masks": 0}, "wall": {"metric": "bandwidth_gbps", "below_baseline_by": 0.2},
    "measure": {"repeats": 2, "seconds": 1}})";
  return folder / "small.json";
}
const std::string kMixed = "'twin:cx5?fleet=training&hosts=8&models=cx5,e810'";

// Claim:  tune gives each model of a fleet a layout of its own, each proven, and says what each gains; a
//         model with few lookup recipes gains, too, which one layout for all leaves as it was.
// Oracle: what was measured with the rules in their order; one layout for all; verify on the file.
TEST(FleetCampaign, TunesEachModelByItself) {
  const Folder folder;
  const std::string tune = "tune " + small_campaign(folder) +
                           " --rules made:acl:300:3 --growth 2 --pairs 2 --json --target " + kMixed;
  const Outcome own = greynic(folder, tune + " --out " + (folder / "own"));
  ASSERT_EQ(own.exit_code, 0) << own.err;
  const Outcome one = greynic(folder, tune + " --one-layout --out " + (folder / "one"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto change = [](const Outcome& outcome, const char* measure) {
    const auto gain = nlohmann::json::parse(outcome.out).at("gain");
    return gain.at("measures_after").at(measure).get<double>() /
           gain.at("measures_before").at(measure).get<double>();
  };
  EXPECT_GT(change(own, "bandwidth_gbps.e810"), 3.0);
  EXPECT_LT(change(own, "latency_us_mean.e810"), 0.5);
  EXPECT_GE(change(own, "bandwidth_gbps.cx5"), 0.99 * change(one, "bandwidth_gbps.cx5"));
  EXPECT_NEAR(change(one, "bandwidth_gbps.e810"), 1.0, 0.01);
  const auto models = nlohmann::json::parse(own.out).at("layout").at("models");
  ASSERT_EQ(models.size(), 2U);
  EXPECT_LT(models.at(1).at("after").at("software_share").get<double>(),
            models.at(1).at("before").at("software_share").get<double>());
  const std::string file = folder / "own/layout.json";
  const Outcome verified = greynic(folder, "verify made:acl:300:3 " + file);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("for e810"), std::string::npos) << verified.out;
  const Outcome applied = greynic(folder, "apply " + file + " --dry-run --target " + kMixed);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_NE(applied.out.find("server_decap, e810"), std::string::npos) << applied.out;
  const Outcome given =
      greynic(folder, tune + " --layout " + file + " --out " + (folder / "given"));
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_NEAR(change(given, "bandwidth_gbps.e810"), change(own, "bandwidth_gbps.e810"), 1e-9);
  const std::string report = text_of(folder / "own/report.html");
  EXPECT_NE(report.find("e810"), std::string::npos);
}

// Claim:  layouts for each model that are wrong, damaged, or for another target are refused in words.
// Oracle: the exit codes and messages; a rule that is turned into a drop.
TEST(FleetCampaign, RefusesLayoutsThatAreNotRight) {
  const Folder folder;
  const std::string file = folder / "fleet.json";
  const Outcome made =
      greynic(folder, "optimize made:acl:200:5 --traffic zipf:1.1 -o " + file + " --for " + kMixed);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("to software"), std::string::npos) << made.out;
  EXPECT_NE(greynic(folder, "apply " + file + " --target twin:cx5").err.find("name the fleet"),
            std::string::npos);
  EXPECT_NE(greynic(folder, "optimize made:acl:200:5 --update " + file + " --was made:acl:200:5")
                .err.find("one layout is asked for"),
            std::string::npos);
  const auto document = nlohmann::json::parse(text_of(file));
  const auto refused = [&](const nlohmann::json& changed, const std::string& command) {
    std::ofstream(folder / "changed.json") << changed.dump();
    return greynic(folder, command);
  };
  const std::string apply = "apply " + (folder / "changed.json") + " --target " + kMixed;
  auto twice = document;
  twice["models"].push_back(twice["models"][1]);
  EXPECT_NE(refused(twice, apply).err.find("'e810' has a layout already"), std::string::npos);
  auto fewer = document;
  fewer["models"].erase(0);
  EXPECT_NE(refused(fewer, apply).err.find("no layout for cx5"), std::string::npos);
  auto nameless = document;
  nameless["models"][0].erase("names");
  EXPECT_NE(refused(nameless, apply).err.find("names"), std::string::npos);
  // A fault planted in the hardware's part of the second model.
  auto faulty = document;
  auto& rules = faulty["models"][1]["tables"][0]["matchers"][0]["rules"];
  rules[0]["actions"] = nlohmann::json::array({{{"forward", "elsewhere"}}});
  const Outcome caught = refused(faulty, "verify made:acl:200:5 " + (folder / "changed.json"));
  EXPECT_EQ(caught.exit_code, 1) << caught.err;
  EXPECT_NE(caught.out.find("not equivalent for e810"), std::string::npos) << caught.out;
  EXPECT_NE(refused(faulty, "tune " + small_campaign(folder) + " --rules made:acl:200:5 --layout " +
                                (folder / "changed.json") + " --out " + (folder / "t") +
                                " --target " + kMixed)
                .err.find("for e810 does not do what made:acl:200:5 does"),
            std::string::npos);
}

// Claim:  a tune that was killed while it made layouts goes on with those that it had, proves them once
//         more, and ends with the same.
// Oracle: a tune that nobody killed.
TEST(FleetCampaign, GoesOnAfterAKill) {
  const Folder folder;
  const std::string tune = "tune " + small_campaign(folder) +
                           " --rules made:fw:400:3 --growth 2 --pairs 2 --target " + kMixed;
  ASSERT_EQ(greynic(folder, tune + " --out " + (folder / "whole")).exit_code, 0);
  const std::string out = folder / "killed";
  const std::string said = folder / "killed.txt";
  // Killed as soon as it says that it makes the second layout.
  const std::string command = fmt::format(
      "sh -c '{} {} --out {} >/dev/null 2>{} & while kill -0 $!; do "
      "grep -q \"for e810\" {} && kill -9 $!; sleep 0.01; done' 2>/dev/null",
      GREYNIC_BINARY, std::regex_replace(tune, std::regex("'"), "\""), out, said, said);
  (void)std::system(command.c_str());
  ASSERT_FALSE(std::filesystem::exists(out + "/layout.json"));
  const Outcome again = greynic(folder, tune + " --out " + out);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("before the interruption"), std::string::npos) << again.err;
  EXPECT_EQ(text_of(out + "/layout.json"), text_of(folder / "whole/layout.json"));
}

}  // namespace
}  // namespace greynic::integration
