#include "dpdk/rte_queue.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <thread>

namespace greynic::flows {
namespace {

constexpr std::uint32_t kQueue = 0;
/// Operations wait in the port until they are pushed: one call to the device for many rules.
constexpr rte_flow_op_attr kPostponed = {.postpone = 1};

}  // namespace

RteQueue::RteQueue(const RteCalls& calls, std::uint16_t port, std::uint32_t size,
                   std::chrono::nanoseconds patience)
    : calls_(calls), port_(port), size_(size), patience_(patience) {}

Result<RteQueue::Pulled> RteQueue::pull(std::size_t open) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kPause{20};
  std::array<rte_flow_op_result, 64> results{};
  const auto wanted = static_cast<std::uint16_t>(std::min(open, results.size()));
  rte_flow_error error{};
  for (const Clock::time_point end = Clock::now() + patience_;;) {
    const int count = calls_.pull(port_, kQueue, results.data(), wanted, &error);
    if (count > 0) {
      Pulled pulled{.count = static_cast<std::size_t>(count)};
      for (const rte_flow_op_result& result : std::span(results).first(pulled.count)) {
        auto& operation = *static_cast<Operation*>(result.user_data);
        operation.done = result.status == RTE_FLOW_OP_SUCCESS;
        if (operation.done) continue;
        operation.refusal = "the operation did not succeed";
        pulled.refused = true;
      }
      return pulled;
    }
    if (count < 0 || Clock::now() >= end) {
      silent_ = true;
      return fail(
          ErrorCode::kRefused,
          fmt::format("the port's queue {}, with {} operations under way",
                      count < 0 ? "cannot be asked for results: " + words_of(error)
                                : fmt::format("gives no result for {:%Q %q}",
                                              std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  patience_)),
                      open));
    }
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<RteQueue::Operation>> RteQueue::run(std::size_t count, const Enqueue& enqueue,
                                                       bool go_on) {
  if (silent_) return fail(ErrorCode::kRefused, "the port's queue has stopped answering before");
  std::vector<Operation> operations(count);
  std::size_t next = 0;
  std::size_t open = 0;
  std::size_t end = count;
  while (next < end || open > 0) {
    for (; next < end && open < size_; ++next) {
      rte_flow_error error{};
      if (enqueue(next, &operations[next], &error)) {
        ++open;
      } else {
        operations[next].refusal = words_of(error);
        if (!go_on) end = next;
      }
    }
    if (open == 0) break;
    rte_flow_error error{};
    if (calls_.push(port_, kQueue, &error) != 0) {
      silent_ = true;
      return fail(ErrorCode::kRefused, "the port's queue cannot be pushed: " + words_of(error));
    }
    const auto pulled = pull(open);
    if (!pulled) return pass_on(pulled);
    open -= pulled->count;
    if (pulled->refused && !go_on) end = next;
  }
  return operations;
}

Result<std::vector<rte_flow*>> RteQueue::create(std::span<const RteRule> rules,
                                                const RteTemplates& templates) {
  std::vector<rte_flow*> handles(rules.size());
  const auto enqueue = [&](std::size_t i, void* user_data, rte_flow_error* error) {
    const RteTemplates::Place& place = templates.places()[i];
    handles[i] =
        calls_.async_create(port_, kQueue, &kPostponed, place.table, rules[i].pattern.data(), 0,
                            rules[i].actions.data(), place.actions, user_data, error);
    return handles[i] != nullptr;
  };
  const auto operations = run(rules.size(), enqueue, /*go_on=*/false);
  if (!operations) return pass_on(operations);
  const auto refused = std::find_if(operations->begin(), operations->end(),
                                    [](const Operation& one) { return !one.refusal.empty(); });
  if (refused == operations->end()) return handles;
  std::vector<rte_flow*> in;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if ((*operations)[i].done) in.push_back(handles[i]);
  }
  const auto i = static_cast<std::size_t>(refused - operations->begin());
  std::string message =
      fmt::format("the port refuses rule {} ({}): {}", i, rules[i].name, refused->refusal);
  if (auto out = destroy(in); !out) message += "; and of those before it, " + out.error().message;
  return fail(ErrorCode::kRefused, message);
}

Result<void> RteQueue::destroy(std::span<rte_flow* const> rules) {
  const auto enqueue = [&](std::size_t i, void* user_data, rte_flow_error* error) {
    return calls_.async_destroy(port_, kQueue, &kPostponed, rules[i], user_data, error) == 0;
  };
  const auto operations = run(rules.size(), enqueue, /*go_on=*/true);
  if (!operations) return pass_on(operations);
  for (const Operation& one : *operations) {
    if (one.done) continue;
    return fail(ErrorCode::kRefused, "the port does not let a rule go: " + one.refusal);
  }
  return {};
}

}  // namespace greynic::flows
