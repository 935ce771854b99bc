#include "wire.h"

#include <algorithm>
#include <cmath>

#include "greynic/daemon/log.h"

namespace greynic::trace_hosts {
namespace {

constexpr std::size_t kLongestText = 300;
constexpr std::uint32_t kMostBucket = 1024;
constexpr std::int64_t kLatestNs = 1'000'000'000'000'000'000;  // no machine is up for 30 years
constexpr int kLastErrorCode = static_cast<int>(ErrorCode::kInternal);

std::string plain(const std::string& text) { return daemon::plain(text, kLongestText); }

double number(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

void write(const trace::Point& point, wire::Point& out) {
  out.set_label(point.label);
  out.set_queued(point.queued);
}

trace::Point read(const wire::Point& in) { return {plain(in.label()), in.queued()}; }

template <typename Map>
std::map<std::string, std::uint64_t> counts_of(const Map& in) {
  std::map<std::string, std::uint64_t> made;
  for (const auto& [name, count] : in) made[plain(name)] += count;
  return made;
}

trace::Hop read(const wire::Hop& in) {
  trace::Hop hop{.flow = {plain(in.flow()), plain(in.rule())},
                 .from = read(in.from()),
                 .to = read(in.to()),
                 .packets = in.packets(),
                 .segments = in.segments(),
                 .timed = in.timed(),
                 .lost = in.lost(),
                 .lost_reasons = counts_of(in.lost_reasons()),
                 .lost_places = counts_of(in.lost_places()),
                 .sum_ns = number(in.sum_ns()),
                 .max_ns = in.max_ns()};
  for (int i = 0; i < std::min(in.buckets_size(), in.counts_size()); ++i) {
    if (in.buckets(i) < kMostBucket) hop.delays.add(in.buckets(i), in.counts(i));
  }
  return hop;
}

}  // namespace

void write(const Error& error, wire::Fault& out) {
  out.set_code(static_cast<int>(error.code));
  out.set_message(error.message);
}

Error read(const wire::Fault& in) {
  const bool known = in.code() >= 0 && in.code() <= kLastErrorCode;
  return {known ? static_cast<ErrorCode>(in.code()) : ErrorCode::kInternal, plain(in.message())};
}

void write(const trace::Report& report, wire::ReadReply& out) {
  for (const trace::Hop& hop : report.hops) {
    wire::Hop& made = *out.add_hops();
    made.set_flow(hop.flow.text);
    made.set_rule(hop.flow.rule);
    write(hop.from, *made.mutable_from());
    write(hop.to, *made.mutable_to());
    made.set_packets(hop.packets);
    made.set_segments(hop.segments);
    made.set_timed(hop.timed);
    made.set_lost(hop.lost);
    for (const auto& [name, count] : hop.lost_reasons) (*made.mutable_lost_reasons())[name] = count;
    for (const auto& [name, count] : hop.lost_places) (*made.mutable_lost_places())[name] = count;
    made.set_sum_ns(hop.sum_ns);
    made.set_max_ns(hop.max_ns);
    for (const auto& [bucket, count] : hop.delays.buckets()) {
      made.add_buckets(static_cast<std::uint32_t>(bucket));
      made.add_counts(count);
    }
  }
  for (const trace::Begin& begin : report.begins) {
    wire::Begin& made = *out.add_begins();
    made.set_flow(begin.flow.text);
    made.set_rule(begin.flow.rule);
    write(begin.point, *made.mutable_point());
    made.set_packets(begin.packets);
  }
  for (const trace::Usage& usage : report.containers) {
    wire::Container& made = *out.add_containers();
    made.set_container(usage.container);
    made.set_source(usage.source);
    made.set_cpu_seconds(usage.cpu_seconds);
    if (usage.throttled_seconds) made.set_throttled_seconds(*usage.throttled_seconds);
    if (usage.memory_bytes) made.set_memory_bytes(*usage.memory_bytes);
  }
  const trace::Summary& summary = report.summary;
  wire::Summary& made = *out.mutable_summary();
  made.set_events(summary.events);
  made.set_events_lost(summary.events_lost);
  for (const auto& [name, count] : summary.lost_why) (*made.mutable_lost_why())[name] = count;
  made.set_journeys(summary.journeys);
  made.set_inferred(summary.inferred);
  made.set_folded(summary.folded);
  made.set_cpu_share(summary.cpu_share);
  made.set_event_ns(summary.event_ns.value_or(0));
  made.set_one_in(summary.one_in);
  for (const std::string& hook : summary.hooks) made.add_hooks(hook);
  made.set_engine(summary.engine);
  for (const auto& [why, count] : summary.left_out) (*made.mutable_left_out())[why] = count;
}

trace::Report read_report(const wire::ReadReply& in) {
  trace::Report made;
  for (const wire::Hop& hop : in.hops()) made.hops.push_back(read(hop));
  for (const wire::Begin& begin : in.begins()) {
    made.begins.push_back({.flow = {plain(begin.flow()), plain(begin.rule())},
                           .point = read(begin.point()),
                           .packets = begin.packets()});
  }
  for (const wire::Container& in_container : in.containers()) {
    trace::Usage usage{.container = plain(in_container.container()),
                       .source = plain(in_container.source()),
                       .cpu_seconds = number(in_container.cpu_seconds())};
    if (in_container.has_throttled_seconds()) {
      usage.throttled_seconds = number(in_container.throttled_seconds());
    }
    if (in_container.has_memory_bytes()) usage.memory_bytes = in_container.memory_bytes();
    made.containers.push_back(std::move(usage));
  }
  const wire::Summary& summary = in.summary();
  made.summary.events = summary.events();
  made.summary.events_lost = summary.events_lost();
  made.summary.lost_why = counts_of(summary.lost_why());
  made.summary.journeys = summary.journeys();
  made.summary.inferred = summary.inferred();
  made.summary.folded = summary.folded();
  made.summary.cpu_share = number(summary.cpu_share());
  if (number(summary.event_ns()) > 0) made.summary.event_ns = summary.event_ns();
  made.summary.one_in = std::max(1U, summary.one_in());
  for (const std::string& hook : summary.hooks()) made.summary.hooks.push_back(plain(hook));
  made.summary.engine = plain(summary.engine());
  made.summary.left_out = counts_of(summary.left_out());
  return made;
}

std::int64_t read_time(std::int64_t ns) { return std::clamp<std::int64_t>(ns, 0, kLatestNs); }

void write(const trace::JourneyEvent& event, wire::Event& out) {
  out.set_journey(event.journey);
  out.set_time_ns(event.time_ns);
  out.set_identity(event.identity);
  out.set_flow(event.flow.text);
  out.set_rule(event.flow.rule);
  write(event.point, *out.mutable_point());
  out.set_lost(event.lost);
  out.set_reason(event.reason);
  out.set_place(event.place);
  out.set_bytes(event.bytes);
}

trace::JourneyEvent read(const wire::Event& in) {
  return {.journey = in.journey(),
          .time_ns = read_time(in.time_ns()),
          .identity = in.identity(),
          .flow = {plain(in.flow()), plain(in.rule())},
          .point = read(in.point()),
          .lost = in.lost(),
          .reason = plain(in.reason()),
          .place = plain(in.place()),
          .bytes = in.bytes()};
}

}  // namespace greynic::trace_hosts
