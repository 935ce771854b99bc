#include <gtest/gtest.h>

#include <map>

#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

Observation measured(const std::string& target, const std::string& settings,
                     std::uint64_t seed = 1) {
  auto twin = create(target);
  EXPECT_TRUE(twin) << twin.error().message;
  target::MeasureRequest request;
  request.configuration = parse_configuration(settings).value();
  request.seed = seed;
  return target::measure_one(**twin, request).value();
}

constexpr const char* kLogs = "qp_count=4,signal_every=100,message_bytes=8388608";

// Claim:  goodput of a full line is the share of payload in a packet's wire time.
// Oracle: header sizes added up by hand: 1024 of 1156 bytes.
// Method: 200 Gbit/s, MTU 1024, VXLAN, no masks.
TEST(Twin, CountsEveryHeaderByte) {
  const Observation seen = measured("twin:cx6", kLogs);
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_NEAR(*seen.value(measure::kBandwidth), 200.0 * 1024 / 1156, 0.2);
  EXPECT_TRUE(seen.steady->settled);
}

// Claim:  a measurement that ends before anything arrives is too short: it knows no rate, not even
//         that of zero, which would be taken for a wall.
// Oracle: half a round trip takes 2.8 us (docs/twin/validation.md), so 1 us is too short, and 1 ms
//         is not.
TEST(Twin, KnowsNothingWhenTheTimeIsTooShort) {
  auto twin = create("twin:cx6");
  ASSERT_TRUE(twin);
  target::MeasureRequest request;
  request.configuration = parse_configuration("message_bytes=64").value();
  request.duration = std::chrono::microseconds(1);
  const Observation brief = target::measure_one(**twin, request).value();
  EXPECT_EQ(brief.outcome, Outcome::kTooShort);
  EXPECT_NE(brief.reason.find("nothing arrived within 1"), std::string::npos) << brief.reason;
  EXPECT_TRUE(brief.measures.empty());
  request.duration = std::chrono::milliseconds(1);
  EXPECT_EQ(target::measure_one(**twin, request).value().outcome, Outcome::kMeasured);
}

// Claim:  another seed gives another observation, close to the first.
// Oracle: the reported standard errors.
TEST(Twin, VariesBetweenSeedsWithinItsErrors) {
  const std::string settings = "qp_count=4,message_bytes=64";
  const Observation a = measured("twin:cx6", settings, 1);
  const Observation b = measured("twin:cx6", settings, 2);
  EXPECT_NE(a.measures, b.measures);
  EXPECT_NEAR(*a.value(measure::kMessageRate), *b.value(measure::kMessageRate),
              0.02 * *a.value(measure::kMessageRate));
}

// Claim:  what is cut to the depth of the queue is granted, and seen in the observation.
// Oracle: a queue of 8 cannot wait for 100 sends before it completes one, nor post 64 at once.
TEST(Twin, ShowsWhatItGrantedWhereThatIsLessThanAsked) {
  const Observation seen =
      measured("twin:cx6", "send_queue_depth=8,signal_every=100,post_batch=64");
  ASSERT_EQ(seen.outcome, Outcome::kMeasured);
  EXPECT_EQ(seen.asked.number("signal_every"), 100);
  EXPECT_EQ(seen.granted.number("signal_every"), 8);
  EXPECT_EQ(seen.granted.number("post_batch"), 8);
  EXPECT_EQ(seen.granted.number("send_queue_depth"), 8);
  EXPECT_TRUE(measured("twin:cx6", "send_queue_depth=128,signal_every=100").granted.empty());
}

// Claim:  what verbs forbid is refused as an outcome, with a reason.
// Oracle: the table of transports and operations in the verbs manual.
TEST(Twin, RefusesWhatVerbsForbid) {
  for (const char* settings :
       {"transport=UD,operation=WRITE", "transport=UD,message_bytes=65536,operation=SEND",
        "transport=UC,operation=READ", "transport=UC,operation=ATOMIC", "inline_bytes=4000"}) {
    const Observation seen = measured("twin:cx6", settings);
    EXPECT_EQ(seen.outcome, Outcome::kRefused) << settings;
    EXPECT_FALSE(seen.reason.empty()) << settings;
  }
  EXPECT_EQ(measured("twin:e810", "operation=ATOMIC").outcome, Outcome::kRefused);
  EXPECT_EQ(measured("twin:e810", "server_decap_masks=65").outcome, Outcome::kRefused);
  EXPECT_EQ(measured("twin:e810", "server_decap_masks=64").outcome, Outcome::kMeasured);
  EXPECT_EQ(measured("twin:cx3", "server_decap_masks=1").outcome, Outcome::kRefused);
}

// Claim:  a wrong target name is told in one message that says what there is.
TEST(Twin, NamesWhatIsWrongInATargetName) {
  for (const char* name :
       {"twin:cx99", "twin:cx6?profile=nope", "twin:cx6?speed=9", "twin:cx6?threads=none",
        "twin:cx6?defects=S10", "twin:/no/such.json", "twin:cx6?stop=never"}) {
    const auto twin = create(name);
    ASSERT_FALSE(twin) << name;
    EXPECT_EQ(twin.error().code, ErrorCode::kBadInput) << name << ": " << twin.error().message;
  }
}

Matcher matcher_of(MatchField field, std::uint64_t value) {
  FlowRule rule;
  rule.match.set(field, value);
  rule.actions = {Action::forward("p1")};
  Matcher matcher;
  matcher.mask = rule.match.mask();
  matcher.rules = {rule};
  return matcher;
}

// Claim:  after apply, a packet walks as many matchers as the reference lookup tries, flow by flow.
// Oracle: core's look_up gives the mean; a plain number of masks gives the same walk.
// Method: 30 matchers, traffic that hits the last or the first; compared with masks=30 and masks=1.
TEST(Twin, WalksAnInstalledLayoutAsTheReferenceLookupDoes) {
  Layout layout;
  layout.tables.push_back({});
  for (int i = 0; i < 29; ++i) {
    layout.tables[0].matchers.push_back(
        matcher_of(MatchField::kReg0, 1000 + static_cast<std::uint64_t>(i)));
  }
  layout.tables[0].matchers.push_back(matcher_of(MatchField::kL4DstPort, 7));
  Packet last;
  last.set(MatchField::kL4DstPort, 7);
  Traffic traffic;
  traffic.flows.push_back({last, 1.0});
  ASSERT_EQ(look_up(layout, last).matchers_tried, 30U);

  auto twin = create("twin:cx6").value();
  ASSERT_TRUE(twin->rules().install(twin->rules().fit(layout), &traffic, {Hop::kServerDecap}));
  target::MeasureRequest request;
  request.configuration = parse_configuration(kLogs).value();
  const Observation applied = target::measure_one(*twin, request).value();
  const Observation masks =
      measured("twin:cx6", std::string(kLogs) + ",server_decap_masks=30", request.seed);
  EXPECT_NEAR(*applied.value(measure::kBandwidth), *masks.value(measure::kBandwidth),
              0.01 * *masks.value(measure::kBandwidth));
  ASSERT_TRUE(twin->rules().roll_back());
  const Observation back = target::measure_one(*twin, request).value();
  EXPECT_NEAR(*back.value(measure::kBandwidth), 177.16, 0.2);
}

// Claim:  with a sink, counters come once each counter_poll_ms of virtual time and never fall.
// Oracle: the number of periods in the duration; monotone sums.
TEST(Twin, PublishesCountersWhileTrafficRuns) {
  auto twin = create("twin:cx6?threads=1&stop=duration").value();
  std::vector<double> packets;
  twin->set_counter_sink([&](const CounterSnapshot& snapshot) {
    for (const auto& [name, value] : snapshot.counters) {
      if (name == "tx_vport_rdma_unicast_packets") packets.push_back(value);
    }
  });
  target::MeasureRequest request;
  request.configuration = parse_configuration("qp_count=4,counter_poll_ms=1").value();
  request.duration = std::chrono::milliseconds(10);
  (void)target::measure_one(*twin, request).value();
  ASSERT_GE(packets.size(), 9U);
  ASSERT_LE(packets.size(), 10U);
  for (std::size_t i = 1; i < packets.size(); ++i) EXPECT_GT(packets[i], packets[i - 1]);
}

// Claim:  samples of counters come once an interval of virtual time, with and without a sink beside
//         them; those that stand still are left out, and what is measured is the same.
// Oracle: the measurement without samples; its sums; that sums do not fall.
TEST(Twin, SamplesItsCountersForTheObservation) {
  auto twin = create("twin:cx6?threads=1&stop=duration").value();
  target::MeasureRequest request;
  request.configuration = parse_configuration("qp_count=4,counter_poll_ms=3").value();
  request.duration = std::chrono::milliseconds(10);
  const Observation alone = target::measure_one(*twin, request).value();
  EXPECT_TRUE(alone.counter_samples.empty());
  request.sample_every = std::chrono::milliseconds(1);
  for (const bool watched : {false, true}) {
    int snapshots = 0;
    if (watched) twin->set_counter_sink([&](const CounterSnapshot&) { ++snapshots; });
    const Observation sampled = target::measure_one(*twin, request).value();
    EXPECT_EQ(snapshots, watched ? 3 : 0);
    EXPECT_EQ(sampled.measures, alone.measures);
    EXPECT_EQ(sampled.counters_after, alone.counters_after);
    const auto& packets = sampled.counter_samples.at("tx_vport_rdma_unicast_packets");
    ASSERT_GE(packets.size(), 9U);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_EQ(packets[i].time_ns, static_cast<std::int64_t>(i + 1) * 1'000'000);
      if (i > 0) EXPECT_GT(packets[i].value, packets[i - 1].value);
    }
    EXPECT_LE(packets.back().value, sampled.counters_after.at("tx_vport_rdma_unicast_packets"));
    for (const auto& [name, samples] : sampled.counter_samples) {
      EXPECT_NE(samples.front().value, samples.back().value) << name;
    }
  }
}

// Claim:  who watches counters changes nothing of what is measured, and sees those of a measurement
//         that is over before the first period.
// Oracle: the same measurement without a sink.
TEST(Twin, MeasuresTheSameWhenItIsWatched) {
  auto twin = create("twin:cx6").value();
  target::MeasureRequest request;
  request.configuration = parse_configuration("qp_count=4,counter_poll_ms=1000").value();
  const Observation alone = target::measure_one(*twin, request).value();
  std::size_t seen = 0;
  twin->set_counter_sink([&](const CounterSnapshot& snapshot) { seen += snapshot.counters.size(); });
  const Observation watched = target::measure_one(*twin, request).value();
  EXPECT_GT(seen, 0U);
  EXPECT_EQ(alone.measures, watched.measures);
  EXPECT_EQ(alone.counters_after, watched.counters_after);
}

}  // namespace
}  // namespace greynic::twin
