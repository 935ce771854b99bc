#include "host_line.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <fstream>

#include "greynic/daemon/log.h"
#include "greynic/trace/monotonic.h"
#include "wire.h"

namespace greynic::trace_hosts {
namespace {

/// The boot of a kernel: who has the same runs on it, and reads the same clock.
std::string our_machine() {
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, id);
  return id;
}

/// Labels of a host's points, and the host before them.
void put_host(const std::string& host, trace::Point& point) {
  if (!point.label.empty()) point.label = host + ":" + point.label;
}

}  // namespace

Result<HostLine> HostLine::open(const HostSpec& host, const std::string& certificates) {
  auto client = agent::LabClient::open(host.agent, certificates);
  if (!client) return pass_on(client);
  HostLine made;
  made.host_ = host;
  made.client_ = std::move(*client);
  made.stub_ = wire::TraceAgent::NewStub(made.client_->channel());
  return made;
}

void HostLine::give(std::chrono::milliseconds patience) {
  deadline_ = std::chrono::system_clock::now() + patience;
}

template <typename Request, typename Reply>
Result<void> HostLine::call(grpc::Status (wire::TraceAgent::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&, Reply*),
                            const Request& request, Reply& reply) {
  grpc::ClientContext context;
  context.set_deadline(deadline_);
  const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
  const std::string who = fmt::format("host {} at {}", host_.name, host_.agent);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return fail(ErrorCode::kIo, who + " does not answer in time");
  }
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
      status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return fail(ErrorCode::kIo, fmt::format("{} turns us away: {}", who,
                                            daemon::plain(status.error_message(), 300)));
  }
  if (!status.ok()) {
    return fail(ErrorCode::kIo,
                fmt::format("{} is not reached: {}", who,
                            agent::why_unreached(status.error_message(), "greynic trace agent")));
  }
  if (auto trusted = client_->trust(context); !trusted) return trusted;
  return {};
}

Result<std::map<std::uint32_t, std::string>> HostLine::set_rules(const std::string& text,
                                                                 const std::string& source) {
  wire::SetRulesRequest request;
  request.set_protocol(kProtocol);
  request.set_text(text);
  request.set_source(source);
  wire::SetRulesReply reply;
  if (auto done = call(&wire::TraceAgent::Stub::SetRules, request, reply); !done) {
    return pass_on(done);
  }
  if (reply.has_fault()) {
    return trace_hosts::read(reply.fault()).while_doing("host " + host_.name);
  }
  std::map<std::uint32_t, std::string> left_out;
  for (int i = 0; i < std::min(reply.left_out_size(), reply.left_out_why_size()); ++i) {
    left_out[reply.left_out(i)] = daemon::plain(reply.left_out_why(i), 300);
  }
  return left_out;
}

Result<void> HostLine::compare_clocks(int trips) {
  for (int i = 0; i < trips && !same_clock_; ++i) {
    wire::ClockReply reply;
    const trace::CountedTime before = trace::counted_now();
    if (auto done = call(&wire::TraceAgent::Stub::Clock, wire::ClockRequest(), reply); !done) {
      return done;
    }
    const trace::CountedTime after = trace::counted_now();
    const std::int64_t there = read_time(reply.now_ns());
    clock_.add({.sent_ns = before.ns, .received_ns = after.ns, .there_ns = there});
    counter_.add(before, {there, reply.count_before(), reply.count_behind()}, after);
  }
  return {};
}

Result<HostLine::News> HostLine::read() {
  wire::ReadRequest request;
  request.set_behind(behind_);
  wire::ReadReply reply;
  if (auto done = call(&wire::TraceAgent::Stub::Read, request, reply); !done) return pass_on(done);
  if (reply.has_fault()) {
    return trace_hosts::read(reply.fault()).while_doing("host " + host_.name);
  }
  News news;
  if (session_ != reply.session()) {
    news.anew = session_ != 0;
    session_ = reply.session();
    behind_ = 0;
    if (news.anew) return news;
  }
  same_clock_ = !reply.machine().empty() && reply.machine() == our_machine();
  report_ = read_report(reply);
  for (trace::Hop& hop : report_.hops) {
    put_host(host_.name, hop.from);
    put_host(host_.name, hop.to);
  }
  for (trace::Begin& begin : report_.begins) put_host(host_.name, begin.point);
  if (behind_ != 0)
    news.forgotten = reply.first_number() - std::min(reply.first_number(), behind_ + 1);
  for (const wire::Event& event : reply.events()) {
    news.events.push_back(trace_hosts::read(event));
    put_host(host_.name, news.events.back().point);
  }
  behind_ = reply.first_number() + news.events.size() - 1;
  return news;
}

std::string HostLine::clock() const {
  return same_clock_        ? "ours: the same kernel"
         : counter_.shown() ? "compared by a shared time stamp counter"
                            : "compared by round trips";
}

std::pair<std::int64_t, double> HostLine::ours(std::int64_t theirs_ns) const {
  if (same_clock_) return {theirs_ns, 0};
  const std::int64_t now = trace::monotonic_ns();
  const auto distance = counter_.shown() ? counter_.at(now) : clock_.at(now);
  if (!distance) return {theirs_ns, INFINITY};
  return {theirs_ns - std::llround(distance->ns), distance->error_ns};
}

}  // namespace greynic::trace_hosts
