// Runs inside the small machine, on Soft-RoCE: rxe0 talks to rxe1 over a veth pair. What needs no
// counters runs in a lab too, on the device of the twin.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "devices.h"
#include "greynic/target/target.h"
#include "greynic/verbs/counters.h"
#include "greynic/verbs/faults.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::verbs {
namespace {

std::unique_ptr<target::Target> open(const std::string& options) {
  const auto specs =
      target::parse_specs("verbs:" + near_device() + "?peer_device=" + far_device() + options);
  auto target = verbs_kind(nullptr).open(specs->front());
  EXPECT_TRUE(target) << (target ? "" : target.error().message);
  return target ? std::move(*target) : nullptr;
}

Observation measure(const std::string& options, const std::string& configuration,
                    std::chrono::milliseconds duration = std::chrono::milliseconds(300)) {
  const auto target = open(options);
  const auto parsed = parse_configuration(configuration);
  EXPECT_TRUE(parsed) << configuration;
  return measure_patiently(*target, {.configuration = *parsed, .duration = duration, .seed = 7});
}

struct Case {
  const char* transport;
  const char* operation;
};

constexpr Case kCases[] = {
    {"RC", "SEND"}, {"RC", "SEND_WITH_IMM"}, {"RC", "WRITE"}, {"RC", "WRITE_WITH_IMM"},
    {"RC", "READ"}, {"RC", "CAS"},           {"RC", "FADD"},  {"RC", "SEND_WITH_INV"},
    {"UC", "SEND"}, {"UC", "SEND_WITH_IMM"}, {"UC", "WRITE"}, {"UC", "WRITE_WITH_IMM"},
    {"UD", "SEND"}, {"UD", "SEND_WITH_IMM"},
};

// Claim:  every operation of every transport carries its payload unchanged, by both ways of
//         posting.
// Oracle: the pattern of seed, lane and slot, checked where the bytes arrive.
// Method: several QPs, batches, moderated completions, two SGEs, odd sizes.
TEST(VerbsTraffic, CarriesEveryPayloadUnchanged) {
  for (const Case& c : kCases) {
    for (const char* posting : {"plain", "extended"}) {
      const Observation seen = measure(
          fmt::format("&validate=true&posting={}", posting),
          fmt::format("transport={},operation={},qp_count=3,qps_per_cq=2,send_queue_depth=16,"
                      "receive_queue_depth=32,message_bytes=777,sge_count=2,signal_every=4,"
                      "post_batch=2,mr_count=2,mr_bytes=262144",
                      c.transport, c.operation));
      EXPECT_EQ(seen.outcome, Outcome::kMeasured)
          << c.transport << " " << c.operation << " " << posting << ": " << seen.reason;
      EXPECT_GT(seen.value(measure::kMessageRate).value_or(0), 0);
    }
  }
}

// Claim:  inline sends, shared receive queues, events, threads and both directions work as well.
TEST(VerbsTraffic, HonoursTheOtherFactors) {
  for (const char* extra :
       {"inline_bytes=64", "shared_receive_queue=true", "completion_mode=events",
        "completion_mode=hybrid", "thread_count=2", "direction=bidirectional", "mr_count=8",
        "offered_rate=500", "mtu_bytes=4096", "receive_post_batch=16",
        "receive_post_batch=64,shared_receive_queue=true,thread_count=2",
        "receive_post_batch=64,direction=bidirectional"}) {
    const Observation seen =
        measure("&validate=true", std::string("operation=SEND,qp_count=2,message_bytes=48,"
                                              "send_queue_depth=8,receive_queue_depth=64,") +
                                      extra);
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << extra << ": " << seen.reason;
  }
}

// Claim:  loopback stays on the device whoever the peer is; without it the peer's device counts.
// Oracle: the packet counter of the other device.
TEST(VerbsTraffic, LoopsBackOnItsOwnDevice) {
  for (const bool loopback : {true, false}) {
    const double before = read_counters("rxe1", 1).at("rdma.packets_received");
    const Observation seen =
        measure("&validate=true", std::string("operation=WRITE,message_bytes=500,direction=") +
                                      (loopback ? "loopback" : "unidirectional"));
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
    EXPECT_EQ(read_counters("rxe1", 1).at("rdma.packets_received") == before, loopback);
    EXPECT_EQ(seen.environment.at("peer"),
              loopback ? "rxe0 in this process" : "rxe1 in this process");
  }
}

// Claim:  several peers at once, a receive queue for each CQ, and lists at a rate carry payloads
//         unchanged too.
TEST(VerbsTraffic, ServesSeveralPeers) {
  for (const char* operation : {"SEND", "WRITE_WITH_IMM", "READ", "SEND_WITH_INV"}) {
    const Observation seen =
        measure(",rxe0,rxe1&validate=true&srq=per_cq",
                fmt::format("operation={},qp_count=7,message_bytes=300,send_queue_depth=16,"
                            "receive_queue_depth=32,qps_per_cq=2,post_batch=4,signal_every=2,"
                            "shared_receive_queue={}",
                            operation, operation != std::string_view("SEND_WITH_INV")));
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << operation << ": " << seen.reason;
    EXPECT_TRUE(seen.counters_after.contains("peer3.hw.sent_pkts")) << operation;
  }
  const Observation many =
      measure("&validate=true&srq=per_cq",
              "operation=SEND,qp_count=10,qps_per_cq=3,message_bytes=300,send_queue_depth=16,"
              "receive_queue_depth=32,shared_receive_queue=true,direction=bidirectional,"
              "offered_rate=400,post_batch=4");
  EXPECT_EQ(many.outcome, Outcome::kMeasured) << many.reason;
}

// Claim:  the mixes that a campaign may ask for arrive unchanged, over every operation that has
//         them.
// Oracle: the payload's pattern; bandwidth over message rate is the mean of the mix.
TEST(VerbsTraffic, SendsTheMixesOfCampaigns) {
  for (const char* operation : {"SEND", "WRITE", "READ", "WRITE_WITH_IMM"}) {
    for (const auto& [mix, mean] : {std::pair{"mixed_sge", 128 + 65536 + 1024.0},
                                    {"mixed_requests", (65536 + 3 * 128) / 4.0}}) {
      const Observation seen =
          measure("&validate=true", fmt::format("operation={},message_mix={},send_queue_depth=16,"
                                                "receive_queue_depth=16,receive_post_batch=4",
                                                operation, mix));
      ASSERT_EQ(seen.outcome, Outcome::kMeasured) << operation << " " << mix << seen.reason;
      const double bits = *seen.value(measure::kBandwidth) * 1e9;
      EXPECT_NEAR(bits / (*seen.value(measure::kMessageRate) * 1e6), 8 * mean, 1e-6);
    }
  }
  const Observation datagrams = measure("", "operation=SEND,transport=UD,message_mix=mixed_sge");
  EXPECT_EQ(datagrams.outcome, Outcome::kRefused) << datagrams.reason;
}

// Claim:  sharing of doorbells that Soft-RoCE does not have is refused by name, with the reason.
TEST(VerbsTraffic, RefusesDoorbellsThatAreNotThere) {
  const Observation own = measure("", "operation=WRITE,doorbell_sharing=dedicated,thread_count=1");
  EXPECT_EQ(own.outcome, Outcome::kRefused);
  EXPECT_NE(own.reason.find("doorbell_sharing dedicated"), std::string::npos) << own.reason;
  const Observation shared = measure("", "operation=WRITE,doorbell_sharing=shared_qp");
  EXPECT_EQ(shared.outcome, Outcome::kRefused);
  EXPECT_NE(shared.reason.find("one thread"), std::string::npos) << shared.reason;
  EXPECT_EQ(open("")->info().categories.at("doorbell_sharing"),
            std::vector<std::string>{"default"});
}

// Claim:  a mix of sizes is sent as written.
// Oracle: bandwidth over message rate is the mean of the mix.
TEST(VerbsTraffic, SendsAMixOfSizes) {
  const Observation seen = measure("&validate=true&sizes=64*3,1000", "operation=SEND");
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_NEAR(*seen.value(measure::kBandwidth) * 1e9 / (*seen.value(measure::kMessageRate) * 1e6),
              8 * (3 * 64 + 1000) / 4.0, 1e-6);
}

// Claim:  latency mode gives a full histogram for every operation.
TEST(VerbsTraffic, MeasuresLatencyOfEveryOperation) {
  for (const Case& c : kCases) {
    const Observation seen =
        measure("&mode=latency&validate=true",
                fmt::format("transport={},operation={},message_bytes=64,qp_count=2", c.transport,
                            c.operation));
    EXPECT_EQ(seen.outcome, Outcome::kMeasured)
        << c.transport << " " << c.operation << ": " << seen.reason;
    EXPECT_GT(seen.latency.count(), 0U) << c.transport << " " << c.operation;
    EXPECT_GT(seen.value(measure::kLatencyP50).value_or(0), 1.0);
  }
}

// Claim:  pings that end a memory window are measured with windows to spare, bound while an answer
//         travels, and with one, bound before it is posted.
// Oracle: each message ends the window whose turn it is, by the key that its receiver is told;
//         another key fails the run.
TEST(VerbsTraffic, PingsEndTheWindowWhoseTurnItIs) {
  for (const int depth : {16, 2, 1}) {
    const Observation seen = measure(
        "&mode=latency&validate=true",
        fmt::format("operation=SEND_WITH_INV,message_bytes=64,qp_count=2,send_queue_depth={},"
                    "receive_queue_depth=16",
                    depth));
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << depth << ": " << seen.reason;
    EXPECT_GT(seen.latency.count(), 0U) << depth;
  }
}

// Claim:  in event modes pings sleep for completions, of answers as of their own READs.
TEST(VerbsTraffic, MeasuresLatencyAsleep) {
  for (const char* mode : {"events", "hybrid"}) {
    for (const Case& c : {Case{"RC", "SEND"}, Case{"UD", "SEND"}, Case{"RC", "READ"},
                          Case{"RC", "SEND_WITH_INV"}}) {
      const Observation seen =
          measure("&mode=latency&validate=true",
                  fmt::format("transport={},operation={},message_bytes=64,qp_count=3,qps_per_cq=2,"
                              "completion_mode={}",
                              c.transport, c.operation, mode));
      EXPECT_EQ(seen.outcome, Outcome::kMeasured)
          << c.transport << " " << c.operation << " " << mode << ": " << seen.reason;
      EXPECT_GT(seen.latency.count(), 0U) << c.transport << " " << c.operation << " " << mode;
    }
  }
}

// Claim:  an offered rate is kept.
// Oracle: the rate itself.
TEST(VerbsTraffic, FollowsAnOfferedRate) {
  const Observation seen = measure("", "operation=WRITE,message_bytes=64,offered_rate=400",
                                   std::chrono::milliseconds(1000));
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_NEAR(*seen.value(measure::kMessageRate) * 1e6, 400, 20);
}

// Claim:  each wrong request ends with the status that the specification asks for, but for the
//         three departures of Soft-RoCE that are listed as facts, and these are departures indeed.
// Oracle: the fault table, written from the specification.
TEST(VerbsFaults, EndWithTheStatusOfTheBook) {
  std::size_t departures = 0;
  for (const FaultRow& row : fault_table()) {
    const Observation seen = measure("", fmt::format("fault={},operation={},transport={}", row.name,
                                                     row.operation, row.transport));
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << row.name << ": " << seen.reason;
    EXPECT_EQ(seen.value("status_as_expected_share"), 1.0)
        << row.name << " " << row.operation << ": expected "
        << seen.environment.at("expected_status") << ", observed "
        << seen.environment.at("observed_status");
    if (seen.value("status_by_the_book_share") != 1.0) ++departures;
  }
  EXPECT_EQ(departures, known_departures().size());
}

// Claim:  what verbs or the device cannot do is refused by name, not tried.
TEST(VerbsTraffic, RefusesTheImpossibleByName) {
  const auto refused = [](const std::string& configuration, const std::string& word) {
    const Observation seen = measure("", configuration);
    EXPECT_EQ(seen.outcome, Outcome::kRefused) << configuration;
    EXPECT_NE(seen.reason.find(word), std::string::npos) << seen.reason;
  };
  refused("transport=UC,operation=READ", "not defined on UC");
  refused("transport=UD,operation=WRITE", "not defined on UD");
  refused("transport=UD,operation=SEND,message_bytes=8192", "does not fit the MTU");
  refused("transport=XRC,operation=SEND", "XRC");
  refused("mtu_bytes=9000", "9000");
  refused("message_bytes=16777216,mr_bytes=33554432", "port's limit");
  refused("qp_count=64,qps_per_cq=64,send_queue_depth=1024,message_bytes=64", "on one CQ");
  refused("mr_count=4096", "available");
  const Observation crowded = measure(
      "&validate=true", "operation=SEND,message_bytes=4000,mr_bytes=65536,receive_queue_depth=100");
  EXPECT_EQ(crowded.outcome, Outcome::kRefused);
  EXPECT_NE(crowded.reason.find("mr_bytes=524288"), std::string::npos) << crowded.reason;
  EXPECT_EQ(measure("&validate=true",
                    "operation=SEND,message_bytes=4000,mr_bytes=524288,"
                    "receive_queue_depth=100")
                .outcome,
            Outcome::kMeasured);
  const Observation eager = measure("&cq_moderation=16,20us", "operation=SEND");
  EXPECT_EQ(eager.outcome, Outcome::kRefused);
  EXPECT_NE(eager.reason.find("cq_moderation"), std::string::npos) << eager.reason;
  // Two families of addresses do not meet: rxe0 has its link-local GID beside that of IPv4.
  const Observation strange = measure("&gid=ipv6", "operation=SEND");
  EXPECT_EQ(strange.outcome, Outcome::kRefused);
  EXPECT_NE(strange.reason.find("different families"), std::string::npos) << strange.reason;
}

// Claim:  a GID that no rule finds is told when the target is opened, not at each configuration.
TEST(VerbsTraffic, ChoosesAGidBeforehand) {
  for (const auto& [rule, code] :
       {std::pair{"10.9.9.9", ErrorCode::kMissing}, {"nonsense", ErrorCode::kBadInput}}) {
    const auto specs = target::parse_specs(fmt::format("verbs:{}?gid={}", near_device(), rule));
    const auto target = verbs_kind(nullptr).open(specs->front());
    ASSERT_FALSE(target.has_value());
    EXPECT_EQ(target.error().code, code);
    EXPECT_NE(target.error().message.find(rule), std::string::npos) << target.error().message;
  }
}

// Claim:  hw_counters of sysfs and of rdma netlink agree, and count what was sent, after the run as
//         during it.
TEST(VerbsCounters, AgreeAndMove) {
  const auto netlink = netlink_counters("rxe0", 1);
  ASSERT_TRUE(netlink) << netlink.error().message;
  const auto sysfs = read_counters("rxe0", 1);
  for (const auto& [raw, value] : *netlink) {
    ASSERT_TRUE(sysfs.contains("hw." + raw)) << raw;
    EXPECT_EQ(sysfs.at("hw." + raw), value) << raw;
  }
  const Observation seen = measure("", "operation=WRITE,message_bytes=64");
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  const double sent =
      seen.counters_after.at("rdma.packets_sent") - seen.counters_before.at("rdma.packets_sent");
  EXPECT_GE(sent, *seen.value(measure::kMessageRate) * 1e6 * 0.1);
  EXPECT_TRUE(netlink_qp_counters("rxe0").has_value());
  // Soft-RoCE has no optional counters, and the kernel says so.
  const auto optional = optional_counters("rxe0", 1);
  ASSERT_TRUE(optional.has_value()) << optional.error().message;
  EXPECT_TRUE(optional->empty());
  // Each message of 64 bytes is one packet of the requester. The band is wide, for a busy host
  // stops the machine between two readings.
  ASSERT_TRUE(seen.measures.contains("rdma.packets_sent_per_second"));
  const double share =
      *seen.value("rdma.packets_sent_per_second") / (*seen.value(measure::kMessageRate) * 1e6);
  EXPECT_GT(share, 0.2);
  EXPECT_LT(share, 5.0);
  EXPECT_TRUE(seen.measures.at("rdma.packets_sent_per_second").standard_error.has_value());
}

// Claim:  counters of both ends are sampled while traffic runs, and the samples are of that traffic.
TEST(VerbsCounters, AreSampledWhileTrafficRuns) {
  const auto target = open("");
  const Observation seen = measure_patiently(
      *target, {.configuration = *parse_configuration("operation=WRITE,message_bytes=64"),
                .duration = std::chrono::seconds(1),
                .seed = 7,
                .sample_every = std::chrono::milliseconds(10)});
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  for (const char* name : {"rdma.packets_sent", "peer.rdma.packets_received"}) {
    ASSERT_TRUE(seen.counter_samples.contains(name)) << name;
    const auto& samples = seen.counter_samples.at(name);
    ASSERT_GE(samples.size(), 2U);
    for (std::size_t i = 1; i < samples.size(); ++i) {
      EXPECT_GT(samples[i].time_ns, samples[i - 1].time_ns);
      EXPECT_GE(samples[i].value, samples[i - 1].value);
    }
    EXPECT_GE(samples.front().value, seen.counters_before.at(name));
    EXPECT_LE(samples.back().value, seen.counters_after.at(name));
    EXPECT_GT(samples.back().value, samples.front().value);
  }
}

/// Gives back twice what was published: who reads elsewhere is found out.
class DoublingArena final : public target::CounterArena {
 public:
  void publish(const target::CounterReading& reading) override { last_ = reading; }
  target::CounterReading look() override {
    target::CounterReading seen = last_;
    for (auto& [name, value] : seen.counters) value *= 2;
    return seen;
  }

 private:
  target::CounterReading last_;
};

// Claim:  samples of a run are what the arena holds, not what the kernel told its helper.
TEST(VerbsCounters, AreReadOutOfTheArena) {
  const auto specs = target::parse_specs("verbs:" + near_device() + "?peer_device=" + far_device());
  auto target = verbs_kind(nullptr, [](const std::string&) {
                  return std::make_unique<DoublingArena>();
                }).open(specs->front());
  ASSERT_TRUE(target) << target.error().message;
  const Observation seen = measure_patiently(
      **target, {.configuration = *parse_configuration("operation=WRITE,message_bytes=64"),
                 .duration = std::chrono::seconds(1),
                 .seed = 7,
                 .sample_every = std::chrono::milliseconds(5)});
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  const auto& sent = seen.counter_samples.at("rdma.packets_sent");
  ASSERT_GE(sent.size(), 2U);
  EXPECT_GE(sent.front().value, 2 * seen.counters_before.at("rdma.packets_sent"));
  EXPECT_GT(sent.back().value, seen.counters_after.at("rdma.packets_sent"));
  EXPECT_LE(sent.back().value, 2 * seen.counters_after.at("rdma.packets_sent"));
}

}  // namespace
}  // namespace greynic::verbs
