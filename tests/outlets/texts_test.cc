#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "greynic/os/program.h"
#include "greynic/outlets/influx.h"
#include "greynic/outlets/open_metrics.h"
#include "greynic/outlets/trace_events.h"

namespace greynic::outlets {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
const std::string kOdd = "a\\b \"c\",=\n\tü{}";

OpenMetrics metrics_of_all_kinds() {
  OpenMetrics metrics;
  metrics.gauge("greynic_depth_bytes", "Bytes in \"a\" queue.\nNow.", {{"port", "1"}}, 12.5);
  metrics.counter("greynic_packets_total", "Packets.", {{"port", "1"}}, 7);
  metrics.gauge("greynic_depth_bytes", "",
                {{"port", kOdd}, {"9 odd-name", "x"}, {"9_odd_name", ""}}, kInfinity);
  metrics.gauge("greynic_depth_bytes", "", {{"port", "3"}}, kNoNumber);
  const OpenMetrics::Bucket buckets[] = {{10, 1}, {100, 3}};
  metrics.histogram("greynic_delay_seconds", "Delays.", {{"hop", "a"}}, buckets, 4, 1234);
  return metrics;
}

// Claim:  samples of a family stand together, counters and buckets are named as the format wants,
//         and odd text is escaped.
// Oracle: the text, written by hand after the specification of OpenMetrics 1.0.
TEST(OpenMetrics, IsWrittenAsSpecified) {
  EXPECT_EQ(metrics_of_all_kinds().text(),
            "# TYPE greynic_depth_bytes gauge\n"
            "# HELP greynic_depth_bytes Bytes in 'a' queue.\\nNow.\n"
            "greynic_depth_bytes{port=\"1\"} 12.5\n"
            "greynic_depth_bytes{port=\"a\\\\b "
            "\\\"c\\\",=\\n\tü{}\",_9_odd_name=\"x\",_9_odd_name_=\"\"} "
            "+Inf\n"
            "greynic_depth_bytes{port=\"3\"} NaN\n"
            "# TYPE greynic_packets counter\n"
            "# HELP greynic_packets Packets.\n"
            "greynic_packets_total{port=\"1\"} 7\n"
            "# TYPE greynic_delay_seconds histogram\n"
            "# HELP greynic_delay_seconds Delays.\n"
            "greynic_delay_seconds_bucket{hop=\"a\",le=\"10\"} 1\n"
            "greynic_delay_seconds_bucket{hop=\"a\",le=\"100\"} 3\n"
            "greynic_delay_seconds_bucket{hop=\"a\",le=\"+Inf\"} 4\n"
            "greynic_delay_seconds_count{hop=\"a\"} 4\n"
            "greynic_delay_seconds_sum{hop=\"a\"} 1234\n"
            "# EOF\n");
}

// Claim:  the older format is what Prometheus reads, and well named.
// Oracle: promtool, with its rules for names.
TEST(OpenMetrics, PassesPromtool) {
  if (std::string_view(GREYNIC_PROMTOOL).empty()) {
    GTEST_SKIP() << "there is no promtool; apt-get install prometheus";
  }
  const auto checked =
      os::run({.words = {GREYNIC_PROMTOOL, "check", "metrics"},
               .input = metrics_of_all_kinds().text(OpenMetrics::Format::kOlderText)});
  EXPECT_TRUE(checked) << checked.error().message;
}

// Claim:  a point is one line, whatever its names hold; what the protocol cannot say is left out.
TEST(InfluxPoint, IsOneLine) {
  InfluxPoint point("hop delays");
  point.tag("flow", kOdd).tag("empty", "").tag("ends\\", "with\\\\");
  EXPECT_EQ(point.line(), "") << "a point without fields is none";
  point.number("p50 ns", 1.5).number("none", kNoNumber).number("far", kInfinity);
  point.count("packets", std::numeric_limits<std::uint64_t>::max()).integer("change", -3);
  point.flag("ok", true).text("why", "a \"b\" \\\nc");
  EXPECT_EQ(point.line(1600000000000000000),
            "hop\\ delays,flow=a\\b\\ \"c\"\\,\\=\\ \\ ü{},ends/=with// "
            "p50\\ ns=1.5,packets=9223372036854775807i,change=-3i,ok=true,"
            "why=\"a \\\"b\\\" \\\\ c\" 1600000000000000000\n");
}

// Claim:  a timeline is JSON with a trace event for each call, and nanoseconds are kept.
// Oracle: a JSON parser of others.
TEST(TraceEvents, AreJson) {
  std::string text;
  TraceEvents events([&](std::string_view piece) { text += piece; });
  events.name_process(1, "host \"1\"");
  events.name_track({1, 2}, kOdd + "\xff");
  events.slice({1, 2}, "wait", 1234567, 89, {{"bytes", 64.0}, {"flow", kOdd}, {"x", kNoNumber}});
  events.instant({1, 2}, "lost", -5);
  events.counter(1, "depth", 3000, {{"flow a", 2.5}, {"flow b", 3.0}});
  events.arrow(7, "to", {1, 2}, 10, {1, 3}, 20);
  events.finish();
  const auto document = nlohmann::json::parse(text);
  const auto& list = document.at("traceEvents");
  ASSERT_EQ(list.size(), 7U);
  EXPECT_EQ(list[0]["args"]["name"], "host \"1\"");
  EXPECT_EQ(list[1]["args"]["name"], kOdd + "?");
  EXPECT_EQ(list[2]["ts"], 1234.567);
  EXPECT_EQ(list[2]["dur"], 0.089);
  EXPECT_EQ(list[2]["args"]["flow"], kOdd);
  EXPECT_TRUE(list[2]["args"]["x"].is_null());
  EXPECT_EQ(list[3]["ts"], -0.005);
  EXPECT_EQ(list[4]["args"]["flow b"], 3.0);
  EXPECT_EQ(list[5]["id"], list[6]["id"]);
}

// Claim:  a long timeline is handed on in pieces, and stays one JSON text.
TEST(TraceEvents, NeedNoMemoryForALongTimeline) {
  std::string text;
  std::size_t longest = 0;
  TraceEvents events([&](std::string_view piece) {
    longest = std::max(longest, piece.size());
    text += piece;
  });
  for (int i = 0; i < 20000; ++i)
    events.slice({1, 1}, "packet", i * 100, 50, {{"number", 1.0 * i}});
  events.finish();
  EXPECT_LT(longest, 70000U);
  EXPECT_EQ(nlohmann::json::parse(text).at("traceEvents").size(), 20000U);
}

}  // namespace
}  // namespace greynic::outlets
