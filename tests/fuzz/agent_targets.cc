/// What the two ends of a run on different hosts say to each other.

#include <cmath>
#include <sstream>

#include "fuzz.h"
#include "greynic/core/text.h"
#include "wire_messages.h"
#ifdef GREYNIC_FUZZ_TRACE_HOSTS
#include "greynic/files/json_file.h"
#include "greynic/trace/clock.h"
#include "join.h"
#include "wire.h"
#endif

namespace greynic::fuzz {
namespace {

namespace wire = agent::wire;

template <typename Message>
Target message(const char* name, const Message& seed) {
  return {name, {seed.SerializeAsString()}, [](std::string_view bytes) {
            Message read;
            if (!read.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
            (void)agent::read(read);
          }};
}

wire::Endpoint endpoint() {
  wire::Endpoint endpoint;
  endpoint.set_gid(std::string(16, '\1'));
  endpoint.set_psn(7);
  for (std::uint32_t i = 0; i < 3; ++i) {
    endpoint.add_qp_numbers(i);
    endpoint.add_target_addresses(i);
    endpoint.add_target_keys(i);
  }
  return endpoint;
}

wire::Plan plan() {
  wire::Plan plan;
  plan.set_qp_count(4);
  plan.set_send_depth(128);
  plan.add_sizes(65536);
  plan.set_seed(1);
  return plan;
}

wire::FinishReply reply() {
  wire::FinishReply reply;
  reply.set_received(5);
  reply.mutable_requests()->add_completed_by_lane(3);
  (*reply.mutable_counters_after())["rx"] = 1e9;
  return reply;
}

#ifdef GREYNIC_FUZZ_TRACE_HOSTS
std::string trace_seed() {
  trace::Report report;
  trace::Hop hop{.flow = {"10.0.0.1:7 > 10.0.0.2:9 tcp vni 5", "all"},
                 .from = {"a:eth0", true},
                 .to = {"b:eth0", false},
                 .packets = 5,
                 .lost_reasons = {{"NO_SOCKET", 1}},
                 .sum_ns = 700};
  hop.delays.add(40, 5);
  report.hops = {hop};
  report.begins = {{hop.flow, hop.to, 5}};
  report.summary.hooks = {"kprobe:x"};
  trace_hosts::wire::ReadReply reply;
  trace_hosts::write(report, reply);
  for (const std::uint64_t journey : {1U, 2U}) {
    trace_hosts::write({.journey = journey,
                        .time_ns = 1'000'000,
                        .identity = 9,
                        .flow = hop.flow,
                        .point = hop.from,
                        .reason = "no",
                        .bytes = 60},
                       *reply.add_events());
  }
  return reply.SerializeAsString();
}

/// What an agent of tracing answers: of two hosts that say the same.
void read_trace_reply(std::string_view bytes) {
  trace_hosts::wire::ReadReply reply;
  if (!reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  trace::Report report = trace_hosts::read_report(reply);
  trace_hosts::Matcher matcher;
  trace::ClockFit clock;
  std::size_t host = 0;
  for (const auto& sent : reply.events()) {
    const trace::JourneyEvent event = trace_hosts::read(sent);
    clock.add({.sent_ns = 1000, .received_ns = 2000, .there_ns = event.time_ns});
    matcher.add(host++ % 2, event, event.time_ns, 10);
  }
  matcher.settle(INT64_MAX);
  for (const auto& [key, between] : matcher.found()) {
    claim(std::isfinite(between.sum_ns) && between.sum_ns >= 0, "a delay is a number");
  }
  const auto distance = clock.at(3000);
  if (distance) claim(std::isfinite(distance->ns), "a distance is a number");
  for (trace::Hop& hop : trace_hosts::counted_between({report, report})) {
    report.hops.push_back(std::move(hop));
  }
  const std::string table = trace::table_text(report);
  claim(!bad_utf8(table) && table.find('\x1b') == std::string::npos, "a report can be printed");
  std::istringstream lines(trace::json_lines(report));
  for (std::string line; std::getline(lines, line);) {
    claim(files::parse_json(line, "report").has_value(), "a line of a report is JSON: " + line);
  }
}
#endif

}  // namespace

std::vector<Target> agent_targets() {
  std::vector<Target> targets = {message("agent_plan", plan()),
                                 message("agent_endpoint", endpoint()),
                                 message("agent_reply", reply())};
#ifdef GREYNIC_FUZZ_TRACE_HOSTS
  targets.push_back({"trace_reply", {trace_seed()}, &read_trace_reply});
#endif
  return targets;
}

}  // namespace greynic::fuzz
