#include "greynic/monitor/publish.h"

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

}  // namespace
}  // namespace greynic::monitor
