#include <gtest/gtest.h>

#include "../results/scratch.h"
#include "greynic/report/report.h"
#include "needs_pictures.h"

namespace greynic::report {
namespace {

using greynic::testing::Scratch;

constexpr const char* kCampaign = R"({
  "version": 1, "name": "shown",
  "factors": { "qp_count": { "type": "numeric", "levels": [1, 8, 64] },
               "transport": { "type": "categorical", "levels": ["RC", "UC"] } },
  "design": "full", "baseline": { "qp_count": 1, "transport": "RC" },
  "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
  "measure": { "repeats": 1, "seconds": 1 } })";

// Claim:  counters that were sampled while traffic ran are drawn for the baseline and the worst
//         configuration, traffic first, and their rates stand in a table.
TEST(Report, DrawsCountersUnderTheTraffic) {
  NEEDS_PICTURES();
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  results::RunHeader header;
  header.campaign_name = "shown";
  header.campaign_text = kCampaign;
  auto store = results::RunStore::open_to_append(path, header);
  ASSERT_TRUE(store);
  for (const double qps : {1.0, 8.0, 64.0}) {
    Observation one;
    one.asked = {{"qp_count", qps}, {"transport", std::string("RC")}};
    one.outcome = Outcome::kMeasured;
    one.measures["bandwidth_gbps"] = {90 - qps, std::nullopt};
    for (int ms = 1; ms <= 5; ++ms) {
      one.counter_samples["rx_bytes"].push_back({ms * 1'000'000, ms * 1024 * qps});
      if (qps == 64) one.counter_samples["out_of_sequence"].push_back({ms * 1'000'000, ms * 17.0});
    }
    ASSERT_TRUE(store->append(one));
  }
  ReportOptions options;
  options.run_path = path;
  const std::string whole = report_html(*store, options).value();
  const std::string page = whole.substr(0, whole.find("<script>"));
  const std::size_t traffic = page.find("rx_bytes a second");
  const std::size_t trouble = page.find("out_of_sequence a second");
  ASSERT_NE(traffic, std::string::npos);
  ASSERT_NE(trouble, std::string::npos);
  EXPECT_LT(traffic, trouble);
  EXPECT_NE(page.find("1.024e+06"), std::string::npos) << "the baseline: 1,024 bytes a ms";
  EXPECT_NE(page.find("6.554e+07"), std::string::npos) << "64 times as much";
  EXPECT_NE(page.find("1.7e+04"), std::string::npos);
  EXPECT_EQ(page.find("8.192e+06"), std::string::npos) << "neither baseline nor worst";
}

}  // namespace
}  // namespace greynic::report
