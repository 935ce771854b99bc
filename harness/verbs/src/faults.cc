#include "greynic/verbs/faults.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <thread>

#include "greynic/core/completion_status.h"
#include "refusal.h"
#include "waiting.h"

namespace greynic::verbs {
namespace {

constexpr std::uint32_t kBytes = 4096;
constexpr std::string_view kOverrun = "completions lost or CQ in error";

constexpr FaultRow kRows[] = {
    {Fault::kRemoteKey, "remote_key", "WRITE", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteKey, "remote_key", "READ", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteKey, "remote_key", "FADD", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteBounds, "remote_bounds", "WRITE", "IBV_WC_REM_ACCESS_ERR",
     "beyond the end of the remote region"},
    {Fault::kRemoteBounds, "remote_bounds", "READ", "IBV_WC_REM_ACCESS_ERR",
     "beyond the end of the remote region"},
    {Fault::kRemoteAccess, "remote_access", "WRITE", "IBV_WC_REM_ACCESS_ERR",
     "the remote region may not be written"},
    {Fault::kRemoteAccess, "remote_access", "READ", "IBV_WC_REM_ACCESS_ERR",
     "the remote region may not be read"},
    {Fault::kLocalKey, "local_key", "SEND", "IBV_WC_LOC_PROT_ERR", "unknown local key",
     "IBV_WC_LOC_QP_OP_ERR"},
    {Fault::kLocalKey, "local_key", "WRITE", "IBV_WC_LOC_PROT_ERR", "unknown local key",
     "IBV_WC_LOC_QP_OP_ERR"},
    {Fault::kLocalLength, "local_length", "SEND", "IBV_WC_LOC_PROT_ERR",
     "beyond the end of the local region"},
    {Fault::kReceiveLength, "receive_length", "SEND", "IBV_WC_REM_INV_REQ_ERR",
     "the receive buffer is too small", "IBV_WC_REM_OP_ERR"},
    {Fault::kReceiveMissing, "receive_missing", "SEND", "IBV_WC_RNR_RETRY_EXC_ERR",
     "no receive is posted"},
    {Fault::kPeerSilent, "peer_silent", "SEND", "IBV_WC_RETRY_EXC_ERR", "nobody acknowledges"},
    {Fault::kPeerSilent, "peer_silent", "WRITE", "IBV_WC_RETRY_EXC_ERR", "nobody acknowledges"},
    {Fault::kFlush, "flush", "SEND", "IBV_WC_WR_FLUSH_ERR", "queued when the QP fails"},
    {Fault::kCqOverrun, "cq_overrun", "WRITE", kOverrun, "more completions than room"},
};

/// Two connected QPs with a region each.
struct Pair {
  std::vector<ProtectionDomain> pds;
  std::vector<MemoryRegion> regions;
  std::vector<CompletionQueue> cqs;
  std::vector<QueuePair> qps;
  std::vector<GidEntry> gids;
};

Result<void> make_end(Pair& pair, const Device& device, std::string_view gid_rule, bool forbidding,
                      std::uint32_t cq_depth, std::uint32_t send_depth) {
  const auto entries = device.gids();
  if (!entries) return pass_on(entries);
  const auto gid = choose_gid(*entries, gid_rule);
  if (!gid) return pass_on(gid);
  pair.gids.push_back(*gid);
  auto pd = ProtectionDomain::create(device);
  if (!pd) return pass_on(pd);
  pair.pds.push_back(std::move(*pd));
  auto region = MemoryRegion::create(pair.pds.back(), kBytes,
                                     {.local_write = true,
                                      .remote_read = !forbidding,
                                      .remote_write = !forbidding,
                                      .remote_atomic = !forbidding});
  if (!region) return pass_on(region);
  pair.regions.push_back(std::move(*region));
  auto cq = CompletionQueue::create(device, cq_depth);
  if (!cq) return pass_on(cq);
  pair.cqs.push_back(std::move(*cq));
  auto qp = QueuePair::create(device, pair.pds.back(), pair.cqs.back(), pair.cqs.back(), nullptr,
                              {.send_depth = send_depth, .receive_depth = 4, .extended = false});
  if (!qp) return pass_on(qp);
  pair.qps.push_back(std::move(*qp));
  return {};
}

Result<void> join_ends(Pair& pair, const Device& here, const Device& there) {
  for (int end = 0; end < 2; ++end) {
    const int other = 1 - end;
    const Device& other_device = end == 0 ? there : here;
    const auto port = other_device.port_state();
    if (!port) return pass_on(port);
    const RemoteEnd remote{.gid = pair.gids[other].gid,
                           .lid = port->lid,
                           .qp_number = pair.qps[other].number(),
                           .local_gid_index = pair.gids[end].index,
                           .over_ethernet = port->ethernet};
    // Few, short retries: what is asked is that they end, not how long they can be drawn out.
    const ConnectOptions options{
        .ack_timeout = 12, .retry_count = 1, .rnr_retry = 1, .min_rnr_timer = 1};
    if (auto done = pair.qps[end].connect(remote, options); !done) return done;
  }
  return {};
}

ibv_wr_opcode opcode_of(std::string_view operation) {
  return operation == "READ"    ? IBV_WR_RDMA_READ
         : operation == "WRITE" ? IBV_WR_RDMA_WRITE
         : operation == "FADD"  ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                : IBV_WR_SEND;
}

Result<void> post(Pair& pair, const FaultRow& row) {
  MemoryRegion& mine = pair.regions[0];
  const MemoryRegion& theirs = pair.regions[1];
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(mine.address()), 64, mine.local_key()};
  ibv_send_wr request{};
  request.wr_id = 1;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = opcode_of(row.operation);
  request.send_flags = IBV_SEND_SIGNALED;
  std::uint64_t address = reinterpret_cast<std::uintptr_t>(theirs.address());
  std::uint32_t key = theirs.remote_key();
  switch (row.fault) {
    // The upper bits choose the region: one that was never given out.
    case Fault::kRemoteKey:
      key ^= 0x5a5a5a00;
      break;
    case Fault::kRemoteBounds:
      address += kBytes - 32;
      break;
    case Fault::kLocalKey:
      sge.lkey ^= 0x5a5a5a00;
      break;
    case Fault::kLocalLength:
      sge.length = kBytes + 64;
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
  if (const int error = ibv_post_send(pair.qps[0].handle(), &request, &bad)) {
    return refused("ibv_post_send", error);
  }
  return {};
}

Result<void> post_receive(Pair& pair, std::uint32_t bytes) {
  const MemoryRegion& region = pair.regions[1];
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(region.address()), bytes, region.local_key()};
  ibv_recv_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(pair.qps[1].handle(), &request, &bad)) {
    return refused("ibv_post_recv", error);
  }
  return {};
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
Result<FaultResult> overrun(Pair& pair, const FaultRow& row, std::uint32_t sends,
                            std::chrono::milliseconds patience) {
  for (std::uint32_t i = 0; i < sends; ++i) {
    if (auto done = post(pair, row); !done) return pass_on(done);
  }
  std::this_thread::sleep_for(std::min(patience, std::chrono::milliseconds(500)));
  std::uint32_t good = 0;
  ibv_wc completion{};
  int count = 0;
  while ((count = ibv_poll_cq(pair.cqs[0].handle(), 1, &completion)) > 0) {
    if (completion.status == IBV_WC_SUCCESS) ++good;
  }
  FaultResult result;
  result.expected = row.expected;
  result.as_expected = good < sends;
  result.observed =
      result.as_expected ? std::string(kOverrun) : fmt::format("all {} completions came", good);
  return result;
}

}  // namespace

std::span<const FaultRow> fault_table() { return kRows; }

const FaultRow* find_fault(std::string_view fault, std::string_view operation) {
  for (const FaultRow& row : kRows) {
    if (row.name == fault && row.operation == operation) return &row;
  }
  return nullptr;
}

Result<FaultResult> provoke(const Device& here, const Device& there, const FaultRow& row,
                            std::string_view gid_rule_here, std::string_view gid_rule_there,
                            std::chrono::milliseconds patience) {
  const bool overrunning = row.fault == Fault::kCqOverrun;
  // Twice what even a generous device rounds a CQ of one entry up to.
  constexpr std::uint32_t kSends = 1024;
  Pair pair;
  if (auto done = make_end(pair, here, gid_rule_here, false, overrunning ? 1 : 16,
                           overrunning ? kSends : 16);
      !done) {
    return pass_on(done);
  }
  if (auto done = make_end(pair, there, gid_rule_there, row.fault == Fault::kRemoteAccess, 16, 16);
      !done) {
    return pass_on(done);
  }
  if (auto done = join_ends(pair, here, there); !done) return pass_on(done);
  if (overrunning) return overrun(pair, row, kSends, patience);

  if (row.fault == Fault::kPeerSilent) pair.qps.pop_back();
  if (row.fault == Fault::kFlush) {
    if (auto done = pair.qps[0].to_error(); !done) return pass_on(done);
  }
  if (row.fault == Fault::kReceiveLength) {
    if (auto done = post_receive(pair, 16); !done) return pass_on(done);
  }
  if (row.fault == Fault::kLocalKey || row.fault == Fault::kLocalLength) {
    if (auto done = post_receive(pair, kBytes); !done) return pass_on(done);
  }
  if (auto done = post(pair, row); !done) return pass_on(done);
  FaultResult result;
  const bool known = !row.soft_roce.empty() && here.driver().starts_with("software");
  result.expected = known ? row.soft_roce : row.expected;
  result.observed = wait_for_status(pair.cqs[0], patience);
  result.as_expected = result.observed == result.expected;
  return result;
}

}  // namespace greynic::verbs
