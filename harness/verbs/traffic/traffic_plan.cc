#include "greynic/verbs/traffic_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {
namespace {

struct OperationName {
  std::string_view name;
  Opcode operation;
};
constexpr OperationName kOperationNames[] = {
    {"SEND", Opcode::kSend},
    {"SEND_WITH_IMM", Opcode::kSendWithImm},
    {"SEND_WITH_INV", Opcode::kSendWithInv},
    {"WRITE", Opcode::kWrite},
    {"WRITE_WITH_IMM", Opcode::kWriteWithImm},
    {"READ", Opcode::kRead},
    {"CAS", Opcode::kCompareSwap},
    {"FADD", Opcode::kFetchAdd},
    {"ATOMIC", Opcode::kFetchAdd},
};

std::uint32_t count(const Configuration& configuration, std::string_view name) {
  return static_cast<std::uint32_t>(std::clamp(configuration.number(name), 0.0, 4294967295.0));
}

Result<Transport> transport_of(const std::string& text) {
  for (const Transport transport :
       {Transport::kRC, Transport::kUC, Transport::kUD, Transport::kXRC}) {
    if (text == to_string(transport)) return transport;
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("transport {}: this target offers RC, UC, UD and XRC", text));
}

/// The mixes of Collie (NSDI 2022, section 5.1) take the place of message_bytes.
void mix_messages(std::string_view mix, TrafficPlan& plan) {
  if (is_atomic(plan.operation)) {
    plan.sizes = {8};
  } else if (mix == "mixed_requests") {
    plan.sizes = {65536, 128, 128, 128};
  } else if (mix == "mixed_sge") {
    plan.elements = {128, 65536, 1024};
    plan.sizes = {std::accumulate(plan.elements.begin(), plan.elements.end(), 0U)};
    plan.sge_count = std::max(plan.sge_count, static_cast<std::uint32_t>(plan.elements.size()));
  }
}

/// Receives that a thread gathers are missing meanwhile. Of a queue some must stay posted though
/// each thread that draws from it holds all but one of a list back, or nothing would ever come.
std::uint32_t longest_receive_list(const TrafficPlan& plan) {
  const std::uint32_t queue = receives_per_lane(plan);
  const bool one_for_all =
      plan.shared_receive_queue && !plan.srq_per_cq && plan.transport != Transport::kXRC;
  return std::max(queue / (one_for_all ? plan.thread_count : 1), 1U);
}

bool valid_mtu(std::uint32_t bytes) {
  return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

}  // namespace

std::string_view to_string(Opcode operation) {
  for (const OperationName& row : kOperationNames) {
    if (row.operation == operation) return row.name;
  }
  return "?";
}

bool takes_receive(Opcode operation) {
  return operation == Opcode::kSend || operation == Opcode::kSendWithImm ||
         operation == Opcode::kSendWithInv || operation == Opcode::kWriteWithImm;
}

bool is_atomic(Opcode operation) {
  return operation == Opcode::kCompareSwap || operation == Opcode::kFetchAdd;
}

std::uint32_t TrafficPlan::largest_message() const {
  return *std::max_element(sizes.begin(), sizes.end());
}

double TrafficPlan::mean_message() const {
  return std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
}

std::vector<std::string> honoured_factors() {
  return {"transport",
          "operation",
          "qp_count",
          "qps_per_cq",
          "send_queue_depth",
          "receive_queue_depth",
          "shared_receive_queue",
          "message_bytes",
          "sge_count",
          "mtu_bytes",
          "inline_bytes",
          "signal_every",
          "post_batch",
          "receive_post_batch",
          "message_mix",
          "doorbell_sharing",
          "mr_count",
          "mr_bytes",
          "thread_count",
          "direction",
          "completion_mode",
          "offered_rate",
          "fault"};
}

Result<TrafficPlan> plan_from(const Configuration& configuration, const TrafficPlan& base) {
  TrafficPlan plan = base;
  const auto transport = transport_of(configuration.text("transport"));
  if (!transport) return pass_on(transport);
  plan.transport = *transport;

  const std::string operation = configuration.text("operation");
  const auto* row = std::find_if(std::begin(kOperationNames), std::end(kOperationNames),
                                 [&](const OperationName& r) { return r.name == operation; });
  if (row == std::end(kOperationNames)) {
    return fail(ErrorCode::kUnsupported, fmt::format("operation {}: not a verb", operation));
  }
  plan.operation = row->operation;

  const std::string doorbells = configuration.text("doorbell_sharing");
  if (doorbells == "shared_qp") {
    return fail(
        ErrorCode::kUnsupported,
        "doorbell_sharing shared_qp: here a QP is posted to and polled by one thread, which "
        "counts its completions in order; the twin offers it");
  }
  plan.doorbell_per_thread = doorbells == "dedicated";
  const std::string direction = configuration.text("direction");
  plan.direction =
      direction == "bidirectional" ? Direction::kBidirectional : Direction::kUnidirectional;
  const std::string completion = configuration.text("completion_mode");
  plan.completion = completion == "events"   ? CompletionMode::kEvents
                    : completion == "hybrid" ? CompletionMode::kHybrid
                                             : CompletionMode::kPolling;
  plan.qp_count = count(configuration, "qp_count");
  plan.qps_per_cq = count(configuration, "qps_per_cq");
  plan.send_depth = count(configuration, "send_queue_depth");
  plan.receive_depth = count(configuration, "receive_queue_depth");
  // XRC knows no other receive queues.
  plan.shared_receive_queue =
      configuration.flag("shared_receive_queue") || plan.transport == Transport::kXRC;
  // A mix of sizes is part of the target's name; without one every message has message_bytes.
  if (configuration.contains("message_bytes") || base.sizes.size() < 2) {
    plan.sizes = {count(configuration, "message_bytes")};
  }
  plan.sge_count = count(configuration, "sge_count");
  plan.mtu_bytes = count(configuration, "mtu_bytes");
  plan.inline_bytes = count(configuration, "inline_bytes");
  plan.signal_every = count(configuration, "signal_every");
  plan.post_batch = count(configuration, "post_batch");
  plan.receive_batch = count(configuration, "receive_post_batch");
  plan.mr_count = count(configuration, "mr_count");
  plan.mr_bytes = static_cast<std::uint64_t>(configuration.number("mr_bytes"));
  plan.thread_count = count(configuration, "thread_count");
  plan.offered_rate = configuration.number("offered_rate");

  mix_messages(configuration.text("message_mix"), plan);
  for (const auto& [name, value] : {std::pair{"qp_count", plan.qp_count},
                                    {"qps_per_cq", plan.qps_per_cq},
                                    {"send_queue_depth", plan.send_depth},
                                    {"signal_every", plan.signal_every},
                                    {"post_batch", plan.post_batch},
                                    {"receive_post_batch", plan.receive_batch},
                                    {"mr_count", plan.mr_count},
                                    {"thread_count", plan.thread_count}}) {
    if (value == 0) return fail(ErrorCode::kBadInput, fmt::format("{} is 0; give 1 or more", name));
  }
  if (plan.mode == Mode::kLatency) {
    plan.signal_every = 1;
    plan.post_batch = 1;
    plan.receive_batch = 1;
    plan.thread_count = 1;
    plan.direction = Direction::kUnidirectional;
  }
  plan.signal_every = std::min(plan.signal_every, plan.send_depth);
  plan.post_batch = std::min(plan.post_batch, plan.send_depth);
  plan.thread_count =
      std::min(plan.thread_count, (plan.qp_count + plan.qps_per_cq - 1) / plan.qps_per_cq);
  plan.receive_batch = std::min(plan.receive_batch, longest_receive_list(plan));
  return plan;
}

std::optional<std::string> impossible(const TrafficPlan& plan, const DeviceLimits& limits,
                                      const PortState& port) {
  const auto operation = to_string(plan.operation);
  if (plan.transport == Transport::kXRC && !limits.xrc) return "the device has no XRC";
  if (plan.transport == Transport::kXRC && plan.operation == Opcode::kSendWithInv) {
    return "SEND_WITH_INV is offered on RC, whose QPs memory windows are bound to";
  }
  if (!is_reliable(plan.transport) &&
      (plan.one_sided_answer() || plan.operation == Opcode::kSendWithInv)) {
    return fmt::format("{} is not defined on {}", operation, to_string(plan.transport));
  }
  if (plan.transport == Transport::kUD && plan.operation != Opcode::kSend &&
      plan.operation != Opcode::kSendWithImm) {
    return fmt::format("{} is not defined on UD", operation);
  }
  if (plan.connection_manager && (plan.transport != Transport::kRC || !port.ethernet)) {
    return "connect=rdma_cm is offered for RC over Ethernet; leave it out";
  }
  if (is_atomic(plan.operation) && !limits.atomics) return "the device has no atomics";
  if (plan.operation == Opcode::kSendWithInv && !limits.memory_windows_2b) {
    return "SEND_WITH_INV needs type 2B memory windows, which the device does not have";
  }
  if (!valid_mtu(plan.mtu_bytes)) {
    return fmt::format("mtu_bytes {}: verbs know 256, 512, 1024, 2048 and 4096", plan.mtu_bytes);
  }
  if (plan.mtu_bytes > port.active_mtu_bytes) {
    return fmt::format("mtu_bytes {} is above the port's active MTU of {}; raise the interface's",
                       plan.mtu_bytes, port.active_mtu_bytes);
  }
  const std::uint64_t largest = plan.largest_message();
  if (plan.transport == Transport::kUD && largest > port.active_mtu_bytes) {
    return fmt::format("a UD message of {} bytes does not fit the MTU of {}", largest,
                       port.active_mtu_bytes);
  }
  if (largest > limits.message_bytes) {
    return fmt::format("message_bytes {} is above the port's limit of {}", largest,
                       limits.message_bytes);
  }
  const std::uint64_t received = largest + (plan.transport == Transport::kUD ? kUdHeaderBytes : 0);
  if (received > plan.mr_bytes) {
    return fmt::format("a message takes {} bytes and mr_bytes is {}", received, plan.mr_bytes);
  }
  if (plan.sge_count == 0 && largest > 0) return "sge_count 0 can carry message_bytes 0 only";
  if (takes_receive(plan.operation) && plan.receive_depth == 0) {
    return fmt::format("{} needs receive_queue_depth of 1 or more", operation);
  }
  if (plan.operation == Opcode::kSendWithInv) {
    if (plan.direction == Direction::kBidirectional) {
      return "SEND_WITH_INV is offered one way: the binds for what arrives would stand in the send "
             "queue behind messages that wait for the other end's";
    }
    if (plan.shared_receive_queue) {
      return "SEND_WITH_INV is offered without a shared receive queue: the key that a sender names "
             "is that of a window of its QP, and a receive of a shared queue is of any QP";
    }
  }
  const auto over = [](const char* name, std::uint64_t asked,
                       std::uint64_t limit) -> std::optional<std::string> {
    if (asked <= limit) return std::nullopt;
    return fmt::format("{} {} is above the device's limit of {}", name, asked, limit);
  };
  if (auto no = over("qp_count", plan.qp_count, limits.qp_count)) return no;
  if (auto no = over("send_queue_depth", plan.send_depth, limits.queue_depth)) return no;
  if (auto no = over("receive_queue_depth", plan.receive_depth, limits.queue_depth)) return no;
  if (auto no = over("sge_count", plan.sge_count, limits.sge_count)) return no;
  if (auto no = over("mr_count", plan.mr_count, limits.mr_count)) return no;
  return over("mr_bytes", plan.mr_bytes, limits.mr_bytes);
}

Result<std::vector<std::uint32_t>> parse_sizes(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    std::uint32_t bytes = 0;
    std::uint32_t times = 1;
    const char* end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, bytes);
    if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '*') {
      read = std::from_chars(read.ptr + 1, end, times);
    }
    if (read.ec != std::errc{} || read.ptr != end || times == 0 || times > 10000) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("sizes: '{}' is not BYTES or BYTES*TIMES, such as 64*9", part));
    }
    sizes.insert(sizes.end(), times, bytes);
    if (text.find(',') == std::string_view::npos) return sizes;
    text.remove_prefix(text.find(',') + 1);
  }
}

}  // namespace greynic::verbs
