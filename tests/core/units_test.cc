#include "greynic/core/units.h"

#include <gtest/gtest.h>

#include "greynic/core/configuration.h"

namespace greynic {
namespace {

TEST(Units, ADurationNeedsItsUnit) {
  EXPECT_EQ(parse_duration("2s").value(), std::chrono::seconds(2));
  EXPECT_EQ(parse_duration("1.5us").value(), std::chrono::nanoseconds(1500));
  EXPECT_EQ(parse_duration("3 min").value(), std::chrono::minutes(3));
  for (const char* text : {"", "2", "-1s", "1e300s", "nans", "2 parsec", "s", "infs"}) {
    const auto read = parse_duration(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(exit_code(read.error().code), 2);
  }
}

TEST(Units, SizesAreExact) {
  EXPECT_EQ(parse_bytes("8MiB").value().count, 8388608U);
  EXPECT_EQ(parse_bytes("1kB").value().count, 1000U);
  EXPECT_FALSE(parse_bytes("8"));
  EXPECT_FALSE(parse_bytes("-8B"));
  EXPECT_EQ(to_string(Bytes{8388608}), "8 MiB");
}

// Claim:  the three bandwidth units are what their sources say. Values: perftest prints 21118 MiB/s
//         where the line carries 177.15 Gbit/s; ScalaCN's unit is 2^30 bit/s.
TEST(Units, BandwidthUnitsConvert) {
  EXPECT_NEAR(BitRate::from_mib_per_second(21118).gbps(), 177.15, 0.01);
  EXPECT_NEAR(BitRate::from_scalacn(1.0).gbps(), 1.073741824, 1e-12);
  EXPECT_NEAR(BitRate::from_gbps(200).scalacn(), 186.2645, 1e-3);
}

TEST(Units, NumbersReadBackTheSame) {
  for (const double value : {0.0, 65536.0, 0.1, 1.0 / 3.0, -2.5, 1e300}) {
    EXPECT_EQ(std::stod(number_to_string(value)), value);
  }
  EXPECT_EQ(number_to_string(65536.0), "65536");
}

TEST(Configuration, IsCanonical) {
  const Configuration a{{"qp_count", 4.0}, {"operation", std::string("SEND")}};
  Configuration b;
  b.set("operation", std::string("WRITE"));
  b.set("qp_count", 4.0);
  b.set("operation", std::string("SEND"));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.name(), "operation=SEND,qp_count=4");
  EXPECT_EQ(parse_configuration(a.name()).value(), a);
  EXPECT_EQ(parse_configuration("message_bytes=8MiB").value().number("message_bytes"), 8388608.0);
  EXPECT_EQ(Configuration().number("send_queue_depth"), 128.0);
  for (const char* text : {"qp_count", "=4", "qp_count=x", "qp_count=1,qp_count=2"}) {
    EXPECT_FALSE(parse_configuration(text)) << text;
  }
}

}  // namespace
}  // namespace greynic
