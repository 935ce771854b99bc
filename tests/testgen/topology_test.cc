#include "greynic/testgen/topology.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "greynic/language/cover_model.h"
#include "greynic/testgen/model_cover.h"
#include "packet_simulation.h"
#include "random_network.h"
#include "sized.h"
#include "validity/space_solver.h"

namespace greynic::testgen {
namespace {

using language::ModelParameter;

// Claim:  the clauses of a topology allow exactly the configurations in which every packet ends
//         where it should: no valid one lost, no invalid one kept; so does the direct walk.
// Oracle: brute-force packet simulation on the JSON text, with headers as text.
// Method: 200 small random networks with tunnels, rewrites, VLANs, loops, optional and conditional
//         rules and orders of groups; every configuration of each.
TEST(Topology, AllowsExactlyWhatPacketSimulationAllows) {
  int networks = 0;
  std::uint64_t configurations = 0;
  std::uint64_t valid_count = 0;
  int with_loops_or_losses = 0;
  for (std::uint64_t seed = 1; networks < sized(200, 5); ++seed) {
    const json document = RandomNetwork(seed).make();
    language::CoverModel model = model_with_mode();
    auto topology = parse_topology(document.dump(), "random");
    ASSERT_TRUE(topology) << topology.error().message;
    const auto added = add_topology(std::make_shared<Topology>(std::move(*topology)), model, {});
    ASSERT_TRUE(added) << added.error().message << document.dump(1);
    double count = 1;
    for (const ModelParameter& p : model.parameters) {
      count *= static_cast<double>(p.levels.size() + (p.only_if ? 1 : 0));
    }
    if (count > 4000 || count < 8) continue;
    ++networks;
    const auto space = compile(model);
    ASSERT_TRUE(space) << space.error().message;
    SpaceSolver solver(*space);
    Network network(document);
    std::set<std::string> factors;
    for (const ModelParameter& p : model.parameters) factors.insert(p.name);
    std::uint64_t here = 0;
    std::uint64_t all_here = 0;
    std::vector<int> row(model.parameters.size(), 0);
    for (std::size_t i = 0; i < row.size();) {
      if (i == 0) {
        Setting setting;
        std::vector<Literal> literals;
        for (std::uint32_t p = 0; p < row.size(); ++p) {
          const ModelParameter& info = model.parameters[p];
          literals.push_back({p, static_cast<std::uint16_t>(row[p]), true});
          if (row[p] == static_cast<int>(info.levels.size())) continue;
          setting[info.name] = info.levels[static_cast<std::size_t>(row[p])];
          setting[info.name + "#"] = std::to_string(row[p]);
        }
        std::vector<int> levels = row;
        for (std::size_t p = 0; p < row.size(); ++p) {
          if (row[p] == static_cast<int>(model.parameters[p].levels.size())) levels[p] = -1;
        }
        const bool expected = network.valid(setting, factors);
        ASSERT_EQ(solver.solve(literals).has_value(), expected)
            << "clauses, seed " << seed << "\n"
            << json(setting).dump(1) << document.dump(1);
        std::string why;
        ASSERT_EQ(is_valid(model, levels, &why), expected)
            << "walk, seed " << seed << ": " << why << "\n"
            << json(setting).dump(1) << document.dump(1);
        here += expected ? 1 : 0;
        ++all_here;
      }
      if (++row[i] < static_cast<int>(model.parameters[i].levels.size() +
                                      (model.parameters[i].only_if ? 1 : 0))) {
        i = 0;
      } else {
        row[i++] = 0;
      }
    }
    configurations += all_here;
    valid_count += here;
    with_loops_or_losses += here > 0 && here < all_here ? 1 : 0;
  }
  // The test must not be empty: many networks allow some configurations and forbid others.
  EXPECT_GT(with_loops_or_losses, sized(60, 0));
  RecordProperty("configurations", std::to_string(configurations));
  RecordProperty("valid", std::to_string(valid_count));
}

}  // namespace
}  // namespace greynic::testgen
