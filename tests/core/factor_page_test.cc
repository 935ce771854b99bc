#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "greynic/core/campaign.h"
#include "greynic/core/units.h"

namespace greynic {
namespace {

std::string levels_of(const FactorInfo& factor) {
  if (factor.type == FactorType::kBool) return "`false`, `true`";
  if (factor.type == FactorType::kNumeric) {
    return number_to_string(factor.minimum) + " to " + number_to_string(factor.maximum);
  }
  std::string all;
  for (const std::string_view category : factor.categories) {
    all += (all.empty() ? "`" : ", `") + std::string(category) + "`";
  }
  return all;
}

// Claim:  docs/factors.md holds the table of factors, row by row.
// Method: the rows as the table in core says them; the message is the row to paste.
TEST(FactorPage, HoldsEveryFactorOfTheTable) {
  std::ifstream file(std::string(GREYNIC_SOURCE_DIR) + "/docs/factors.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const FactorInfo& factor : known_factors()) {
    const std::string row = "| `" + std::string(factor.name) + "` | " + levels_of(factor) + " | " +
                            to_string(factor.standard) + " | " + std::string(factor.unit) + " | " +
                            std::string(factor.meaning) + " |\n";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace greynic
