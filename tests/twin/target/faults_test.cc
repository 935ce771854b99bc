#include <fmt/core.h>
#include <gtest/gtest.h>

#include "greynic/core/fault_table.h"
#include "greynic/target/target.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

Observation measure(const std::string& configuration) {
  const auto twin = create("twin:cx6");
  EXPECT_TRUE(twin);
  const auto seen = target::measure_one(
      **twin, {.configuration = *parse_configuration(configuration), .seed = 1});
  EXPECT_TRUE(seen);
  return seen.value_or(Observation{});
}

// Claim:  each wrong request on a virtual RNIC ends with the status of the specification.
// Oracle: the fault table; the twin works the request through its own checks and does not read it.
TEST(TwinFaults, EndWithTheStatusOfTheBook) {
  for (const FaultRow& row : fault_table()) {
    const Observation seen = measure(
        fmt::format("fault={},operation={},transport={}", row.name, row.operation, row.transport));
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << row.name << ": " << seen.reason;
    EXPECT_EQ(seen.environment.at("observed_status"), row.expected)
        << row.name << " " << row.operation;
    EXPECT_EQ(seen.value("status_as_expected_share"), 1.0);
  }
}

// Claim:  without a fault the same configuration is traffic, and what is not defined is refused.
TEST(TwinFaults, AreNoTraffic) {
  EXPECT_TRUE(measure("operation=WRITE,transport=RC,message_bytes=64").value("bandwidth_gbps"));
  EXPECT_EQ(measure("fault=receive_missing,operation=READ,transport=RC").outcome,
            Outcome::kRefused);
  EXPECT_EQ(measure("fault=remote_key,operation=WRITE,transport=UC").outcome, Outcome::kRefused);
  EXPECT_EQ(measure("fault=handle_domain,operation=SEND,transport=RC").outcome, Outcome::kRefused);
}

}  // namespace
}  // namespace greynic::twin
