#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace greynic::integration
