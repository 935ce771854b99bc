#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "greynic/files/campaign_file.h"
#include "greynic/files/json_file.h"
#include "greynic/testgen/model_cover.h"
#include "greynic/testgen/plan.h"
#include "greynic/testgen/topology.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

const std::filesystem::path kProject = GREYNIC_SOURCE_DIR;

std::string two_hosts() {
  return files::read_text(kProject / "configs/topologies/two_hosts.json").value();
}

/// The good file with one piece replaced.
std::string with(const std::string& piece, const std::string& by) {
  std::string text = two_hosts();
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), by);
}

// Claim:  a malformed topology is refused with the file, the place and the reason.
TEST(TopologyFile, RefusesMalformedInputWithItsPlace) {
  ASSERT_TRUE(parse_topology(two_hosts(), "t"));
  std::string countless;
  for (int i = 0; i < 300'000; ++i) countless += "\"p" + std::to_string(i) + "\", ";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "t"},
      {"[]", "t"},
      {with("\"version\": 1", "\"version\": 2"), "/version"},
      {with("\"hosts\"", "\"hots\""), "hosts"},
      {with("\"client\"", "\"server\""), "a second 'server'"},
      {with("\"port\": \"vf0\"", "\"port\": \"vf9\""), "/hosts/0/containers/0"},
      {with("\"192.168.1.2\"", "\"192.168.1\""), "/hosts/0/containers/0/ipv4"},
      {with("\"id\": 1", "\"id\": 0"), "a second table of this id"},
      {with("\"id\": 0", "\"id\": 7"), "table 0, which is missing"},
      {with("\"jump\": 1", "\"jump\": 4"), "has no table 4"},
      {with("\"forward\": \"uplink\"", "\"forward\": \"moon\""), "has no port 'moon'"},
      {with("\"in_port\": \"uplink\"", "\"in_port\": \"moon\""), "no port 'moon'"},
      {with("\"vxlan_vni\": \"100\"", "\"vni\": \"100\""), "vni"},
      {with("client.uplink", "client.moon"), "/wires/0"},
      {with("client.uplink", "client.vf0"), "something is at 'client.vf0' already"},
      {with("\"to\": \"server.c0\"", "\"to\": \"server.c7\""), "/flows/0"},
      {with("\"ports\": [\"vf0\"", "\"ports\": [\"uplink\""), "stands there twice"},
      // As many as would be compared with each other for hours.
      {with("\"ports\": [", "\"ports\": [" + countless), "4096"},
      {with("\"name\": \"plain\"", "\"name\": \"encap\""), "a second rule 'encap'"},
  };
  for (const auto& [text, message] : bad) {
    const auto topology = parse_topology(text, "t");
    ASSERT_FALSE(topology) << message;
    EXPECT_EQ(topology.error().code, ErrorCode::kBadInput);
    EXPECT_NE(topology.error().message.find(message), std::string::npos)
        << topology.error().message;
  }
  auto topology = parse_topology(with("vxlan_contexts > 0", "vxlan_contexts >"), "t");
  ASSERT_TRUE(topology);
  language::CoverModel model;
  const auto added = add_topology(std::make_shared<Topology>(std::move(*topology)), model, {});
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("rule client.decap"), std::string::npos);
}

TEST(TopologyFile, SurvivesAnyText) {
  std::mt19937_64 random(5);
  const std::string good = two_hosts();
  for (int round = 0; round < sized(1500, 150); ++round) {
    std::string text = good;
    for (std::uint64_t change = random() % 4 + 1; change > 0; --change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    (void)parse_topology(text, "t");
  }
}

// Claim:  every campaign that ships gives a plan, and none of its configurations is invalid by a
//         network or a rule.
TEST(ShippedCampaigns, AllGivePlans) {
  int campaigns = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kProject / "configs/campaigns")) {
    // The leaf-spine takes seconds; its own test is the count of what the topology leaves.
    if (entry.path().filename() == "leaf_spine.json") continue;
    const auto campaign = files::read_campaign(entry.path().string());
    ASSERT_TRUE(campaign) << campaign.error().message;
    if (campaign->design.kind == DesignKind::kModel) continue;
    const auto plan = make_plan(*campaign, {});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_GT(plan->configurations.size(), 1U) << entry.path();
    ++campaigns;
  }
  EXPECT_GE(campaigns, 4);
}

// Claim:  the topology leaves at most a sixtieth of the leaf-spine's configurations, and the plan
//         delivers every packet (the direct walk judges it, not the clauses).
TEST(ShippedCampaigns, LeafSpineIsCutByMoreThanSixtyTimes) {
  auto topology = read_topology((kProject / "configs/topologies/leaf_spine_8x64.json").string());
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->containers.size(), 64U);
  language::CoverModel model;
  model.source = "leaf_spine";
  ASSERT_TRUE(add_topology(std::make_shared<Topology>(std::move(*topology)), model, {}));
  CoverOptions options;
  options.strength = 1;
  const auto cover = cover_model(model, options);
  ASSERT_TRUE(cover) << cover.error().message;
  for (const auto& row : cover->rows) {
    std::string why;
    EXPECT_TRUE(is_valid(model, row, &why)) << why;
  }
  // Levels that no valid configuration has cut the product by themselves already.
  double log10_share = 0.0;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    std::vector<bool> seen(model.parameters[p].levels.size());
    for (const auto& row : cover->rows) {
      if (row[p] >= 0) seen[static_cast<std::size_t>(row[p])] = true;
    }
    log10_share += std::log10(static_cast<double>(seen.size())) -
                   std::log10(static_cast<double>(std::count(seen.begin(), seen.end(), true)));
  }
  EXPECT_GE(log10_share, std::log10(60.0));
}

}  // namespace
}  // namespace greynic::testgen
