#include "greynic/rules/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "greynic/rules/read_rules.h"

namespace greynic::rules {
namespace {

RuleSet some_rules() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "@10.0." + std::to_string(i) + ".0/24 0.0.0.0/0 0 : 65535 " + std::to_string(i) +
            " : 1000 0x06/0xFF\n";
  }
  return *parse_rules(text, "input");
}

TEST(Traffic, UniformPutsOnePacketInsideEachRule) {
  const RuleSet rules = some_rules();
  const Traffic traffic = uniform_traffic(rules, 3);
  ASSERT_EQ(traffic.flows.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    EXPECT_TRUE(rules.rules[i].match.matches(traffic.flows[i].packet)) << i;
    EXPECT_EQ(traffic.flows[i].weight, 1.0);
  }
}

// Claim:  several packets of a rule lie inside it, weigh the same, and differ.
TEST(Traffic, DrawsAsManyPacketsInsideEachRule) {
  const RuleSet rules = some_rules();
  const Traffic traffic = zipf_traffic(rules, 1.1, 3, 3);
  const std::size_t count = rules.rules.size();
  ASSERT_EQ(traffic.flows.size(), 3 * count);
  EXPECT_TRUE(traffic.drawn);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t other : {i, i + count, i + 2 * count}) {
      EXPECT_TRUE(rules.rules[i].match.matches(traffic.flows[other].packet)) << i;
      EXPECT_EQ(traffic.flows[other].weight, traffic.flows[i].weight) << i;
    }
    EXPECT_NE(traffic.flows[i].packet, traffic.flows[i + count].packet) << i;
  }
}

// Claim:  sorted down, the weights are 1, 2^-s, 3^-s, ...
TEST(Traffic, ZipfWeighsByRank) {
  const RuleSet rules = some_rules();
  std::vector<double> weights;
  for (const TrafficFlow& flow : zipf_traffic(rules, 1.1, 3).flows) weights.push_back(flow.weight);
  EXPECT_FALSE(std::is_sorted(weights.rbegin(), weights.rend()));  // ranks are shuffled
  std::sort(weights.rbegin(), weights.rend());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(weights[i], std::pow(static_cast<double>(i + 1), -1.1), 1e-12);
  }
}

TEST(Traffic, IsTheSameAfterWritingAndReading) {
  const std::string path = testing::TempDir() + "greynic_traffic.json";
  Traffic traffic = zipf_traffic(some_rules(), 0.8, 9);
  traffic.flows[3].table = 7;
  ASSERT_TRUE(write_traffic(traffic, path));
  const auto read = read_traffic(path);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->flows.size(), traffic.flows.size());
  for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
    EXPECT_EQ(read->flows[i].packet, traffic.flows[i].packet);
    EXPECT_EQ(read->flows[i].weight, traffic.flows[i].weight);
    EXPECT_EQ(read->flows[i].table, traffic.flows[i].table);
  }
  std::filesystem::remove(path);
}

TEST(Traffic, RefusesMalformedInputNamingFileAndReason) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "input"},
      {"{", "line"},
      {"[]", "input"},
      {R"({"flows":[{"packet":{}}]})", "version"},
      {R"({"version":2,"flows":[{"packet":{}}]})", "version"},
      {R"({"version":1})", "flows"},
      {R"({"version":1,"flows":[]})", "flows"},
      {R"({"version":1,"flows":[{}]})", "packet"},
      {R"({"version":1,"flows":[{"packet":{"colour":"1"}}]})", "colour"},
      {R"({"version":1,"flows":[{"packet":{"l4_dst_port":"65536"}}]})", "l4_dst_port"},
      {R"({"version":1,"flows":[{"packet":{"ipv4_src":"10.0.0.0/8"}}]})", "ipv4_src"},
      {R"({"version":1,"flows":[{"packet":{},"weight":0}]})", "weight"},
      {R"({"version":1,"flows":[{"packet":{},"table":-1}]})", "table"},
  };
  for (const auto& [text, says] : bad) {
    const auto traffic = parse_traffic(text, "input");
    ASSERT_FALSE(traffic) << text;
    EXPECT_EQ(exit_code(traffic.error().code), 2);
    EXPECT_NE(traffic.error().message.find("input"), std::string::npos) << traffic.error().message;
    EXPECT_NE(traffic.error().message.find(says), std::string::npos) << traffic.error().message;
  }
  for (const char* what : {"zipf:", "zipf:-1", "zipf:nan", "zipf:1x", "no_such_file.json"}) {
    EXPECT_FALSE(traffic_for(what, some_rules(), 1)) << what;
  }
}

}  // namespace
}  // namespace greynic::rules
