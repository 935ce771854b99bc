#include "greynic/testgen/compiled_campaign.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "greynic/files/campaign_file.h"
#include "greynic/files/json_file.h"

namespace greynic::testgen {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = GREYNIC_SOURCE_DIR;

Campaign parsed(const std::string& factors, const std::string& constraints,
                const std::string& baseline) {
  auto campaign = files::parse_campaign(
      R"({"version": 1, "name": "small", "factors": )" + factors + R"(, "constraints": )" +
          constraints + R"(, "design": "pairwise", "baseline": )" + baseline + "}",
      "small.json");
  EXPECT_TRUE(campaign) << campaign.error().message;
  return std::move(*campaign);
}

Configuration of(const std::string& text) { return parse_configuration(text).value(); }

// Claim:  a baseline that is no level of the campaign stays what it is in every ordered test, and a
//         value that the constraints forbid gives way to the nearest that they allow.
// Oracle: the campaign of `--set message_bytes=64,4096` where the baseline has 65536, by hand.
TEST(CompiledCampaign, KeepsABaselineThatIsNoLevel) {
  Campaign campaign =
      parsed(R"({"server_decap_masks": {"type": "numeric", "levels": [0, 5, 10, 20, 40, 80]},
                 "transport": {"type": "categorical", "levels": ["RC", "UD"]},
                 "message_bytes": {"type": "numeric", "levels": [64, 4096, 65536]}})",
             "[]", R"({"server_decap_masks": 0, "transport": "RC", "message_bytes": 65536})");
  for (Factor& factor : campaign.factors) {
    if (factor.name == "message_bytes") factor.levels = {64.0, 4096.0};
  }
  auto compiled = CompiledCampaign::create(campaign).value();
  EXPECT_EQ(compiled.complete_baseline().value(), campaign.baseline);
  for (const double masks : {0.0, 5.0, 12.0, 40.0}) {  // 12 is no level
    const Configuration whole =
        compiled.complete(Configuration{{"server_decap_masks", masks}}, "a test").value();
    EXPECT_EQ(whole.number("message_bytes"), 65536) << whole.name();
    EXPECT_EQ(whole.number("server_decap_masks"), masks) << whole.name();
    EXPECT_EQ(whole.text("transport"), "RC") << whole.name();
  }
  const auto datagram = compiled.complete(of("transport=UD"), "a test").value();
  EXPECT_EQ(datagram.number("message_bytes"), 64) << datagram.name();  // the MTU is 1024
}

// Claim:  a factor whose condition does not hold in the baseline does not join a test about
//         something else, though it comes first and its condition could be made true.
TEST(CompiledCampaign, DoesNotChangeTheBaselineToBringAConditionalFactorIn) {
  const Campaign campaign = parsed(
      R"({"inline_data": {"type": "bool", "only_if": "operation == \"SEND\""},
          "operation": {"type": "categorical", "levels": ["SEND", "WRITE"]},
          "qp_count": {"type": "numeric", "levels": [1, 64]}})",
      "[]", R"({"operation": "WRITE", "qp_count": 1})");
  auto compiled = CompiledCampaign::create(campaign).value();
  EXPECT_EQ(compiled.complete(of("qp_count=64"), "a test").value(),
            of("operation=WRITE,qp_count=64"));
  EXPECT_EQ(compiled.complete(of("operation=SEND"), "a test").value(),
            of("inline_data=false,operation=SEND,qp_count=1"));
}

// Claim:  files are read once: what was asked before and after the topology's file is gone has the
//         answers of a campaign that was compiled for this question alone.
TEST(CompiledCampaign, ReadsTheTopologyOnce) {
  const fs::path folder = fs::path(testing::TempDir()) / "compiled_campaign";
  fs::create_directories(folder);
  const fs::path file = folder / "topology.json";
  fs::copy_file(kSource / "configs/topologies/two_hosts.json", file,
                fs::copy_options::overwrite_existing);
  auto campaign =
      files::read_campaign((kSource / "configs/campaigns/vxlan_contexts.json").string()).value();
  campaign.topology = file.string();
  std::vector<Configuration> questions = {campaign.baseline};
  for (const Factor& factor : campaign.factors) {
    for (const FactorValue& level : factor.levels) {
      questions.push_back(Configuration{{factor.name, level}});
    }
  }
  questions.push_back(of("vxlan_contexts=3"));  // no level
  std::vector<std::string> alone;
  const auto told = [](const Result<Configuration>& answer) {
    return answer ? answer->name() : answer.error().message;
  };
  for (const Configuration& question : questions) {
    auto fresh = CompiledCampaign::create(campaign).value();
    alone.push_back(told(fresh.complete(question, "a test")));
  }
  auto compiled = CompiledCampaign::create(campaign).value();
  fs::remove(file);
  EXPECT_FALSE(CompiledCampaign::create(campaign));
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = questions.size(); i-- > 0;) {
      EXPECT_EQ(told(compiled.complete(questions[i], "a test")), alone[i]) << questions[i].name();
    }
  }
}

/// Small campaigns with rules over sums and products, and what they forbid, by evaluation.
struct Puzzle {
  Campaign campaign;
  std::function<bool(double a, double b, double c)> allowed;
};

Puzzle random_puzzle(std::mt19937& rng) {
  const auto limit = [&](unsigned most) { return static_cast<double>(rng() % most); };
  const double sum = 4 + limit(16);
  const double product = 4 + limit(40);
  const double least = limit(6);
  Puzzle out;
  out.campaign = parsed(
      R"({"a": {"type": "numeric", "levels": [1, 4, 2]}, "b": {"type": "numeric", "levels": [3, 1, 8]},
          "c": {"type": "numeric", "levels": [5, 2, 9, 0]}})",
      "[\"a + c <= " + std::to_string(sum) + "\", \"b * c <= " + std::to_string(product) +
          "\", \"a + b >= " + std::to_string(least) + "\"]",
      "{}");
  out.campaign.baseline = Configuration{{"a", limit(6)}, {"b", limit(9)}, {"c", limit(10)}};
  out.allowed = [=](double a, double b, double c) {
    return a + c <= sum && b * c <= product && a + b >= least;
  };
  return out;
}

// Claim:  what was not asked for takes, one factor after the other, the allowed value nearest to
//         the baseline; a question without an answer says so. Earlier questions change nothing.
// Oracle: all combinations of levels, the baseline's values and those asked for, rules by hand.
// Method: 60 random rules and baselines, 8 random questions each, many about values that are no
//         level.
TEST(CompiledCampaign, StaysAsNearToTheBaselineAsTheRulesAllow) {
  std::mt19937 rng(7);
  for (int i = 0; i < 60; ++i) {
    const Puzzle puzzle = random_puzzle(rng);
    auto compiled = CompiledCampaign::create(puzzle.campaign).value();
    for (int k = 0; k < 8; ++k) {
      const std::vector<std::string> names = {"a", "b", "c"};
      Configuration question;
      for (const std::string& name : names) {
        if (rng() % 3 == 0) question.set(name, static_cast<double>(rng() % 10));
      }
      std::vector<std::vector<double>> choices;
      for (const Factor& factor : puzzle.campaign.factors) {
        const double base = puzzle.campaign.baseline.number(factor.name);
        std::vector<double> values = {base};
        for (const FactorValue& level : factor.levels) values.push_back(std::get<double>(level));
        std::stable_sort(values.begin(), values.end(), [&](double left, double right) {
          return std::abs(left - base) < std::abs(right - base);
        });
        if (question.contains(factor.name)) values = {question.number(factor.name)};
        choices.push_back(std::move(values));
      }
      std::optional<Configuration> wanted;  // the first of all combinations, nearest first
      for (const double a : choices[0]) {
        for (const double b : choices[1]) {
          for (const double c : choices[2]) {
            if (!wanted && puzzle.allowed(a, b, c)) wanted = {{"a", a}, {"b", b}, {"c", c}};
          }
        }
      }
      const auto answer = compiled.complete(question, "a test");
      ASSERT_EQ(answer.has_value(), wanted.has_value()) << question.name();
      if (!answer) {
        EXPECT_EQ(answer.error().code, ErrorCode::kInfeasible);
        EXPECT_NE(answer.error().message.find("/constraints/"), std::string::npos)
            << answer.error().message;
      } else {
        EXPECT_EQ(*answer, *wanted) << question.name();
      }
    }
  }
}

}  // namespace
}  // namespace greynic::testgen
