#include <arpa/inet.h>
#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "greynic/core/completion_status.h"
#include "greynic/verbs/traffic.h"
#include "traffic/completion_waiter.h"
#include "traffic/own_file_table.h"
#include "traffic/payload.h"
#include "traffic/pingpong.h"
#include "traffic/receive_lists.h"
#include "traffic/window_binding.h"

namespace greynic::verbs {
namespace {

constexpr std::chrono::milliseconds kQuiet{30};  // after the requester has drained, all has arrived

/// Takes what arrives on the groups of one thread.
class ReceiveThread {
 public:
  ReceiveThread(Endpoint& endpoint, std::uint32_t thread, const std::atomic<bool>& stop,
                std::atomic<std::uint64_t>& arrived)
      : endpoint_(endpoint),
        plan_(endpoint.plan()),
        stop_(stop),
        arrived_(arrived),
        waiter_(endpoint, thread, CqSide::kReceive),
        lists_(endpoint),
        expected_(plan_.qp_count) {
    if (plan_.mode != Mode::kLatency) return;
    sender_.emplace(endpoint);
    answers_first_ = receives_per_lane(plan_) > 1;
  }

  void run() {
    if (plan_.operation == Opcode::kSendWithInv && !bind_all()) return;
    while (!stop_.load(std::memory_order_relaxed) && !report_.failure) {
      const int count = waiter_.poll(completions_, kPollBatch);
      if (count == 0) {
        if (sender_ && !sender_->look()) fail_run(sender_->failure()->reason);
        continue;
      }
      take_all(count);
    }
    // What had arrived before the stop while this thread had no processor.
    for (int count = 1; count > 0 && !sender_ && !report_.failure;) {
      take_all(count = waiter_.poll_once(completions_, kPollBatch));
    }
  }

  [[nodiscard]] AnswerReport& report() { return report_; }

 private:
  void fail_run(std::string reason) {
    if (!stop_) report_.failure = Failure{Outcome::kFailed, "peer: " + std::move(reason)};
  }

  void take_all(int count) {
    if (count < 0) fail_run("ibv_poll_cq failed; the device may be gone");
    for (int i = 0; i < count && !report_.failure; ++i) take(completions_[i]);
    if (count > 0) arrived_.fetch_add(static_cast<std::uint64_t>(count));
  }

  void take(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS)
      return fail_run(completion_status_name(completion.status));
    const auto posted_lane = static_cast<std::uint32_t>(completion.wr_id >> 32);
    const auto slot = static_cast<std::uint32_t>(completion.wr_id);
    // A shared receive queue hands any lane's buffer to whoever is next.
    const std::uint32_t lane =
        plan_.shared_receive_queue ? endpoint_.lane_of_qp(completion.qp_num) : posted_lane;
    // Before anything else, where another receive is posted for the next ping.
    if (answers_first_ && !answer(lane)) return;
    const std::uint64_t message = expected_[lane]++;
    ++report_.received;
    if (plan_.validate) check(completion, lane, posted_lane, slot, message);
    const bool renewed = plan_.operation == Opcode::kSendWithInv ? rebind(completion, lane, slot)
                                                                 : receive(posted_lane, slot);
    if (renewed && sender_ && !answers_first_) answer(lane);
  }

  bool answer(std::uint32_t lane) {
    if (sender_->post(lane)) return true;
    fail_run(sender_->failure()->reason);
    return false;
  }

  bool receive(std::uint32_t lane, std::uint32_t slot) {
    const int error = lists_.post(lane, slot);
    if (error != 0) fail_run(fmt::format("ibv_post_recv: {}", std::strerror(error)));
    return error == 0;
  }

  void check(const ibv_wc& completion, std::uint32_t lane, std::uint32_t posted_lane,
             std::uint32_t posted_slot, std::uint64_t message) {
    std::uint64_t number = message;
    if (completion.wc_flags & IBV_WC_WITH_IMM) {
      number = ntohl(completion.imm_data);
      // Unreliable transports may lose messages; reliable ones may not even reorder them.
      if (is_reliable(plan_.transport) &&
          static_cast<std::uint32_t>(message) != static_cast<std::uint32_t>(number)) {
        ++report_.payload_errors;
      }
    }
    const bool written = plan_.operation == Opcode::kWriteWithImm;
    const std::vector<Slot>& sent_from = endpoint_.slots(lane);
    const std::vector<Slot>& landed_in = endpoint_.slots(posted_lane);
    const Slot& landed =
        written ? sent_from[number % sent_from.size()] : landed_in[posted_slot % landed_in.size()];
    const std::size_t header = plan_.transport == Transport::kUD ? kUdHeaderBytes : 0;
    const std::uint32_t bytes = plan_.sizes[number % plan_.sizes.size()];
    const auto payload = endpoint_.target(landed).bytes().subspan(landed.offset + header, bytes);
    const bool reliable = is_reliable(plan_.transport);
    const bool numbered = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (!written && completion.byte_len != bytes + header && (reliable || numbered)) {
      ++report_.payload_errors;
      return;
    }
    bool good = false;
    if (reliable || numbered) {
      good = payload_matches(payload, plan_.seed, lane, slot_of(number, sent_from));
    } else {
      // After a loss the number is not known: any slot of this lane will do.
      for (std::uint32_t s = 0; s < sent_from.size() && !good; ++s) {
        good = payload_matches(payload, plan_.seed, lane, slot_of(message + s, sent_from));
      }
    }
    if (!good) ++report_.payload_errors;
    // A buffer that WRITE_WITH_IMM addresses may be under way again; receive buffers are ours.
    if (!written) spoil_payload(payload);
  }

  static std::uint32_t slot_of(std::uint64_t message, const std::vector<Slot>& slots) {
    return static_cast<std::uint32_t>(message % slots.size());
  }

  // SEND_WITH_INV (window_binding.h).

  bool bind_all() {
    for (const Endpoint::Group* group : waiter_.groups()) {
      for (std::uint32_t i = 0; i < group->lane_count; ++i) {
        for (std::uint32_t w = 0; w < windows_per_lane(plan_); ++w) {
          if (!bind(group->first_lane + i, w)) return false;
        }
      }
    }
    return true;
  }

  bool rebind(const ibv_wc& completion, std::uint32_t lane, std::uint32_t index) {
    // By the key and not by IBV_WC_WITH_INV: Soft-RoCE sets the kernel's bit of that name, which is
    // IBV_WC_IP_CSUM_OK up here.
    if (completion.invalidated_rkey != endpoint_.window(lane, index).remote_key()) {
      ++report_.payload_errors;
    }
    return bind(lane, index);
  }

  bool bind(std::uint32_t lane, std::uint32_t index) {
    if (sender_ && !sender_->complete()) {
      fail_run(sender_->failure()->reason);
      return false;
    }
    if (const auto wrong = bind_window(endpoint_, lane, index)) {
      fail_run(*wrong);
      return false;
    }
    return receive(lane, index);
  }

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  const std::atomic<bool>& stop_;
  std::atomic<std::uint64_t>& arrived_;
  Waiter waiter_;
  ReceiveLists lists_;
  std::vector<std::uint64_t> expected_;  ///< by lane: number of the next message
  std::optional<OneByOne> sender_;       ///< latency mode: what arrived is sent back
  bool answers_first_ = false;           ///< before its receive is posted again
  AnswerReport report_;
  ibv_wc completions_[kPollBatch];
};

/// WRITE leaves its payload behind: whatever slot was completed must hold it.
std::uint64_t check_written(Endpoint& endpoint, const std::vector<std::uint64_t>& completed) {
  const TrafficPlan& plan = endpoint.plan();
  std::uint64_t errors = 0;
  for (std::uint32_t lane = 0; lane < plan.qp_count; ++lane) {
    const std::vector<Slot>& slots = endpoint.slots(lane);
    const std::uint64_t messages = lane < completed.size() ? completed[lane] : 0;
    for (std::uint32_t i = 0; i < std::min<std::uint64_t>(messages, slots.size()); ++i) {
      // With mixed sizes a slot holds at least the bytes of the last message that went there.
      const std::uint64_t last = messages - 1 - (messages - 1 - i) % slots.size();
      const std::uint32_t bytes = plan.sizes[last % plan.sizes.size()];
      const auto left = endpoint.target(slots[i]).bytes().subspan(slots[i].offset, bytes);
      const std::size_t marked = plan.mode == Mode::kLatency && bytes > 0 ? 1 : 0;
      if (!payload_matches(left.first(left.size() - marked), plan.seed, lane, i)) ++errors;
    }
  }
  return errors;
}

}  // namespace

struct Answerer::Work {
  Endpoint& endpoint;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> arrived = 0;
  std::vector<std::unique_ptr<ReceiveThread>> receivers;
  std::vector<std::thread> threads;
  AnswerReport writes;

  void join() {
    stop = true;
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
};

Answerer::Answerer(Endpoint& endpoint) : work_(new Work{endpoint, {}, {}, {}, {}, {}}) {}
Answerer::~Answerer() { work_->join(); }

void Answerer::start() {
  Endpoint& endpoint = work_->endpoint;
  const TrafficPlan& plan = endpoint.plan();
  if (plan.mode == Mode::kLatency && plan.operation == Opcode::kWrite) {
    work_->threads.emplace_back([this] {
      own_file_table(work_->endpoint.files());
      answer_writes(work_->endpoint, work_->stop, work_->writes);
    });
  }
  if (!takes_receive(plan.operation)) return;
  // Each made by its own thread: what two threads write does not lie in one cache line then,
  // because the allocator keeps threads apart.
  work_->receivers.resize(plan.thread_count);
  for (std::uint32_t t = 0; t < plan.thread_count; ++t) {
    work_->threads.emplace_back([this, t, &receiver = work_->receivers[t]] {
      own_file_table(work_->endpoint.files());
      receiver = std::make_unique<ReceiveThread>(work_->endpoint, t, work_->stop, work_->arrived);
      receiver->run();
    });
  }
}

AnswerReport Answerer::finish(const std::vector<std::uint64_t>& completed_by_lane) {
  // A requester that never stops is not waited for longer than one that is silent.
  const auto end = std::chrono::steady_clock::now() + work_->endpoint.plan().stall_limit;
  for (std::uint64_t before = ~std::uint64_t{0};
       before != work_->arrived && std::chrono::steady_clock::now() < end;) {
    before = work_->arrived;
    if (!work_->receivers.empty()) std::this_thread::sleep_for(kQuiet);
  }
  work_->join();
  AnswerReport all = work_->writes;
  for (const auto& receiver : work_->receivers) {
    const AnswerReport& part = receiver->report();
    all.received += part.received;
    all.payload_errors += part.payload_errors;
    if (part.failure && !all.failure) all.failure = part.failure;
  }
  const TrafficPlan& plan = work_->endpoint.plan();
  if (plan.validate && plan.operation == Opcode::kWrite) {
    all.payload_errors += check_written(work_->endpoint, completed_by_lane);
  }
  return all;
}

}  // namespace greynic::verbs
