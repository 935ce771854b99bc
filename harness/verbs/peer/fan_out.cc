#include "peer/fan_out.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace greynic::verbs {
namespace {

/// A flush on one QP only follows the error of another.
void take_failure(const std::optional<Failure>& part, std::optional<Failure>& all) {
  if (part && (!all || all->reason == "IBV_WC_WR_FLUSH_ERR")) all = part;
}

}  // namespace

Result<std::vector<TrafficPlan>> deal(const TrafficPlan& plan, std::size_t peers) {
  const auto count = static_cast<std::uint32_t>(peers);
  if (plan.qp_count < count) {
    return fail(ErrorCode::kBadInput, fmt::format("qp_count {} is too few for {} peers; each takes "
                                                  "one QP at least",
                                                  plan.qp_count, count));
  }
  std::vector<TrafficPlan> parts(peers, plan);
  for (std::uint32_t i = 0; i < count; ++i) {
    TrafficPlan& part = parts[i];
    part.qp_count = plan.qp_count / count + (i < plan.qp_count % count ? 1 : 0);
    part.qps_per_cq = std::min(plan.qps_per_cq, part.qp_count);
    const std::uint32_t groups = (part.qp_count + part.qps_per_cq - 1) / part.qps_per_cq;
    part.thread_count = std::clamp(plan.thread_count / count, 1U, groups);
    part.mr_count = std::max(plan.mr_count / count, 1U);
    part.offered_rate = plan.offered_rate * part.qp_count / plan.qp_count;
    part.seed = plan.seed + i;
  }
  return parts;
}

void drive(std::deque<Part>& parts, std::chrono::nanoseconds duration) {
  std::atomic<bool> stop = false;
  const auto work = [&](Part& part) {
    part.report = run_requests(*part.mine, duration, stop);
    if (part.report.failure) stop = true;
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < parts.size(); ++i) threads.emplace_back(work, std::ref(parts[i]));
  work(parts.front());
  for (std::thread& thread : threads) thread.join();
}

RequestReport merged(std::span<const RequestReport> parts) {
  RequestReport all;
  all.steady.settled = true;
  double variance = 0.0;
  double cpu_ns = 0.0;
  bool errors_known = true;
  for (const RequestReport& part : parts) {
    all.posted += part.posted;
    all.completed += part.completed;
    all.completed_by_lane.insert(all.completed_by_lane.end(), part.completed_by_lane.begin(),
                                 part.completed_by_lane.end());
    all.messages_per_second += part.messages_per_second;
    errors_known = errors_known && part.rate_standard_error;
    variance += std::pow(part.rate_standard_error.value_or(0.0), 2);
    all.latency.merge(part.latency);
    all.steady.settled = all.steady.settled && part.steady.settled;
    all.steady.warmup_share = std::max(all.steady.warmup_share, part.steady.warmup_share);
    all.steady.test = part.steady.test;
    cpu_ns += part.cpu_ns_per_message * static_cast<double>(part.posted);
    all.payload_errors += part.payload_errors;
    all.lost += part.lost;
    take_failure(part.failure, all.failure);
  }
  if (errors_known) all.rate_standard_error = std::sqrt(variance);
  if (all.posted > 0) all.cpu_ns_per_message = cpu_ns / static_cast<double>(all.posted);
  return all;
}

AnswerReport merged(std::span<const AnswerReport> parts) {
  AnswerReport all;
  for (const AnswerReport& part : parts) {
    all.received += part.received;
    all.payload_errors += part.payload_errors;
    take_failure(part.failure, all.failure);
  }
  return all;
}

std::string counter_prefix(std::size_t peer, std::size_t peers) {
  return peers == 1 ? "peer." : fmt::format("peer{}.", peer + 1);
}

PeerReport merged(std::span<const PeerReport> parts) {
  PeerReport all;
  std::vector<AnswerReport> answers;
  std::vector<RequestReport> requests;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    answers.push_back(parts[i].answers);
    if (parts[i].requests) requests.push_back(*parts[i].requests);
    const std::string prefix = counter_prefix(i, parts.size());
    for (const auto& [name, value] : parts[i].counters_before) {
      all.counters_before[prefix + name] = value;
    }
    for (const auto& [name, value] : parts[i].counters_after) {
      all.counters_after[prefix + name] = value;
    }
  }
  all.answers = merged(answers);
  if (!requests.empty()) all.requests = merged(requests);
  return all;
}

}  // namespace greynic::verbs
