#include "greynic/results/export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::results {
namespace {

std::vector<Observation> two_observations() {
  Observation measured;
  measured.asked = {{"transport", std::string("RC")}, {"site", std::string("a, \"b\"\nc=d")}};
  measured.outcome = Outcome::kMeasured;
  measured.measures["bandwidth_gbps"] = {91.25, 0.5};
  measured.counters_before["rx_bytes"] = 1;
  measured.counters_after["rx_bytes"] = 17;
  Observation refused;
  refused.asked = {{"transport", std::string("UD")}, {"qp_count", 8.0}};
  refused.repeat = 1;
  refused.outcome = Outcome::kRefused;
  refused.reason = "EINVAL";
  return {measured, refused};
}

RunHeader header() {
  RunHeader header;
  header.campaign_name = "odd name";
  header.target = "exec:x --a=\"b\"";
  return header;
}

std::string text_of(ExportFormat format) {
  const auto observations = two_observations();
  return export_text(header(), observations, format);
}

/// RFC 4180, written from its grammar alone.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back({""});
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

// Claim:  JSON lines hold one observation each, and read back as the same observation.
TEST(Export, JsonLinesReadBack) {
  std::istringstream lines(text_of(ExportFormat::kJsonLines));
  std::string line;
  const auto want = two_observations();
  for (const Observation& observation : want) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto valid = files::check_schema(nlohmann::json::parse(line), "observation", "line");
    EXPECT_TRUE(valid) << valid.error().message;
    const auto got = files::observation_from_json(nlohmann::json::parse(line), "line", "");
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->asked, observation.asked);
    EXPECT_EQ(got->measures, observation.measures);
    EXPECT_EQ(got->counters_after, observation.counters_after);
    EXPECT_EQ(got->outcome, observation.outcome);
  }
  EXPECT_FALSE(std::getline(lines, line));
}

// Claim:  every CSV row has a cell for each column, quoting survives, and what is not there is
//         empty.
// Oracle: a reader written from RFC 4180.
TEST(Export, CsvIsRectangularAndQuoted) {
  const auto rows = parse_csv(text_of(ExportFormat::kCsv));
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows.front().size());
  const auto cell = [&](std::size_t row, const std::string& column) {
    const auto found = std::find(rows[0].begin(), rows[0].end(), column);
    EXPECT_NE(found, rows[0].end()) << column;
    return rows[row][static_cast<std::size_t>(found - rows[0].begin())];
  };
  EXPECT_EQ(cell(1, "site"), "a, \"b\"\nc=d");
  EXPECT_EQ(cell(1, "bandwidth_gbps"), "91.25");
  EXPECT_EQ(cell(1, "bandwidth_gbps_standard_error"), "0.5");
  EXPECT_EQ(cell(1, "counter.rx_bytes.after"), "17");
  EXPECT_EQ(cell(1, "qp_count"), "");
  EXPECT_EQ(cell(2, "outcome"), "refused");
  EXPECT_EQ(cell(2, "bandwidth_gbps"), "");
}

// Claim:  no cell of text is a formula to a spreadsheet, and numbers below zero stay numbers.
TEST(Export, CsvHoldsNoFormulas) {
  auto observations = two_observations();
  const char* const formulas[] = {"=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1"};
  for (const char* formula : formulas) {
    observations[0].asked = {{"site", std::string(formula)}};
    observations[0].measures["bandwidth_gbps"] = {-2.5, 0.5};
    const auto rows = parse_csv(export_text(header(), observations, ExportFormat::kCsv));
    const auto holds = [&](const std::string& cell) {
      return std::find(rows[1].begin(), rows[1].end(), cell) != rows[1].end();
    };
    EXPECT_TRUE(holds("'" + std::string(formula))) << formula;
    EXPECT_FALSE(holds(formula)) << formula;
    EXPECT_TRUE(holds("-2.5"));
  }
}

// Claim:  the line protocols escape what they reserve, and stay one line a sample.
TEST(Export, LineProtocolsAreWellFormed) {
  const std::string metrics = text_of(ExportFormat::kOpenMetrics);
  EXPECT_NE(metrics.find("# TYPE greynic_bandwidth_gbps gauge\n"), std::string::npos);
  EXPECT_NE(metrics.find(R"(site="a, \"b\"\nc=d")"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("} 91.25\n"), std::string::npos);
  EXPECT_TRUE(metrics.ends_with("# EOF\n"));
  const std::string influx = text_of(ExportFormat::kInflux);
  EXPECT_EQ(std::count(influx.begin(), influx.end(), '\n'), 2);
  EXPECT_NE(influx.find(R"(campaign=odd\ name,target=exec:x\ --a\="b",repeat=0,)"),
            std::string::npos)
      << influx;
  EXPECT_NE(influx.find(" outcome=\"measured\",bandwidth_gbps=91.25\n"), std::string::npos);
  EXPECT_NE(influx.find("transport=UD outcome=\"refused\"\n"), std::string::npos);
}

// Claim:  the Markdown table has one row a configuration and as many cells in each as in its head.
TEST(Export, MarkdownIsATable) {
  std::istringstream lines(text_of(ExportFormat::kMarkdown));
  std::string line;
  std::vector<long> bars;
  while (std::getline(lines, line)) {
    if (line.starts_with("|")) bars.push_back(std::count(line.begin(), line.end(), '|'));
  }
  ASSERT_EQ(bars.size(), 4U);
  for (const long count : bars) EXPECT_EQ(count, bars.front());
}

}  // namespace
}  // namespace greynic::results
