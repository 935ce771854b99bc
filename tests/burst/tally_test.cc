#include "greynic/burst/tally.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "greynic/burst/replay.h"
#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/files/json_file.h"
#include "packets.h"

namespace greynic::burst {
namespace {

/// A replay of random trains of some flows, each burst kept or told.
Findings replayed(std::size_t packets, std::uint64_t seed,
                  std::function<void(const Findings&, const Burst&)> found = {}) {
  statistics::Random random(seed);
  ReplayOptions options;
  options.allowance = {std::chrono::microseconds(25), 5'000'000, 20'000'000'000};
  options.found = std::move(found);
  Replay replay(options);
  for (const Arrival& arrival : random_arrivals(packets, 10'000'000'000, random)) {
    FlowKey flow{.source_port = static_cast<std::uint16_t>(arrival.flow),
                 .kind = FlowKey::kIpv4Ports};
    flow.source = {10, 0, 0, static_cast<std::uint8_t>(arrival.flow)};
    EXPECT_TRUE(replay.add(arrival.time_ns, arrival.bytes, flow));
  }
  return replay.finish();
}

// Claim:  a tally has the numbers of all bursts and the deepest of them, whoever keeps the bursts.
// Oracle: the bursts themselves, counted and sorted here.
TEST(Tally, CountsWhatNobodyKeeps) {
  const Findings kept = replayed(4000, 21);
  ASSERT_GT(kept.bursts.size(), 2 * Tally::kDeepest);
  std::size_t told = 0;
  const Findings lean = replayed(4000, 21, [&](const Findings& so_far, const Burst& burst) {
    ASSERT_LT(told, kept.bursts.size());
    EXPECT_EQ(burst.start_ns, kept.bursts[told].start_ns);
    EXPECT_EQ(burst.flows.size(), kept.bursts[told].flows.size());
    EXPECT_EQ(burst.indirect.size(), kept.bursts[told].indirect.size());
    EXPECT_EQ(burst.victims, kept.bursts[told].victims);
    ++told;
    EXPECT_EQ(so_far.tally.bursts(), told);
  });
  EXPECT_EQ(told, kept.bursts.size());
  EXPECT_TRUE(lean.bursts.empty());
  EXPECT_EQ(lean.packets_marked, kept.packets_marked);
  std::uint64_t packets = 0, victims = 0, within_10us = 0;
  std::vector<std::uint64_t> peaks;
  for (const Burst& burst : kept.bursts) {
    packets += burst.packets;
    victims += burst.victim_packets();
    within_10us += burst.end_ns - burst.start_ns <= 10'000 ? 1 : 0;
    peaks.push_back(burst.peak_depth_bytes);
  }
  std::ranges::sort(peaks, std::greater());
  const Tally::OfQueue& queue = lean.tally.queues().at(0);
  EXPECT_EQ(queue.bursts, kept.bursts.size());
  EXPECT_EQ(queue.packets, packets);
  EXPECT_EQ(queue.packets, lean.packets_marked);
  EXPECT_EQ(queue.victims, victims);
  EXPECT_EQ(queue.peak_depth_bytes, peaks.front());
  EXPECT_EQ(queue.within_bounds[0], within_10us);
  EXPECT_DOUBLE_EQ(lean.tally.victim_share(),
                   static_cast<double>(victims) / static_cast<double>(packets));
  std::vector<std::uint64_t> deepest, starts;
  for (const Burst& burst : lean.tally.deepest()) {
    deepest.push_back(burst.peak_depth_bytes);
    starts.push_back(burst.start_ns);
  }
  EXPECT_TRUE(std::ranges::is_sorted(starts));
  std::ranges::sort(deepest, std::greater());
  peaks.resize(Tally::kDeepest);
  EXPECT_EQ(deepest, peaks);
}

// Claim:  what goes to InfluxDB and to metrics counts every burst, however many there are.
// Oracle: how many were told.
TEST(Tally, CountsOnWhereNobodyCouldKeepThem) {
  std::size_t told = 0;
  const Findings lean = replayed(600'000, 23, [&](const Findings&, const Burst&) { ++told; });
  ASSERT_GT(told, 10'000U);
  EXPECT_NE(burst_outlets::influx_totals(lean).find(fmt::format("bursts={}i", told)),
            std::string::npos);
  const std::string metrics = burst_outlets::metrics_of(lean).text();
  EXPECT_NE(metrics.find(
                fmt::format("greynic_burst_duration_seconds_count{{queue=\"capture\"}} {}", told)),
            std::string::npos)
      << metrics;
}

// Claim:  the JSON of bursts that were told one by one is what the schema says, with none, one and
//         many of them, and nothing is left of the file that held them.
// Oracle: a parser, and the bursts that were kept.
TEST(JsonList, IsWholeForAnyNumberOfBursts) {
  for (const std::size_t packets : {0U, 60U, 6000U}) {
    const Findings kept = replayed(packets, 22);
    auto list = burst_outlets::JsonList::open();
    ASSERT_TRUE(list) << list.error().message;
    const Findings told = replayed(
        packets, 22, [&](const Findings& so_far, const Burst& burst) { list->add(so_far, burst); });
    std::string text;
    ASSERT_TRUE(list->finish(told, [&text](std::string_view piece) { text += piece; }));
    const auto document = files::parse_json(text, "bursts");
    ASSERT_TRUE(document) << document.error().message;
    const auto fits = files::check_schema(*document, "burst", "bursts");
    EXPECT_TRUE(fits) << fits.error().message;
    EXPECT_EQ(text, files::json_text(*document, 1) + "\n");  // formed as one piece would be
    ASSERT_EQ(document->at("bursts").size(), kept.bursts.size());
    for (std::size_t i = 0; i < kept.bursts.size(); ++i) {
      EXPECT_EQ(document->at("bursts")[i], to_json(kept, kept.bursts[i]));
    }
  }
}

}  // namespace
}  // namespace greynic::burst
