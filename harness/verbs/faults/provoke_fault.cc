#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "device/verbs_errors.h"
#include "greynic/core/completion_status.h"
#include "greynic/verbs/faults.h"
#include "traffic/completion_waiter.h"

namespace greynic::verbs {
namespace {

constexpr std::uint32_t kRegionBytes = 4096;
constexpr std::uint32_t kMessageBytes = 64;
constexpr std::uint32_t kOverrunSends =
    1024;  // twice what a generous device rounds a CQ of 1 up to

ibv_wr_opcode opcode_of(std::string_view operation) {
  return operation == "READ"    ? IBV_WR_RDMA_READ
         : operation == "WRITE" ? IBV_WR_RDMA_WRITE
         : operation == "FADD"  ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                : IBV_WR_SEND;
}

/// What came of posting, in the words of kNotPosted.
std::string posting(int error) {
  if (error == 0) return "posted";
  // Soft-RoCE's says some negatively.
  const char* const name = strerrorname_np(std::abs(error));
  return fmt::format("not posted: {}", name != nullptr ? name : std::to_string(error));
}

/// A receive with one SGE more than a receive may have.
std::string post_wide_receive(Endpoint& endpoint) {
  const MemoryRegion& mine = endpoint.local(Slot{});
  QueuePair& qp = endpoint.qp(0);
  std::vector<ibv_sge> sges(
      qp.granted().receive_sge + std::size_t{1},
      {reinterpret_cast<std::uintptr_t>(mine.address()), kMessageBytes, mine.local_key()});
  ibv_recv_wr request{};
  request.sg_list = sges.data();
  request.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  return posting(ibv_post_recv(qp.handle(), &request, &bad));
}

/// Posts the request of a row, wrong in what the row says. 0 or an errno.
int post(Endpoint& endpoint, const FaultRow& row) {
  const Slot first{};
  const MemoryRegion& mine = endpoint.local(first);
  QueuePair& qp = endpoint.qp(0);
  const std::size_t elements =
      row.fault == Fault::kSendElements ? qp.granted().send_sge + std::size_t{1} : 1;
  std::vector<ibv_sge> sges(elements, {reinterpret_cast<std::uintptr_t>(mine.address()),
                                       kMessageBytes, mine.local_key()});
  ibv_sge& sge = sges.front();
  ibv_send_wr request{};
  request.wr_id = 1;
  request.sg_list = sges.data();
  request.num_sge = static_cast<int>(elements);
  request.opcode = opcode_of(row.operation);
  request.send_flags = IBV_SEND_SIGNALED;
  if (ibv_ah* const handle = endpoint.address_handle(0)) {
    request.wr.ud.ah = handle;
    request.wr.ud.remote_qpn = endpoint.remote().qp_numbers.at(0);
    request.wr.ud.remote_qkey = ConnectOptions{}.qkey;
  }
  std::uint64_t address = endpoint.remote().target_addresses.at(0);
  std::uint32_t key = endpoint.remote().target_keys.at(0);
  switch (row.fault) {
    // The upper bits choose the region: one that was never given out.
    case Fault::kRemoteKey:
      key ^= 0x5a5a5a00;
      break;
    case Fault::kRemoteBounds:
      // An atomic beyond the end is still aligned: one fault at a time.
      address += kRegionBytes - (row.operation == "FADD" ? 0 : kMessageBytes / 2);
      break;
    case Fault::kRemoteAlignment:
      address += sizeof(std::uint64_t) / 2;
      break;
    case Fault::kLocalKey:
      sge.lkey ^= 0x5a5a5a00;
      break;
    case Fault::kLocalLength:
      sge.length = kRegionBytes + 64;
      break;
    default:
      break;
  }
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    sge.length = 8;
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = key;
    request.wr.atomic.compare_add = 1;
  } else if (request.opcode != IBV_WR_SEND) {
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = key;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp.handle(), &request, &bad);
}

std::string wait_for_status(CompletionQueue& cq, std::chrono::milliseconds patience) {
  const std::int64_t end = now_ns() + patience.count() * 1'000'000;
  ibv_wc completion{};
  while (now_ns() < end) {
    const int count = ibv_poll_cq(cq.handle(), 1, &completion);
    if (count < 0) return "ibv_poll_cq failed";
    if (count > 0) return completion_status_name(completion.status);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return "no completion";
}

/// Fills a small CQ far beyond its depth without polling, then counts what is left of it.
Result<std::string> overrun(Endpoint& endpoint, const FaultRow& row) {
  for (std::uint32_t i = 0; i < kOverrunSends; ++i) {
    if (const int error = post(endpoint, row)) return refused("ibv_post_send", error);
  }
  const auto stall = endpoint.plan().stall_limit;
  std::this_thread::sleep_for(std::min(stall, std::chrono::milliseconds(500)));
  std::uint32_t good = 0;
  ibv_wc completion{};
  while (ibv_poll_cq(endpoint.groups()[0].send_cq.handle(), 1, &completion) > 0) {
    if (completion.status == IBV_WC_SUCCESS) ++good;
  }
  if (good < kOverrunSends) return std::string(kCompletionsLost);
  return fmt::format("all {} completions came", good);
}

constexpr StatusDeparture kDepartures[] = {
    {"software", "local_key", "SEND", "IBV_WC_LOC_QP_OP_ERR",
     "rxe_req.c: whatever fails while a packet is filled is a QP operation error, kernel 6.1"},
    {"software", "local_key", "WRITE", "IBV_WC_LOC_QP_OP_ERR",
     "rxe_req.c: whatever fails while a packet is filled is a QP operation error, kernel 6.1"},
    {"software", "local_domain", "SEND", "IBV_WC_LOC_QP_OP_ERR",
     "rxe_req.c: whatever fails while a packet is filled is a QP operation error, kernel 6.1"},
    {"software", "local_domain", "WRITE", "IBV_WC_LOC_QP_OP_ERR",
     "rxe_req.c: whatever fails while a packet is filled is a QP operation error, kernel 6.1"},
    {"software", "remote_alignment", "FADD", kNotPosted,
     "observed with rdma-core 44, whose provider checks the address before it posts"},
    {"software", "receive_length", "SEND", "IBV_WC_REM_OP_ERR",
     "rxe_resp.c: a receive that is too short counts as a malformed one, kernel 6.1"},
};

}  // namespace

std::span<const StatusDeparture> known_departures() { return kDepartures; }

TrafficPlan fault_plan(const FaultRow& row, const TrafficPlan& base) {
  TrafficPlan plan;
  plan.fault = row.fault;
  if (row.transport == "UD") plan.transport = Transport::kUD;
  plan.operation = row.operation == "READ"    ? Opcode::kRead
                   : row.operation == "WRITE" ? Opcode::kWrite
                   : row.operation == "FADD"  ? Opcode::kFetchAdd
                                              : Opcode::kSend;
  plan.send_depth = row.fault == Fault::kCqOverrun ? kOverrunSends : 16;
  plan.receive_depth = 4;
  plan.sizes = {is_atomic(plan.operation) ? 8 : kMessageBytes};
  // The receive must take what the wrong request could send: one fault at a time.
  if (row.fault == Fault::kLocalLength) plan.sizes = {kRegionBytes};
  plan.mr_bytes = kRegionBytes;
  plan.extended_posting = false;
  plan.gid_rule = base.gid_rule;
  plan.stall_limit = base.stall_limit;
  return plan;
}

ConnectOptions fault_timers() {
  return {.ack_timeout = 12, .retry_count = 1, .rnr_retry = 1, .min_rnr_timer = 1};
}

Result<FaultResult> provoke(Endpoint& endpoint, const FaultRow& row, std::string_view driver) {
  FaultResult result{.expected = std::string(row.expected)};
  for (const StatusDeparture& known : kDepartures) {
    if (driver.starts_with(known.driver) && known.fault == row.name &&
        known.operation == row.operation) {
      result.expected = known.status;
    }
  }
  if (row.fault == Fault::kCqOverrun) {
    auto observed = overrun(endpoint, row);
    if (!observed) return pass_on(observed);
    result.observed = std::move(*observed);
  } else if (row.fault == Fault::kReceiveElements) {
    result.observed = post_wide_receive(endpoint);
  } else {
    if (row.fault == Fault::kFlush) {
      if (auto done = endpoint.qp(0).to_error(); !done) return pass_on(done);
    }
    if (row.fault == Fault::kSendState) {
      if (auto done = endpoint.qp(0).to_reset(); !done) return pass_on(done);
    }
    // A provider may see that a request is wrong and not take it.
    const int error = post(endpoint, row);
    result.observed =
        error == 0 ? wait_for_status(endpoint.groups()[0].send_cq, endpoint.plan().stall_limit)
                   : posting(error);
  }
  result.as_expected = result.observed == result.expected;
  result.by_the_book = result.observed == row.expected;
  return result;
}

}  // namespace greynic::verbs
