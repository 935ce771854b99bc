#include "wire_messages.h"

#include <fmt/core.h>

#include <algorithm>

#include "greynic/daemon/log.h"

namespace greynic::agent {
namespace {

constexpr std::size_t kLongestText = 2000;
constexpr std::size_t kLongestName = 128;

/// Reads enumerators and remembers the first field that holds none.
struct Choices {
  std::string bad;
  template <typename Enum>
  Enum one(const char* name, std::uint32_t value, Enum last) {
    const auto most = static_cast<std::uint32_t>(last);
    if (value > most && bad.empty()) bad = fmt::format("{} {} is not known", name, value);
    return static_cast<Enum>(std::min(value, most));
  }
  std::uint16_t small(const char* name, std::uint32_t value) {
    if (value > UINT16_MAX && bad.empty()) bad = fmt::format("{} {} is too large", name, value);
    return static_cast<std::uint16_t>(value);
  }
};

template <typename To, typename From>
void copy(const From& from, To& to) {
  to.Assign(from.begin(), from.end());
}

void write(const std::optional<verbs::Failure>& failure, wire::Failure* out) {
  if (!failure) return;
  out->set_outcome(static_cast<std::uint32_t>(failure->outcome));
  out->set_reason(failure->reason);
}

std::optional<verbs::Failure> read(const wire::Failure& in) {
  if (in.reason().empty()) return std::nullopt;
  Choices choices;
  auto outcome = choices.one("outcome", in.outcome(), Outcome::kTooShort);
  // What failed was not measured, whoever says so.
  if (outcome == Outcome::kMeasured || outcome == Outcome::kNotRun) outcome = Outcome::kFailed;
  return verbs::Failure{outcome, daemon::plain(in.reason(), kLongestText)};
}

std::map<std::string, double> read(const google::protobuf::Map<std::string, double>& in) {
  std::map<std::string, double> counters;
  for (const auto& [name, value] : in) counters[daemon::plain(name, kLongestName)] = value;
  return counters;
}

}  // namespace

void write(const verbs::TrafficPlan& plan, wire::Plan& out) {
  out.set_transport(static_cast<std::uint32_t>(plan.transport));
  out.set_operation(static_cast<std::uint32_t>(plan.operation));
  out.set_direction(static_cast<std::uint32_t>(plan.direction));
  out.set_completion(static_cast<std::uint32_t>(plan.completion));
  out.set_mode(static_cast<std::uint32_t>(plan.mode));
  out.set_fault(static_cast<std::uint32_t>(plan.fault));
  out.set_qp_count(plan.qp_count);
  out.set_qps_per_cq(plan.qps_per_cq);
  out.set_send_depth(plan.send_depth);
  out.set_receive_depth(plan.receive_depth);
  out.set_shared_receive_queue(plan.shared_receive_queue);
  copy(plan.sizes, *out.mutable_sizes());
  out.set_sge_count(plan.sge_count);
  copy(plan.elements, *out.mutable_elements());
  out.set_mtu_bytes(plan.mtu_bytes);
  out.set_inline_bytes(plan.inline_bytes);
  out.set_signal_every(plan.signal_every);
  out.set_post_batch(plan.post_batch);
  out.set_receive_batch(plan.receive_batch);
  out.set_doorbell_per_thread(plan.doorbell_per_thread);
  out.set_mr_count(plan.mr_count);
  out.set_mr_bytes(plan.mr_bytes);
  out.set_thread_count(plan.thread_count);
  out.set_offered_rate(plan.offered_rate);
  out.set_validate(plan.validate);
  out.set_huge_pages(plan.huge_pages);
  out.set_extended_posting(plan.extended_posting);
  out.set_connection_manager(plan.connection_manager);
  out.set_srq_per_cq(plan.srq_per_cq);
  out.set_cq_moderation_completions(plan.cq_moderation.completions);
  out.set_cq_moderation_us(plan.cq_moderation.period_us);
  out.set_seed(plan.seed);
  out.set_stall_limit_ms(static_cast<std::uint64_t>(plan.stall_limit.count()));
}

Result<verbs::TrafficPlan> read(const wire::Plan& in) {
  verbs::TrafficPlan plan;
  Choices choices;
  plan.transport = choices.one("transport", in.transport(), Transport::kXRC);
  plan.operation = choices.one("operation", in.operation(), verbs::Opcode::kFetchAdd);
  plan.direction = choices.one("direction", in.direction(), Direction::kBidirectional);
  plan.completion = choices.one("completion", in.completion(), verbs::CompletionMode::kHybrid);
  plan.mode = choices.one("mode", in.mode(), verbs::Mode::kLatency);
  plan.fault = choices.one("fault", in.fault(), Fault::kHandleDomain);
  plan.qp_count = in.qp_count();
  plan.qps_per_cq = in.qps_per_cq();
  plan.send_depth = in.send_depth();
  plan.receive_depth = in.receive_depth();
  plan.shared_receive_queue = in.shared_receive_queue();
  plan.sizes.assign(in.sizes().begin(), in.sizes().end());
  plan.sge_count = in.sge_count();
  plan.elements.assign(in.elements().begin(), in.elements().end());
  plan.mtu_bytes = in.mtu_bytes();
  plan.inline_bytes = in.inline_bytes();
  plan.signal_every = in.signal_every();
  plan.post_batch = in.post_batch();
  plan.receive_batch = in.receive_batch();
  plan.doorbell_per_thread = in.doorbell_per_thread();
  plan.mr_count = in.mr_count();
  plan.mr_bytes = in.mr_bytes();
  plan.thread_count = in.thread_count();
  plan.offered_rate = in.offered_rate();
  plan.validate = in.validate();
  plan.huge_pages = in.huge_pages();
  plan.extended_posting = in.extended_posting();
  plan.connection_manager = in.connection_manager();
  plan.srq_per_cq = in.srq_per_cq();
  plan.cq_moderation = {choices.small("cq_moderation", in.cq_moderation_completions()),
                        choices.small("cq_moderation", in.cq_moderation_us())};
  plan.seed = in.seed();
  plan.stall_limit =
      std::chrono::milliseconds(std::min<std::uint64_t>(in.stall_limit_ms(), 1U << 30U));
  if (!choices.bad.empty()) {
    return fail(ErrorCode::kBadInput, "the plan that was asked for: " + choices.bad);
  }
  return plan;
}

void write(const verbs::EndpointDescription& description, wire::Endpoint& out) {
  out.set_gid(description.gid.data(), description.gid.size());
  out.set_lid(description.lid);
  out.set_ethernet(description.ethernet);
  out.set_psn(description.psn);
  out.set_listens_at(description.listens_at);
  copy(description.qp_numbers, *out.mutable_qp_numbers());
  copy(description.target_addresses, *out.mutable_target_addresses());
  copy(description.target_keys, *out.mutable_target_keys());
  copy(description.window_keys, *out.mutable_window_keys());
  copy(description.xrc_targets, *out.mutable_xrc_targets());
  copy(description.srq_numbers, *out.mutable_srq_numbers());
}

Result<verbs::EndpointDescription> read(const wire::Endpoint& in) {
  verbs::EndpointDescription description;
  if (in.gid().size() != description.gid.size()) {
    return fail(ErrorCode::kIo, "the peer's GID is not 16 bytes long");
  }
  std::copy(in.gid().begin(), in.gid().end(), description.gid.begin());
  if (in.lid() > UINT16_MAX || in.listens_at() > UINT16_MAX) {
    return fail(ErrorCode::kIo, "the peer's LID or port is longer than 16 bits");
  }
  description.lid = static_cast<std::uint16_t>(in.lid());
  description.ethernet = in.ethernet();
  description.psn = in.psn();
  description.listens_at = static_cast<std::uint16_t>(in.listens_at());
  description.qp_numbers.assign(in.qp_numbers().begin(), in.qp_numbers().end());
  description.target_addresses.assign(in.target_addresses().begin(), in.target_addresses().end());
  description.target_keys.assign(in.target_keys().begin(), in.target_keys().end());
  description.window_keys.assign(in.window_keys().begin(), in.window_keys().end());
  description.xrc_targets.assign(in.xrc_targets().begin(), in.xrc_targets().end());
  description.srq_numbers.assign(in.srq_numbers().begin(), in.srq_numbers().end());
  return description;
}

void write(const verbs::PeerReport& report, wire::FinishReply& out) {
  out.set_received(report.answers.received);
  out.set_payload_errors(report.answers.payload_errors);
  write(report.answers.failure, out.mutable_failure());
  if (report.requests) {
    wire::Requests& requests = *out.mutable_requests();
    requests.set_posted(report.requests->posted);
    requests.set_completed(report.requests->completed);
    copy(report.requests->completed_by_lane, *requests.mutable_completed_by_lane());
    requests.set_messages_per_second(report.requests->messages_per_second);
    requests.set_payload_errors(report.requests->payload_errors);
    write(report.requests->failure, requests.mutable_failure());
  }
  out.mutable_counters_before()->insert(report.counters_before.begin(),
                                        report.counters_before.end());
  out.mutable_counters_after()->insert(report.counters_after.begin(), report.counters_after.end());
}

verbs::PeerReport read(const wire::FinishReply& in) {
  verbs::PeerReport report;
  report.answers.received = in.received();
  report.answers.payload_errors = in.payload_errors();
  report.answers.failure = read(in.failure());
  if (in.has_requests()) {
    verbs::RequestReport requests;
    requests.posted = in.requests().posted();
    requests.completed = in.requests().completed();
    requests.completed_by_lane.assign(in.requests().completed_by_lane().begin(),
                                      in.requests().completed_by_lane().end());
    requests.messages_per_second = in.requests().messages_per_second();
    requests.payload_errors = in.requests().payload_errors();
    requests.failure = read(in.requests().failure());
    report.requests = std::move(requests);
  }
  report.counters_before = read(in.counters_before());
  report.counters_after = read(in.counters_after());
  return report;
}

void write(const Error& error, wire::Fault& out) {
  out.set_code(static_cast<int>(error.code));
  out.set_message(error.message.empty() ? "unnamed error" : error.message);
}

Error read(const wire::Fault& in) {
  const int last = static_cast<int>(ErrorCode::kInternal);
  auto code = static_cast<ErrorCode>(std::clamp(in.code(), 0, last));
  // A bug, or a Ctrl-C, of the other end is none of ours.
  if (code == ErrorCode::kInternal || code == ErrorCode::kInterrupted) code = ErrorCode::kIo;
  return {code, daemon::plain(in.message(), kLongestText)};
}

}  // namespace greynic::agent
