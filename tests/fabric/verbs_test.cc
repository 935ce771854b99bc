#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "greynic/core/fault_table.h"
#include "greynic/statistics/random.h"
#include "greynic/twin/fabric.h"
#include "greynic/zero/reader.h"
#include "greynic/zero/region.h"

/// Verbs on the fabric, one at a time: the fault table, shared receive queues, windows, events,
/// memory that goes while it is used, counters that others read.

namespace greynic::twin {
namespace {

/// Two connected ends on two hosts.
struct Ends {
  explicit Ends(FabricSpec spec = {}, Transport transport = Transport::kRC,
                std::uint32_t srq_limit = 0,
                QpAttributes attributes = {.rnr_retry = 2, .min_rnr_timer = 1})
      : fabric(std::move(*Fabric::create(spec))) {
    for (HostId host : {0U, 1U}) {
      memory[host].assign(1 << 16, std::byte{static_cast<unsigned char>(host + 1)});
      domain[host] = *fabric->create_domain(host);
      region[host] = *fabric->register_memory(domain[host], memory[host], access::kAll);
      cq[host] = *fabric->create_cq(host, {.depth = 64});
      receive_cq[host] = *fabric->create_cq(host, {.depth = 64});
      if (srq_limit > 0) srq[host] = *fabric->create_srq(domain[host], 64, srq_limit);
      qp[host] = *fabric->create_qp({.transport = transport,
                                     .domain = domain[host],
                                     .send_cq = cq[host],
                                     .receive_cq = receive_cq[host],
                                     .srq = srq[host],
                                     .inline_bytes = 64});
    }
    EXPECT_TRUE(fabric->connect(qp[0], 0, qp[1], 1, attributes));
  }
  Sge sge(HostId host, std::uint64_t at, std::uint32_t bytes) {
    return {fabric->region_address(region[host]) + at, bytes, fabric->key(region[host])};
  }
  /// From host 0 to host 1.
  SendRequest request(WorkKind kind, const Sge& from, std::uint64_t to) {
    SendRequest r;
    r.id = ++next;
    r.kind = kind;
    r.elements = std::span(&from, 1);
    r.remote_address = fabric->region_address(region[1]) + to;
    r.rkey = fabric->key(region[1]);
    return r;
  }
  int post(const SendRequest& r) { return fabric->post_send(qp[0], std::span(&r, 1)).error; }
  int receive(HostId host, const Sge& into) {
    const ReceiveRequest r{++next, std::span(&into, 1)};
    return (srq[host].id != 0 ? fabric->post_receive(srq[host], std::span(&r, 1))
                              : fabric->post_receive(qp[host], std::span(&r, 1)))
        .error;
  }
  std::vector<std::string> statuses(CqId from) {
    fabric->run();
    std::vector<std::string> all;
    Completion one;
    while (fabric->poll(from, std::span(&one, 1)) == 1) all.emplace_back(to_string(one.status));
    return all;
  }

  std::array<std::vector<std::byte>, 2> memory;
  std::unique_ptr<Fabric> fabric;
  std::array<DomainId, 2> domain;
  std::array<RegionId, 2> region;
  std::array<CqId, 2> cq, receive_cq;
  std::array<SrqId, 2> srq;
  std::array<QpId, 2> qp;
  std::uint64_t next = 0;
};

/// What the requester is told when a request is wrong in one way.
std::string provoke_on_fabric(Fault fault, std::string_view operation) {
  const bool ud = fault == Fault::kHandleDomain;
  const bool disabled = fault == Fault::kRemoteDisabled;
  Ends e({}, ud ? Transport::kUD : Transport::kRC, 0,
         {.access = disabled ? access::kLocalWrite : access::kAll,
          .ack_timeout = 8,
          .rnr_retry = 2,
          .min_rnr_timer = 1});
  const WorkKind kind = operation == "SEND"    ? WorkKind::kSend
                        : operation == "WRITE" ? WorkKind::kWrite
                        : operation == "READ"  ? WorkKind::kRead
                                               : WorkKind::kFetchAdd;
  Sge from = e.sge(0, 0, kind == WorkKind::kFetchAdd ? 8 : 64);
  SendRequest r = e.request(kind, from, 0);
  Sge into = e.sge(1, 4096, 256);
  bool post_receive = true;
  std::vector<Sge> many;
  const auto region_of = [&](HostId host, DomainId domain, std::uint8_t bits) {
    return e.fabric->key(*e.fabric->register_memory(domain, e.memory[host], bits));
  };
  switch (fault) {
    case Fault::kRemoteKey:
      r.rkey += 0x5a00;
      break;
    case Fault::kRemoteBounds:
      r.remote_address += e.memory[1].size() - (kind == WorkKind::kFetchAdd ? 0 : 32);
      break;
    case Fault::kRemoteAccess:
      r.rkey = region_of(1, e.domain[1], access::kLocalWrite);
      break;
    case Fault::kLocalKey:
      from.lkey += 0x5a00;
      break;
    case Fault::kLocalLength:
      from.bytes = 1 << 17;
      break;
    case Fault::kReceiveLength:
      into.bytes = 16;
      break;
    case Fault::kReceiveMissing:
      post_receive = false;
      break;
    case Fault::kPeerSilent:
      EXPECT_TRUE(e.fabric->destroy(e.qp[1]));
      post_receive = false;
      break;
    case Fault::kFlush:
      EXPECT_TRUE(e.fabric->modify(e.qp[0], QpState::kError));
      break;
    case Fault::kCqOverrun:
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(e.post(e.request(kind, from, 0)), 0);
      }
      e.fabric->run();
      return e.statuses(e.cq[0]).size() < 100 ? std::string(kCompletionsLost) : "all are there";
    case Fault::kRemoteDomain:
      r.rkey = region_of(1, *e.fabric->create_domain(1), access::kAll);
      break;
    case Fault::kRemoteAlignment:
      r.remote_address += 4;
      break;
    case Fault::kLocalDomain:
      from.lkey = region_of(0, *e.fabric->create_domain(0), access::kAll);
      break;
    case Fault::kSendState:
      EXPECT_TRUE(e.fabric->modify(e.qp[0], QpState::kReset));
      break;
    case Fault::kSendElements:
      many.assign(5, from);
      r.elements = many;
      break;
    case Fault::kReceiveElements: {
      many.assign(5, into);
      const ReceiveRequest wrong{1, many};
      return e.fabric->post_receive(e.qp[1], std::span(&wrong, 1)).error == EINVAL
                 ? std::string(kNotPosted)
                 : "posted";
    }
    case Fault::kHandleDomain:
      r.to = *e.fabric->create_address_handle(*e.fabric->create_domain(0), 1);
      r.to_qp = e.qp[1].id;
      break;
    default:
      break;
  }
  if (post_receive) EXPECT_EQ(e.receive(1, into), 0);
  const int error = e.post(r);
  if (error != 0) return error == EINVAL ? std::string(kNotPosted) : "another error number";
  const auto statuses = e.statuses(e.cq[0]);
  return statuses.empty() ? "nothing" : statuses.front();
}

// Claim:  a wrong request has the status that the specification asks for.
// Oracle: the table of faults, which other devices are held against too.
TEST(FabricVerbs, GiveTheStatusOfEveryFault) {
  for (const FaultRow& row : fault_table()) {
    EXPECT_EQ(provoke_on_fabric(row.fault, row.operation), row.expected)
        << row.name << " " << row.operation;
  }
}

// Claim:  a region that is deregistered while it is written ends in success or an access error, in
//         order; what succeeded is there, and what never started is not.
TEST(FabricVerbs, SurviveDeregistrationUnderLoad) {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    statistics::Random random(seed);
    Ends e({.seed = seed});
    const bool remote = random.below(2) == 0;
    const HostId host = remote ? 1 : 0;
    const RegionId doomed =
        *e.fabric->register_memory(e.domain[host], e.memory[host], access::kAll);
    constexpr std::uint32_t kBytes = 3000;
    for (std::uint32_t i = 0; i < 16; ++i) {
      std::memset(e.memory[0].data() + i * kBytes, static_cast<int>(i + 100), kBytes);
      Sge from = e.sge(0, i * kBytes, kBytes);
      if (!remote) from.lkey = e.fabric->key(doomed);
      SendRequest r = e.request(WorkKind::kWrite, from, i * kBytes);
      if (remote) r.rkey = e.fabric->key(doomed);
      ASSERT_EQ(e.post(r), 0);
    }
    e.fabric->run_until(random.uniform() * 8000);
    ASSERT_TRUE(e.fabric->destroy(doomed));
    const auto statuses = e.statuses(e.cq[0]);
    ASSERT_EQ(statuses.size(), 16U) << "seed " << seed;
    std::size_t good = 0;
    while (good < 16 && statuses[good] == "IBV_WC_SUCCESS") ++good;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::byte* there = e.memory[1].data() + i * kBytes;
      if (i < good) {
        EXPECT_EQ(std::count(there, there + kBytes, static_cast<std::byte>(i + 100)), kBytes)
            << seed;
      } else if (i == good) {
        EXPECT_EQ(statuses[i], remote ? "IBV_WC_REM_ACCESS_ERR" : "IBV_WC_LOC_PROT_ERR") << seed;
      } else {
        EXPECT_EQ(statuses[i], "IBV_WC_WR_FLUSH_ERR") << seed;
        EXPECT_EQ(std::count(there, there + kBytes, std::byte{2}), kBytes) << seed;
      }
    }
    failed += good < 16;
  }
  EXPECT_GT(failed, 100);
}

// Claim:  a window gives rights to a part of a region, until it is invalidated here or there.
/// Four READs follow at once, whose data takes as long as all else; none of it comes before word of the WRITE.
TEST(FabricVerbs, TellOfAWriteBeforeTheDataOfLaterReads) {
  const auto done_at = [](int reads) {
    Ends e;
    const Sge from = e.sge(0, 0, 4096), into = e.sge(0, 0, 65536);
    std::vector<SendRequest> requests{e.request(WorkKind::kWrite, from, 0)};
    while (reads-- > 0) requests.push_back(e.request(WorkKind::kRead, into, 0));
    EXPECT_EQ(e.fabric->post_send(e.qp[0], requests).error, 0);
    Completion one;
    while (e.fabric->poll(e.cq[0], std::span(&one, 1)) == 0) EXPECT_TRUE(e.fabric->step());
    EXPECT_EQ(one.id, 1U);
    return e.fabric->now();
  };
  EXPECT_LT(done_at(4), 1.5 * done_at(0));
}

TEST(FabricVerbs, BindAndInvalidateWindows) {
  Ends e;
  const WindowId window = *e.fabric->create_window(e.domain[1]);
  SendRequest bind;
  bind.kind = WorkKind::kBindWindow;
  bind.bind = {window, e.region[1],          e.fabric->region_address(e.region[1]) + 1000,
               100,    access::kRemoteWrite, 7};
  ASSERT_EQ(e.fabric->post_send(e.qp[1], std::span(&bind, 1)).error, 0);
  ASSERT_EQ(e.statuses(e.cq[1]), std::vector<std::string>{"IBV_WC_SUCCESS"});
  EXPECT_EQ(e.fabric->key(window) & 0xff, 7U);
  EXPECT_FALSE(e.fabric->destroy(e.region[1]));  // in use
  const Sge from = e.sge(0, 0, 100);
  SendRequest write = e.request(WorkKind::kWrite, from, 1000);
  write.rkey = e.fabric->key(window);
  ASSERT_EQ(e.post(write), 0);
  ASSERT_EQ(e.statuses(e.cq[0]), std::vector<std::string>{"IBV_WC_SUCCESS"});
  EXPECT_EQ(e.memory[1][1000], std::byte{1});
  EXPECT_EQ(e.memory[1][1100], std::byte{2});
  // A SEND takes the right away.
  ASSERT_EQ(e.receive(1, e.sge(1, 5000, 64)), 0);
  const Sge word = e.sge(0, 0, 8);
  SendRequest send = e.request(WorkKind::kSend, word, 0);
  send.invalidate = true;
  send.rkey = e.fabric->key(window);
  ASSERT_EQ(e.post(send), 0);
  ASSERT_EQ(e.post(write), 0);
  EXPECT_EQ(e.statuses(e.cq[0]),
            (std::vector<std::string>{"IBV_WC_SUCCESS", "IBV_WC_REM_ACCESS_ERR"}));
  EXPECT_TRUE(e.fabric->destroy(window));
  EXPECT_TRUE(e.fabric->destroy(e.region[1]));
}

// Claim:  QPs take receives from an SRQ, which tells when few are left, and a QP in error that it
//         takes no more.
TEST(FabricVerbs, ShareReceivesAndTellOfThem) {
  Ends e({}, Transport::kRC, 3);
  std::vector<AsyncKind> events;
  e.fabric->on_async_event(1, [&](const AsyncEvent& event) { events.push_back(event.kind); });
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(1, e.sge(1, 100 * i, 100)), 0);
  const Sge from = e.sge(0, 0, 50);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(e.post(e.request(WorkKind::kSend, from, 0)), 0);
  EXPECT_EQ(e.statuses(e.cq[0]).size(), 2U);
  EXPECT_EQ(e.statuses(e.receive_cq[1]).size(), 2U);
  EXPECT_EQ(events, std::vector<AsyncKind>{AsyncKind::kSrqLimit});
  ASSERT_TRUE(e.fabric->modify(e.qp[1], QpState::kError));
  e.fabric->run();
  EXPECT_EQ(events.back(), AsyncKind::kLastReceive);
  EXPECT_TRUE(e.statuses(e.receive_cq[1]).empty());  // what the SRQ holds is not flushed
}

// Claim:  with packets lost, RC still moves every byte once, and each atomic happens once.
TEST(FabricVerbs, DoEverythingOnceThoughPacketsAreLost) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Ends e({.loss = 0.05, .seed = seed}, Transport::kRC, 0, {.ack_timeout = 4, .rnr_retry = 7});
    statistics::Random random(seed);
    std::memset(e.memory[1].data(), 0, 64);
    std::uint64_t sum = 0;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t at = 64 + random.below(20000);
      const auto bytes = 1 + random.below(9000);
      const Sge from = e.sge(0, at, bytes), word = e.sge(0, 60000, 8);
      SendRequest add = e.request(WorkKind::kFetchAdd, word, 0);
      add.compare_add = static_cast<std::uint64_t>(i);
      sum += add.compare_add;
      ASSERT_EQ(e.post(e.request(WorkKind::kWrite, from, at)), 0);
      ASSERT_EQ(e.post(add), 0);
      ASSERT_EQ(e.post(e.request(WorkKind::kRead, from, at)), 0);
      const auto statuses = e.statuses(e.cq[0]);
      ASSERT_EQ(statuses, std::vector<std::string>(3, "IBV_WC_SUCCESS")) << "seed " << seed;
      ASSERT_EQ(std::memcmp(e.memory[0].data() + at, e.memory[1].data() + at, bytes), 0);
    }
    std::uint64_t there = 0;
    std::memcpy(&there, e.memory[1].data(), 8);
    EXPECT_EQ(there, sum) << "seed " << seed;
  }
}

// Claim:  the same seed gives the same times to the last bit.
TEST(FabricVerbs, RepeatThemselves) {
  const auto run = [](std::uint64_t seed) {
    Ends e({.seed = seed});
    const Sge from = e.sge(0, 0, 30000);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(e.post(e.request(WorkKind::kWrite, from, 0)), 0);
    Time last = 0;
    for (std::size_t seen = 0; seen < 50;) {
      EXPECT_TRUE(e.fabric->step());
      Completion one;
      while (e.fabric->poll(e.cq[0], std::span(&one, 1)) == 1) {
        ++seen;
        last = e.fabric->now();
      }
    }
    return last;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

/// Reads an arena of another host through the fabric.
class FabricRead : public zero::Source {
 public:
  FabricRead(Ends& ends, std::uint64_t address, std::uint32_t key)
      : e_(ends), address_(address), key_(key) {}
  Result<void> read(std::span<const zero::Piece> pieces) override {
    for (const zero::Piece& piece : pieces) {
      for (std::size_t done = 0; done < piece.into.size();) {
        const std::size_t bytes = std::min(piece.into.size() - done, e_.memory[0].size());
        const Sge into = e_.sge(0, 0, static_cast<std::uint32_t>(bytes));
        SendRequest r = e_.request(WorkKind::kRead, into, 0);
        r.remote_address = address_ + piece.offset + done;
        r.rkey = key_;
        if (e_.post(r) != 0) return fail(ErrorCode::kIo, "not posted");
        if (e_.statuses(e_.cq[0]) != std::vector<std::string>{"IBV_WC_SUCCESS"}) {
          return fail(ErrorCode::kIo, "not read");
        }
        std::copy_n(e_.memory[0].begin(), bytes, piece.into.begin() + static_cast<long>(done));
        done += bytes;
      }
    }
    return {};
  }

 private:
  Ends& e_;
  std::uint64_t address_;
  std::uint32_t key_;
};

// Claim:  a host that publishes its RNIC's counters is read by another, with no work of its own.
TEST(FabricVerbs, ReadTheCountersOfAnotherHost) {
  Ends e;
  const Sge from = e.sge(0, 0, 20000);
  ASSERT_EQ(e.post(e.request(WorkKind::kWrite, from, 0)), 0);
  ASSERT_EQ(e.statuses(e.cq[0]).size(), 1U);
  const auto counters = e.fabric->counters(1);
  zero::Group group{"rnic", {}};
  std::vector<double> values;
  for (const auto& [name, value] : counters) {
    group.metrics.push_back({name, ""});
    values.push_back(value);
  }
  const std::string path = testing::TempDir() + "fabric_counters";
  auto writer = *zero::RegionWriter::create(path, {group});
  writer.publish(0, static_cast<std::int64_t>(e.fabric->now()), values);
  const RegionId published =
      *e.fabric->register_memory(e.domain[1], writer.bytes(), access::kRemoteRead);
  auto reader = *zero::ArenaReader::open(std::make_unique<FabricRead>(
      e, e.fabric->region_address(published), e.fabric->key(published)));
  const auto readings = reader.look();
  ASSERT_TRUE(readings) << readings.error().message;
  ASSERT_EQ(readings->size(), 1U);
  const zero::Reading& reading = readings->front();
  const auto& fields = reading.row->schema->fields;
  ASSERT_EQ(fields.size(), values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(zero::number_of(fields[i + 1], reading.bytes), values[i]) << fields[i + 1].name;
  }
  // And they are what was sent.
  EXPECT_EQ(counters[3].first, "rx_vport_rdma_unicast_bytes");
  EXPECT_EQ(counters[3].second, 20000);
}

}  // namespace
}  // namespace greynic::twin
