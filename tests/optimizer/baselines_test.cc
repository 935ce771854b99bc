#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "greynic/files/json_file.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "nightly.h"

namespace greynic::optimizer {
namespace {

std::string folder() { return std::string(GREYNIC_SOURCE_DIR) + "/../shared/data/rules/"; }

/// A row of baselines.csv by column name.
std::map<std::string, double> baseline(const std::string& set) {
  std::istringstream lines(files::read_text(folder() + "baselines.csv").value_or(""));
  std::string header;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(set + ",")) continue;
    std::istringstream names(header);
    std::istringstream cells(line);
    std::map<std::string, double> row;
    std::string name;
    for (std::string cell; std::getline(names, name, ',') && std::getline(cells, cell, ',');) {
      if (cell != set) row[name] = std::stod(cell);
    }
    return row;
  }
  return {};
}

/// Mean position of the rules, as the baselines count: each entry once.
double mean_position(const LayoutTable& table) {
  double sum = 0.0;
  double rules = 0.0;
  for (std::size_t i = 0; i < table.matchers.size(); ++i) {
    const auto here = static_cast<double>(table.matchers[i].rules.size());
    sum += here * static_cast<double>(i + 1);
    rules += here;
  }
  return sum / rules;
}

class Baselines : public testing::TestWithParam<const char*> {};

// Claim:  a single chain is shorter on the mean than the greedy baseline's, with matchers to match,
//         and cutting tables within 1.5 times the rules saves more than half of the rest.
// Oracle: baselines.csv, made by other programs; the proof is part of optimize().
TEST_P(Baselines, AreReachedAndPassed) {
  const std::string path = folder() + "classbench/" + GetParam() + ".rules.xz";
  if (!std::filesystem::exists(path))
    GTEST_SKIP()
        << path
        << " is not there; put the published data into ../shared/data, beside the source tree";
  if (waits_for_night(GetParam())) GTEST_SKIP() << "set GREYNIC_NIGHTLY for 10,000 rules";
  const auto rules = rules::read_rules(path);
  ASSERT_TRUE(rules) << rules.error().message;
  auto row = baseline(GetParam());
  ASSERT_FALSE(row.empty());
  EXPECT_EQ(static_cast<double>(rules->rules.size()),
            row["ternary_entries_after_port_prefix_expansion"]);
  const Traffic traffic = rules::uniform_traffic(*rules, 1);

  OptimizeOptions options;
  options.single_table = true;
  const auto chain = optimize(*rules, traffic, options);
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_LE(static_cast<double>(chain->after.matchers), row["flat_greedy_matchers"]);
  EXPECT_LT(mean_position(chain->layout.tables.front()), row["flat_greedy_avg_probe"]);

  const auto cut = optimize(*rules, traffic);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_LE(static_cast<double>(cut->after.rules), 1.5 * static_cast<double>(rules->rules.size()));
  EXPECT_LT(cut->after.matchers_tried, 0.5 * chain->after.matchers_tried);
}
INSTANTIATE_TEST_SUITE_P(ClassBench, Baselines,
                         testing::Values("acl1_1k", "acl3_1k", "acl5_1k", "fw1_1k", "fw4_1k",
                                         "ipc1_1k", "acl1_10k", "acl3_10k", "fw4_10k", "ipc1_10k"));

}  // namespace
}  // namespace greynic::optimizer
