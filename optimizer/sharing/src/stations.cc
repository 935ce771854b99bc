#include "stations.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace greynic::sharing {
namespace {

constexpr std::uint64_t kSmallBytes = 64, kFetchedBytes = 1024, kLargeBytes = 65536;
/// So many QPs keep an RNIC busy and are known to each of them.
constexpr double kFewQps = 64;
constexpr double kManyThreads = 16, kDeep = 16;
constexpr double kPacketBytes = 1024;
constexpr std::uint32_t kPacketsOfTurn = 4;

Result<double> measure_of(const Result<model::Prediction>& prediction, const char* name) {
  if (!prediction) return pass_on(prediction);
  const auto found = prediction->measures.find(name);
  return found == prediction->measures.end() ? 0.0 : found->second.value;
}

/// Time from message to message.
Result<double> pace_ns(const model::Model& model, const Demand& demand, double qps, double threads,
                       bool own_doorbells = true) {
  const auto gbps =
      measure_of(ask(model, demand, qps, kDeep, threads, own_doorbells), "bandwidth_gbps");
  if (!gbps) return gbps;
  if (!(*gbps > 0)) {
    return fail(ErrorCode::kBadInput,
                "the model predicts no bandwidth; fit one to a run that measured it");
  }
  return static_cast<double>(demand.message_bytes) * 8 / *gbps;
}

/// Share of misses when `count` contexts are used in turn and random ones make place.
double misses(double count, double entries) {
  double hit = 0;
  for (int i = 0; i < 200; ++i) hit = std::exp(-(1 - hit) * count / entries);
  return 1 - hit;
}

}  // namespace

Result<model::Prediction> ask(const model::Model& model, const Demand& demand, double qps,
                              double depth, double threads, bool own_doorbells) {
  Configuration configuration;
  configuration.set("operation", std::string(to_string(demand.operation)));
  configuration.set("message_bytes", static_cast<double>(demand.message_bytes));
  configuration.set("qp_count", qps);
  configuration.set("send_queue_depth", depth);
  configuration.set("thread_count", threads);
  configuration.set("doorbell_sharing", std::string(own_doorbells ? "dedicated" : "default"));
  return model.predict(configuration);
}

/// Small WRITEs show the fetches bare: one a message, and nothing else that takes long. Far beyond
/// the wall each is a miss; where the pace is half of that, half of them are.
Result<Contexts> contexts_of(const model::Model& model) {
  const Demand small{.operation = Operation::kWrite, .message_bytes = kSmallBytes};
  const auto idle = pace_ns(model, small, kFewQps, kManyThreads);
  if (!idle) return pass_on(idle);
  constexpr double kMost = 2048;
  const auto slow = pace_ns(model, small, kMost, kManyThreads);
  if (!slow) return pass_on(slow);
  constexpr double kWall = 1.5;
  if (*slow < kWall * *idle) return Contexts{};
  const double half = std::max(*slow / 2, kWall * *idle);
  double low = kFewQps, high = kMost;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    const auto pace = pace_ns(model, small, middle, kManyThreads);
    if (!pace) return pass_on(pace);
    (*pace < half ? low : high) = middle;
  }
  double least = low / 8, most = low;
  while (most - least > 0.1) {
    const double entries = (least + most) / 2;
    const bool fewer_miss = misses(low, entries) / misses(kMost, entries) < half / *slow;
    (fewer_miss ? most : least) = entries;
  }
  return Contexts{least, *slow / misses(kMost, least)};
}

namespace {

/// What the RNIC has to fetch costs a WRITE so much more than one that came with its doorbell, beside
/// what a READ takes longer too.
Result<double> request_fetch_ns(const model::Model& model) {
  double us[2][2] = {};
  for (const Operation operation : {Operation::kWrite, Operation::kRead}) {
    for (const std::uint64_t bytes : {kSmallBytes, kFetchedBytes}) {
      const Demand one{.operation = operation, .message_bytes = bytes};
      const auto latency = measure_of(ask(model, one, 1, 1, 1, false), "latency_us_p50");
      if (!latency) return latency;
      us[operation == Operation::kRead][bytes == kFetchedBytes] = *latency;
    }
  }
  return std::max(0.0, 1e3 * (us[0][1] - us[0][0] - (us[1][1] - us[1][0])));
}

}  // namespace

/// All packets of one QP pass one unit. Where it does not fill the line, it shows what a unit takes, and small
/// messages over many QPs what all units take together.
Result<Rnic> rnic_of(const model::Model& model) {
  const auto contexts = contexts_of(model);
  if (!contexts) return pass_on(contexts);
  const auto fetch_ns = request_fetch_ns(model);
  if (!fetch_ns) return pass_on(fetch_ns);
  Rnic rnic{.contexts = *contexts, .request_fetch_ns = *fetch_ns};
  const Demand small{.operation = Operation::kWrite, .message_bytes = kSmallBytes};
  const Demand large{.operation = Operation::kWrite, .message_bytes = kLargeBytes};
  const auto one = pace_ns(model, large, 1, 1), line = pace_ns(model, large, kFewQps, kManyThreads),
             all = pace_ns(model, small, kFewQps, kManyThreads);
  for (const auto* pace : {&one, &line, &all}) {
    if (!*pace) return pass_on(*pace);
  }
  constexpr double kFills = 1.05, kFewestUnits = 2, kMostUnits = 64;
  if (*one < kFills * *line) return rnic;
  rnic.packet_ns = *one * kPacketBytes / kLargeBytes;
  rnic.units = static_cast<std::uint32_t>(
      std::lround(std::clamp(rnic.packet_ns / *all, kFewestUnits, kMostUnits)));
  return rnic;
}

Result<Times> times_of(const model::Model& model, const Demand& demand) {
  const auto bytes = static_cast<double>(demand.message_bytes);
  Times times;
  times.packets = static_cast<std::uint32_t>(std::max(1.0, std::ceil(bytes / kPacketBytes)));
  times.turns = (times.packets + kPacketsOfTurn - 1) / kPacketsOfTurn;
  const auto pace_of = [&](std::uint64_t size) {
    Demand one = demand;
    one.message_bytes = size;
    return pace_ns(model, one, kFewQps, kManyThreads);
  };
  const auto pace = pace_of(demand.message_bytes), small = pace_of(kSmallBytes),
             large = pace_of(kLargeBytes);
  for (const auto* one : {&pace, &small, &large}) {
    if (!*one) return pass_on(*one);
  }
  // Long messages keep the wire busy, small ones the units.
  constexpr double kHeaderBytes = 82;
  const double byte_ns = *large / kLargeBytes / (1 + kHeaderBytes / kPacketBytes);
  times.header_ns = kHeaderBytes * byte_ns;
  times.wire_ns = std::min(*pace, bytes * byte_ns + times.packets * times.header_ns);
  times.unit_ns = std::min(*small * times.packets, *pace);
  // A WRITE and word of it pass what a READ and its payload pass, the other way round. A law says the whole of a
  // READ's time, and half of a ping-pong of WRITEs.
  Demand read = demand;
  read.operation = Operation::kRead;
  const auto trip_us = measure_of(ask(model, read, 1, 1, 1, false), "latency_us_p50");
  if (!trip_us) return pass_on(trip_us);
  times.trip_ns = std::max(0.0, 1e3 * *trip_us - times.wire_ns);
  return times;
}

Result<double> posting_ns(const model::Model& model, Operation operation, double qps,
                          double threads, bool own_doorbells) {
  const Demand small{.operation = operation, .message_bytes = kSmallBytes};
  const auto pace =
      pace_ns(model, small, std::clamp(qps, threads, kFewQps), threads, own_doorbells);
  const auto least = pace_ns(model, small, kFewQps, kManyThreads);
  const auto alone = pace_ns(model, small, std::min(qps, kFewQps), 1);
  for (const auto* one : {&pace, &least, &alone}) {
    if (!*one) return pass_on(*one);
  }
  // Where the RNIC takes no more, threads may wait for it: then a thread takes what it takes alone.
  constexpr double kAtItsEnd = 1.1;
  return *pace < kAtItsEnd * *least ? std::min(*alone, *pace * threads) : *pace * threads;
}

}  // namespace greynic::sharing
