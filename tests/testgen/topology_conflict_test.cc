#include <fmt/core.h>
#include <gtest/gtest.h>

#include <regex>

#include "greynic/language/cover_model.h"
#include "greynic/language/explain_infeasible.h"
#include "greynic/testgen/topology.h"
#include "packet_simulation.h"
#include "random_network.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

using language::ModelParameter;
using language::Tuple;

/// Calls with each row of a model (-1: absent) and the setting that it is.
template <typename Visit>
void for_each_row(const language::CoverModel& model, Visit visit) {
  std::vector<int> row(model.parameters.size(), 0);
  for (std::size_t p = 0; p < row.size(); ++p) row[p] = model.parameters[p].only_if ? -1 : 0;
  while (true) {
    Setting setting;
    for (std::size_t p = 0; p < row.size(); ++p) {
      if (row[p] < 0) continue;
      const ModelParameter& info = model.parameters[p];
      setting[info.name] = info.levels[static_cast<std::size_t>(row[p])];
      setting[info.name + "#"] = std::to_string(row[p]);
    }
    visit(row, setting);
    std::size_t p = 0;
    for (; p < row.size(); ++p) {
      if (++row[p] < static_cast<int>(model.parameters[p].levels.size())) break;
      row[p] = model.parameters[p].only_if ? -1 : 0;
    }
    if (p == row.size()) return;
  }
}

/// Whether a row breaks what an explanation names, by brute force.
bool breaks(const std::string& explanation, Network& network, const Setting& setting) {
  static const std::regex kFlow(R"((h\d\.a) -> (h\d\.a): the packet)");
  for (std::sregex_iterator at(explanation.begin(), explanation.end(), kFlow), end; at != end;
       ++at) {
    if (!network.fares_well((*at)[1], (*at)[2], setting)) return true;
  }
  return explanation.find("matches a header that no packet has there") != std::string::npos &&
         network.misplaces_a_match(setting);
}

/// Whether every rule that an explanation names stands in the table that it names.
bool rules_are_there(const std::string& explanation, const Network& network) {
  static const std::regex kRule(R"(rule (\S+) of (\w+)\.t(\d+))");
  for (std::sregex_iterator at(explanation.begin(), explanation.end(), kRule), end; at != end;
       ++at) {
    if (!network.has_rule((*at)[2], std::stoi((*at)[3]), (*at)[1])) return false;
  }
  return true;
}

// Claim:  what is said to forbid an infeasible pair breaks every configuration that has the pair,
//         and names rules of the topology.
// Oracle: brute-force packet simulation on the JSON text.
// Method: small random networks; every pair of levels that no valid configuration has.
TEST(TopologyConflict, NamesWhatBreaksEveryConfigurationWithThePair) {
  int networks = 0;
  int pairs = 0;
  int loops = 0;
  int losses = 0;
  int headers = 0;
  for (std::uint64_t seed = 1; networks < sized(40, 3); ++seed) {
    const json document = RandomNetwork(seed).make();
    language::CoverModel model = model_with_mode();
    auto topology = parse_topology(document.dump(), "random");
    ASSERT_TRUE(topology);
    ASSERT_TRUE(add_topology(std::make_shared<Topology>(std::move(*topology)), model, {}));
    double count = 1;
    for (const ModelParameter& p : model.parameters) {
      count *= static_cast<double>(p.levels.size() + (p.only_if ? 1 : 0));
    }
    if (count > 600 || count < 8) continue;
    ++networks;
    Network network(document);
    std::set<std::string> factors;
    for (const ModelParameter& p : model.parameters) factors.insert(p.name);
    std::map<Tuple, std::vector<Setting>> with;  // configurations that exist, by pair
    std::set<Tuple> feasible;
    for_each_row(model, [&](const std::vector<int>& row, const Setting& setting) {
      if (!network.exists(setting, factors)) return;
      const bool valid = network.valid(setting, factors);
      for (std::uint32_t a = 0; a < row.size(); ++a) {
        for (std::uint32_t b = a + 1; b < row.size(); ++b) {
          if (row[a] < 0 || row[b] < 0) continue;
          const Tuple tuple = {{a, row[a]}, {b, row[b]}};
          with[tuple].push_back(setting);
          if (valid) feasible.insert(tuple);
        }
      }
    });
    for (const auto& [tuple, settings] : with) {
      if (feasible.contains(tuple)) continue;
      ++pairs;
      const std::string text = explain_infeasible(model, {tuple}).lines.at(0);
      for (const Setting& setting : settings) {
        ASSERT_TRUE(breaks(text, network, setting)) << "seed " << seed << ": " << text << "\n"
                                                    << json(setting).dump(1) << document.dump(1);
      }
      ASSERT_TRUE(rules_are_there(text, network)) << text;
      loops += text.find("loops through rule") != std::string::npos ? 1 : 0;
      losses += text.find("matches no rule in") != std::string::npos ? 1 : 0;
      headers += text.find("matches a header") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(pairs, sized(200, 5));
  EXPECT_GE(loops, sized(11, 0));
  EXPECT_GE(losses, sized(11, 0));
  EXPECT_GE(headers, sized(11, 0));
}

}  // namespace
}  // namespace greynic::testgen
