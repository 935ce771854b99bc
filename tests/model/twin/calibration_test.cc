#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "greynic/model/design.h"
#include "twin_runs.h"

namespace greynic::model {
namespace {

const std::vector<double> kMasks = {0, 5, 10, 15, 20};

/// 5^4 mask settings at two sizes and two operations: what a calibration is to predict.
std::vector<Configuration> full_grid() {
  std::vector<Configuration> grid;
  for (const double ce : kMasks) {
    for (const double sd : kMasks) {
      for (const double se : kMasks) {
        for (const double cd : kMasks) {
          for (const double bytes : {1024.0, 1048576.0}) {
            for (const std::string operation : {"SEND", "WRITE"}) {
              grid.push_back({{"client_encap_masks", ce},
                              {"server_decap_masks", sd},
                              {"server_encap_masks", se},
                              {"client_decap_masks", cd},
                              {"message_bytes", bytes},
                              {"operation", operation},
                              {"qp_count", 4.0}});
            }
          }
        }
      }
    }
  }
  return grid;
}

/// ScalaCN's calibration: local against remote masks, 0 to 20 each, and 20 cells more (here of a
/// smaller message): 461 cells of two inputs.
std::vector<Configuration> scalacn_cells() {
  std::vector<Configuration> cells;
  for (int i = 0; i < 461; ++i) {
    cells.push_back({{"client_encap_masks", static_cast<double>(i % 21)},
                     {"server_decap_masks", static_cast<double>(i / 21 % 21)},
                     {"server_encap_masks", 0.0},
                     {"client_decap_masks", 0.0},
                     {"message_bytes", i < 441 ? 1048576.0 : 1024.0},
                     {"operation", std::string("SEND")},
                     {"qp_count", 4.0}});
  }
  return cells;
}

std::vector<Configuration> every(const std::vector<Configuration>& all, std::size_t step) {
  std::vector<Configuration> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

double mean_error(const Model& model, const std::vector<Observation>& truth,
                  std::string_view measure) {
  double sum = 0.0;
  double count = 0.0;
  for (const Observation& o : truth) {
    const auto value = o.value(measure);
    const auto prediction = model.predict(o.asked);
    if (!value || !prediction) continue;
    sum += std::abs(prediction->measures.at(std::string(measure)).value / *value - 1.0);
    count += 1.0;
  }
  return sum / count;
}

// Claim:  50 settings that the design chooses give no larger an error on the full grid than the 461
//         cells of the published calibration, fitted by the published form.
// Oracle: the twin on every seventh cell of the full grid.
// Method: the design sees the candidates only, not what they measure.
TEST(Calibration, NeedsNoMoreThanFiftyChosenSettings) {
  const auto grid = full_grid();
  const auto truth = run_on("twin:cx6", every(grid, 7));
  const auto chosen = choose_settings("pipeline", grid, 50);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->size(), 50U);
  FitOptions options;
  options.cross_validate = false;
  options.intervals = Intervals::kCovariance;
  options.form = Form::kPipeline;
  const auto ours = fit(run_on("twin:cx6", *chosen), options);
  ASSERT_TRUE(ours) << ours.error().message;
  const auto cells = run_on("twin:cx6", scalacn_cells());
  const auto theirs_by_our_law = fit(cells, options);
  ASSERT_TRUE(theirs_by_our_law) << theirs_by_our_law.error().message;
  options.form = Form::kScalacn;
  const auto theirs = fit(cells, options);
  ASSERT_TRUE(theirs) << theirs.error().message;
  for (const std::string_view measure :
       {greynic::measure::kBandwidth, greynic::measure::kLatencyP50}) {
    const double error = mean_error(*ours->model, truth, measure);
    const double published = mean_error(*theirs->model, truth, measure);
    const double same_law = mean_error(*theirs_by_our_law->model, truth, measure);
    fmt::print(
        "{:<16} 50 chosen {:.2f} %, 461 cells {:.2f} % (published form), {:.2f} % (pipeline)\n",
        measure, 100 * error, 100 * published, 100 * same_law);
    EXPECT_LE(error, published);
    EXPECT_LE(error, same_law);
    EXPECT_LE(error, 0.05);
  }
}

// Claim:  with a model at hand, ten chosen settings lower the error no less than ten random ones.
// Oracle: the twin on the grid, after fits to the enlarged data.
TEST(Calibration, ChoosesBetterThanChance) {
  const auto grid = full_grid();
  const auto start = every(grid, 190);
  FitOptions options;
  options.cross_validate = false;
  options.form = Form::kPipeline;
  options.intervals = Intervals::kCovariance;
  auto measured = run_on("twin:cx5", start);
  const auto known = fit(measured, options);
  ASSERT_TRUE(known) << known.error().message;
  const auto chosen = choose_settings("pipeline", grid, 10, {.model = known->model.get()});
  ASSERT_TRUE(chosen) << chosen.error().message;
  const auto error_with = [&](const std::vector<Configuration>& more) {
    auto all = measured;
    const auto added = run_on("twin:cx5", more);
    all.insert(all.end(), added.begin(), added.end());
    const auto again = fit(all, options);
    EXPECT_TRUE(again);
    const auto truth = run_on("twin:cx5", every(grid, 41));
    return mean_error(*again->model, truth, greynic::measure::kBandwidth) +
           mean_error(*again->model, truth, greynic::measure::kLatencyP50);
  };
  double random = 0.0;
  for (const std::size_t offset : {3, 17, 29}) {
    std::vector<Configuration> picks;
    for (std::size_t i = 0; i < 10; ++i) picks.push_back(grid[(offset + i * 241) % grid.size()]);
    random += error_with(picks) / 3.0;
  }
  const double ours = error_with(*chosen);
  fmt::print("ten chosen: {:.2f} %, ten at random: {:.2f} %\n", 100 * ours, 100 * random);
  EXPECT_LE(ours, random);
}

}  // namespace
}  // namespace greynic::model
