// A verbs program for a lab: run by `greynic lab-run`, it sees the twin as any program does.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::size_t kBytes = 300'000;

/// What one side tells the other.
struct Address {
  std::uint32_t qp = 0, key = 0;
  std::uint64_t memory = 0;
  std::uint16_t lid = 0;
};

/// One RC QP, its CQ and one region.
struct Side {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* region = nullptr;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kBytes);
  std::uint16_t lid = 0;

  Side() {
    ibv_device** const list = ibv_get_device_list(nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 256, nullptr, nullptr, 0);
    ibv_qp_init_attr asked{};
    asked.send_cq = asked.recv_cq = cq;
    asked.cap = {64, 64, 4, 4, 64};
    asked.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(pd, &asked);
    region = ibv_reg_mr(pd, memory.data(), memory.size(), kAccess);
    ibv_port_attr port{};
    ibv_query_port(context, 1, &port);
    lid = port.lid;
  }
  ~Side() {
    ibv_destroy_qp(qp);
    if (region) ibv_dereg_mr(region);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] Address address() const {
    return {qp->qp_num, region->rkey, reinterpret_cast<std::uint64_t>(memory.data()), lid};
  }

  void connect(const Address& to, std::uint8_t rnr_retry = 7) const {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = kAccess;
    ASSERT_EQ(ibv_modify_qp(qp, &attributes,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attributes = {};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = to.qp;
    attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = 1;
    attributes.ah_attr.dlid = to.lid;
    attributes.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 8;  // a millisecond
    attributes.retry_cnt = 3;
    attributes.rnr_retry = rnr_retry;
    attributes.max_rd_atomic = 4;
    ASSERT_EQ(ibv_modify_qp(qp, &attributes,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  int post(ibv_wr_opcode opcode, const Address& to, std::size_t bytes, std::uint32_t lkey,
           std::uint64_t compare_add = 0, std::uint64_t swap = 0) {
    ibv_sge element{reinterpret_cast<std::uint64_t>(memory.data()),
                    static_cast<std::uint32_t>(bytes), lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &element;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    const bool atomic =
        opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    if (atomic) {
      request.wr.atomic = {to.memory, compare_add, swap, to.key};
    } else {
      request.wr.rdma = {to.memory, to.key};
    }
    return ibv_post_send(qp, &request, &bad);
  }

  void receive(std::size_t bytes) {
    ibv_sge element{reinterpret_cast<std::uint64_t>(memory.data()),
                    static_cast<std::uint32_t>(bytes), region->lkey};
    ibv_recv_wr request{}, *bad = nullptr;
    request.sg_list = &element;
    request.num_sge = 1;
    ASSERT_EQ(ibv_post_recv(qp, &request, &bad), 0);
  }

  /// The next completion; a status of -1 after ten seconds without any.
  [[nodiscard]] ibv_wc wait() const {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        wc.status = static_cast<ibv_wc_status>(-1);
        break;
      }
    }
    return wc;
  }
};

struct LabProgram : testing::Test {
  void SetUp() override {
    a.connect(b.address());
    b.connect(a.address());
    std::iota(a.memory.begin(), a.memory.end(), std::uint8_t{1});
  }
  Side a, b;
};

// Claim:  bytes arrive as they were, by every operation, and atomics do what they say.
// Oracle: the same bytes and sums in plain memory.
TEST_F(LabProgram, MovesBytes) {
  b.receive(kBytes);
  ASSERT_EQ(a.post(IBV_WR_SEND, {}, kBytes, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
  const ibv_wc got = b.wait();
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.byte_len, kBytes);
  EXPECT_EQ(a.memory, b.memory);

  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{70'001}, kBytes}) {
    std::fill(b.memory.begin(), b.memory.end(), std::uint8_t{0});
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, b.address(), bytes, a.region->lkey), 0);
    EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
    std::vector<std::uint8_t> expected(kBytes);
    std::copy_n(a.memory.begin(), bytes, expected.begin());
    EXPECT_EQ(b.memory, expected) << bytes;
    std::fill(a.memory.begin(), a.memory.end(), std::uint8_t{0});
    ASSERT_EQ(a.post(IBV_WR_RDMA_READ, b.address(), kBytes, a.region->lkey), 0);
    EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a.memory, expected) << bytes;
    std::iota(a.memory.begin(), a.memory.end(), static_cast<std::uint8_t>(bytes));
  }

  std::uint64_t word = 40, before = 0;
  std::memcpy(b.memory.data(), &word, sizeof word);
  ASSERT_EQ(a.post(IBV_WR_ATOMIC_FETCH_AND_ADD, b.address(), 8, a.region->lkey, 2), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
  std::memcpy(&before, a.memory.data(), sizeof before);
  EXPECT_EQ(before, 40U);
  ASSERT_EQ(a.post(IBV_WR_ATOMIC_CMP_AND_SWP, b.address(), 8, a.region->lkey, 42, 7), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
  std::memcpy(&before, a.memory.data(), sizeof before);
  std::memcpy(&word, b.memory.data(), sizeof word);
  EXPECT_EQ(before, 42U);
  EXPECT_EQ(word, 7U);
}

// Claim:  what is not allowed is the status that the specification has for it.
TEST_F(LabProgram, GivesStatusesForBadKeys) {
  Address wrong = b.address();
  wrong.key ^= 0x100;
  ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, wrong, 64, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LabProgram, GivesStatusesForBadLocalKeys) {
  ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, b.address(), 64, a.region->lkey ^ 0x100), 0);
  ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, b.address(), 64, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(a.wait().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(LabProgram, GivesStatusesForMessagesThatAreTooLong) {
  b.receive(64);
  ASSERT_EQ(a.post(IBV_WR_SEND, {}, 65, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(b.wait().status, IBV_WC_LOC_LEN_ERR);
}

TEST_F(LabProgram, RefusesMemoryThatWasDeregistered) {
  const Address before = b.address();
  ibv_dereg_mr(b.region);
  b.region = ibv_reg_mr(b.pd, b.memory.data(), b.memory.size(), kAccess);
  ASSERT_EQ(a.post(IBV_WR_RDMA_READ, before, 64, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LabProgram, WaitsForAReceiver) {
  ASSERT_EQ(a.post(IBV_WR_SEND, {}, 64, a.region->lkey), 0);
  usleep(20'000);
  ibv_wc none{};
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &none), 0);
  b.receive(64);
  EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.wait().status, IBV_WC_SUCCESS);
}

TEST(LabProgramAlone, GivesUpWithoutAReceiver) {
  Side a, b;
  a.connect(b.address(), /*rnr_retry=*/2);
  b.connect(a.address());
  ASSERT_EQ(a.post(IBV_WR_SEND, {}, 64, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST(LabProgramAlone, FindsNobodyBehindANumberThatIsNone) {
  Side a;
  Address nobody = a.address();
  nobody.qp ^= 1;
  a.connect(nobody);
  ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, nobody, 64, a.region->lkey), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_RETRY_EXC_ERR);
}

// Claim:  a process that is killed is silence to its peer: writes to it fail after all retries.
TEST(LabProgramAlone, SeesThatItsPeerDied) {
  std::array<int, 2> to_child{}, to_parent{};
  ASSERT_EQ(pipe(to_child.data()) + pipe(to_parent.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    Side side;
    const Address own = side.address();
    Address peer;
    if (write(to_parent[1], &own, sizeof own) < 0) _exit(1);
    if (read(to_child[0], &peer, sizeof peer) < 0) _exit(1);
    side.connect(peer);
    if (write(to_parent[1], &own, sizeof own) < 0) _exit(1);
    for (;;) pause();
  }
  Side side;
  const Address own = side.address();
  Address peer;
  ASSERT_EQ(read(to_parent[0], &peer, sizeof peer), ssize_t{sizeof peer});
  ASSERT_EQ(write(to_child[1], &own, sizeof own), ssize_t{sizeof own});
  side.connect(peer);
  ASSERT_EQ(read(to_parent[0], &peer, sizeof peer), ssize_t{sizeof peer});
  ASSERT_EQ(side.post(IBV_WR_RDMA_WRITE, peer, kBytes, side.region->lkey), 0);
  EXPECT_EQ(side.wait().status, IBV_WC_SUCCESS);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_EQ(side.post(IBV_WR_RDMA_WRITE, peer, kBytes, side.region->lkey), 0);
  EXPECT_EQ(side.wait().status, IBV_WC_RETRY_EXC_ERR);
}

// Claim:  a call that is not offered is named, and gives EOPNOTSUPP.
TEST(LabProgramAlone, NamesCallsThatAreNotOffered) {
  Side side;
  testing::internal::CaptureStderr();
  EXPECT_EQ(ibv_attach_mcast(side.qp, nullptr, 0), EOPNOTSUPP);
  ibv_alloc_dm_attr asked{};
  asked.length = 64;
  EXPECT_EQ(ibv_alloc_dm(side.context, &asked), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("ibv_attach_mcast"), std::string::npos) << text;
  EXPECT_NE(text.find("ibv_alloc_dm"), std::string::npos) << text;
}

}  // namespace
