#include "greynic/monitor/publish.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "greynic/zero/metrics.h"

namespace greynic::monitor {
namespace {

// Claim: what a program counts comes out under its name, with its labels, in base units.
TEST(Publish, SaysWhatWasReadInBaseUnits) {
  zero::Counter bytes({.name = "taken", .unit = "B", .help = "Taken", .labels = "port=\"a\\\"b\""});
  zero::Gauge load({.name = "load", .unit = "%"});
  zero::Histogram delay({.name = "delay", .unit = "ns", .help = "Delay"});
  bytes.add(12);
  load.set(25);
  for (const std::uint64_t value : {3, 3, 1000}) delay.record(value);
  HostSpec host;
  host.name = "h";
  host.pid = getpid();
  host.interval = std::chrono::milliseconds(5);
  auto collector = Collector::open({host}, {});
  ASSERT_TRUE(collector);
  std::atomic<bool> over{false};
  std::thread running([&] { EXPECT_TRUE((*collector)->run(over)); });
  std::string text;
  for (int i = 0; i < 2000 && text.find("taken_bytes_total") == std::string::npos; ++i) {
    usleep(10000);
    text = open_metrics_of(**collector).text(outlets::OpenMetrics::Format::kOpenMetrics);
  }
  over = true;
  running.join();
  text = open_metrics_of(**collector).text(outlets::OpenMetrics::Format::kOpenMetrics);
  for (const char* line :
       {"taken_bytes_total{port=\"a\\\"b\",host=\"h\",program=\"monitor_tests\"} 12\n",
        "load_ratio{host=\"h\",program=\"monitor_tests\"} 0.25\n",
        "delay_seconds_count{host=\"h\",program=\"monitor_tests\"} 3\n", "le=\"3e-09\"} 2\n",
        "greynic_zero_host_up{host=\"h\"} 1\n", "# EOF\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  const std::string lines = influx_lines_of(**collector);
  EXPECT_NE(lines.find("value=12i "), std::string::npos) << lines;
  EXPECT_NE(lines.find("count=3i"), std::string::npos) << lines;
}

// Claim:  InfluxDB gets the last values of functions that end between two looks of its sender, each once,
//         at the time of its end; series that have the same tags and time are one point, added up.
// Oracle: what this test counts: 20 calls with 1, 2, ... bytes. Method: lines as the sender asks for them.
TEST(Publish, GivesInfluxDbWhatEndedBetweenTwoLooks) {
  struct Usage {
    std::uint64_t bytes;
  };
  static const zero_field field{"bytes", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "B", "", ""};
  static const zero_schema schema{"work", "A call", &field, 1, sizeof(Usage), ZERO_PLAIN};
  zero::Counter first({.name = "twice", .labels = "of=\"two\""});
  zero::Counter second({.name = "twice", .labels = "of=\"two\""});
  first.add(3);
  second.add(4);
  HostSpec host;
  host.name = "h";
  host.pid = getpid();
  host.interval = std::chrono::milliseconds(5);
  CollectorOptions options;
  options.keeps_ended = true;
  auto collector = Collector::open({host}, options);
  ASSERT_TRUE(collector);
  std::atomic<bool> over{false};
  std::thread running([&] { EXPECT_TRUE((*collector)->run(over)); });
  std::string lines;
  const auto came = [&](const std::string& text) {
    for (int i = 0; i < 2000 && lines.find(text) == std::string::npos; ++i) {
      usleep(10000);
      lines += influx_lines_of(**collector);
    }
    return lines.find(text) != std::string::npos;
  };
  EXPECT_TRUE(came("twice,host=h,program=monitor_tests,of=two value=7i ")) << lines;
  for (std::uint64_t bytes = 1; bytes <= 20; ++bytes) {
    zero::Call<Usage> call(schema, "what=\"short\"");
    ASSERT_TRUE(call);
    zero_add(&call->bytes, bytes);
  }
  for (int bytes = 1; bytes <= 20; ++bytes) {
    EXPECT_TRUE(
        came(fmt::format("work_bytes,host=h,program=monitor_tests,what=short value={}i ", bytes)))
        << lines;
  }
  over = true;
  running.join();
  EXPECT_EQ((*collector)->counts().forgotten, 0);
}

}  // namespace
}  // namespace greynic::monitor
