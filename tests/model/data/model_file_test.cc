#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../plain_law.h"
#include "greynic/model/grid.h"
#include "greynic/model/model.h"

namespace greynic::model {
namespace {

// Claim:  a model read back from its file answers the same, and grid cells are what predict says.
TEST(PipelineLaw, SurvivesItsFileAndTheGridAgrees) {
  std::mt19937_64 random(6);
  const auto report = fit(plant(PlainLaw(), 100, 0.02, random), quick());
  ASSERT_TRUE(report);
  const std::string path = testing::TempDir() + "greynic_model_roundtrip.json";
  std::ofstream(path) << report->model->to_json_text();
  const auto again = load(path);
  ASSERT_TRUE(again) << again.error().message;
  const auto axes = parse_grid(
      "client_encap_masks=0:60:20,operation=SEND|WRITE,message_bytes=64|1MiB,thread_count=1|8");
  ASSERT_TRUE(axes) << axes.error().message;
  const auto grid = predict_grid(**again, *axes, 2);
  ASSERT_TRUE(grid) << grid.error().message;
  ASSERT_EQ(grid->cells, 32U);
  for (std::size_t cell = 0; cell < grid->cells; ++cell) {
    const auto one = report->model->predict(grid_cell(*axes, cell));
    ASSERT_TRUE(one);
    EXPECT_DOUBLE_EQ(grid->distance[cell], one->distance);
    for (const GridColumn& column : grid->columns) {
      const PredictedMeasure& measure = one->measures.at(column.measure);
      EXPECT_NEAR(column.value[cell], measure.value, 1e-9 * measure.value);
      EXPECT_NEAR(std::log(column.high[cell] / column.low[cell]),
                  std::log(measure.high / measure.low), 0.02);
    }
  }
  std::filesystem::remove(path);
}

// Claim:  a damaged model file is refused by its name and the place, also where the damage would
//         only show later, in a prediction or in a table.
// Oracle: the file as it was written, in which one value at a time is exchanged.
TEST(PipelineLaw, RefusesAFileWithImpossibleParts) {
  std::mt19937_64 random(6);
  const auto report = fit(plant(PlainLaw(), 60, 0.02, random), quick());
  ASSERT_TRUE(report);
  const auto good = nlohmann::json::parse(report->model->to_json_text());
  const std::string path = testing::TempDir() + "greynic_model_damaged.json";
  const std::pair<const char*, nlohmann::json> damages[] = {
      {"/assumed/bandwidth_gbps/qp_count", 0},
      {"/assumed/bandwidth_gbps/qp_count", "many"},
      {"/assumed/latency_us_p50/mtu_bytes", -1},
      {"/assumed/latency_us_p50/transport", 3},
      {"/parameters/0/unit", 5},
      {"/parameters/0/meaning", nullptr},
      {"/parameters/0/interval", "guess"},
      {"/parameters/3/low", "x"},
      {"/parameters/3/low", 1e9},
      {"/parameters/3/high", nlohmann::json::array()},
      {"/domain/numeric/message_bytes", {5, 1}},
      {"/domain/requests_in_flight", {5, 1}},
      {"/noise/bandwidth_gbps/scatter", -1},
      {"/noise/bandwidth_gbps/unexplained", "none"},
      {"/noise/latency_us_p50/left_out_by_region", {{1, 2, 3}}},
      {"/tails", 5},
      {"/tails", {{"latency_us_p99", 2.0}}},
      {"/covariance/3", "x"}};
  for (const auto& [place, value] : damages) {
    auto bad = good;
    bad[nlohmann::json::json_pointer(place)] = value;
    std::ofstream(path) << bad.dump();
    const auto loaded = load(path);
    ASSERT_FALSE(loaded) << place;
    EXPECT_EQ(loaded.error().code, ErrorCode::kBadInput) << place;
    EXPECT_NE(loaded.error().message.find(path + ": at " + place), std::string::npos)
        << loaded.error().message;
  }
  std::ofstream(path) << good.dump();
  EXPECT_TRUE(load(path));
  std::filesystem::remove(path);
}

// Claim:  a wrong model file is refused with its name and the place in it.
TEST(ModelFile, RefusesWhatIsWrong) {
  std::mt19937_64 random(8);
  const auto report = fit(plant(PlainLaw(), 40, 0.02, random), quick());
  ASSERT_TRUE(report);
  const auto good = nlohmann::json::parse(report->model->to_json_text());
  std::vector<std::pair<std::string, std::string>> bad = {
      {"", "text"}, {"[]", "text"}, {"{", "text"}};
  const auto broken = [&](auto change) {
    auto document = good;
    change(document);
    bad.emplace_back(document.dump(), "json");
  };
  broken([](auto& d) { d.erase("version"); });
  broken([](auto& d) { d["version"] = 2; });
  broken([](auto& d) { d["law"] = "magic"; });
  broken([](auto& d) { d["parameters"].erase(0); });
  broken([](auto& d) { d["parameters"][0]["name"] = "line"; });
  broken([](auto& d) { d["parameters"][0]["value"] = -1; });
  broken([](auto& d) { d["covariance"][3].push_back(1); });
  broken([](auto& d) { d["noise"]["bandwidth_gbps"].erase("run"); });
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const std::string path = testing::TempDir() + fmt::format("greynic_bad_model_{}.json", i);
    std::ofstream(path) << bad[i].first;
    const auto model = load(path);
    ASSERT_FALSE(model) << bad[i].first.substr(0, 80);
    EXPECT_EQ(model.error().code, ErrorCode::kBadInput) << model.error().message;
    EXPECT_NE(model.error().message.find(path), std::string::npos) << model.error().message;
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace greynic::model
