#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "greynic/statistics/random.h"
#include "greynic/twin/fabric.h"
#include "sized.h"
#include "verbs_model.h"

/// Random verbs programs on the fabric, held against the plain model of verbs_model.h.

namespace greynic::twin {
namespace {

namespace plain = model_of_verbs;

constexpr std::uint64_t kZone = 2048;       ///< sources, destinations, remote targets, receives
constexpr std::uint64_t kArea = 4 * kZone;  ///< of one side of a pair
constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kNoKey = 0xdeadbe00;

struct ProgramHost {
  std::vector<std::byte> memory, expected;
  std::vector<plain::Region> regions;
  std::vector<RegionId> ids;
  std::vector<std::uint32_t> keys;
  DomainId domains[2];
};

struct ProgramSide {
  HostId host = 0;
  std::uint64_t area = 0;
  QpId qp;
  CqId send_cq, receive_cq;
  SrqId srq;
  AddressHandleId to, foreign;
  std::vector<Completion> sends, receives;
};

struct ProgramPair {
  plain::Pair model;
  ProgramSide sides[2];
  plain::Side& plain_side(int i) { return i == 0 ? model.a : model.b; }
};

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {
    FabricSpec spec;
    spec.host_count = 2 + below(2);
    spec.seed = seed;
    if (below(3) == 0) spec.hosts_per_leaf = 1;
    spec.host.rnic = below(2) == 0 ? "cx6" : "cx5";
    fabric_ = std::move(*Fabric::create(spec));
    pairs_.resize(1 + below(3));
    hosts_.resize(spec.host_count);
    for (HostId host = 0; host < hosts_.size(); ++host) make_host(host);
    for (std::size_t i = 0; i < pairs_.size(); ++i) make_pair(i);
  }

  /// Empty: all agree.
  std::string run() {
    const std::uint32_t rounds = 1 + below(5);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      if (below(8) == 0) deregister();
      if (below(4) == 0) misuse();
      for (ProgramPair& pair : pairs_) {
        if (below(12) == 0) break_qp(pair);
        run_round(pair);
      }
      fabric_->run();
      for (ProgramPair& pair : pairs_) take_completions(pair);
      if (std::string wrong = compare(); !wrong.empty()) {
        return fmt::format("round {}: {}", round, wrong);
      }
    }
    return misused_ == 0 ? "" : fmt::format("{} wrong calls were not refused", misused_);
  }
  std::uint64_t completions = 0, failures = 0;

 private:
  std::uint32_t below(std::uint32_t bound) { return random_.below(bound); }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }

  void make_host(HostId id) {
    ProgramHost& host = hosts_[id];
    host.memory.resize(2 * pairs_.size() * kArea);
    for (std::byte& byte : host.memory) byte = static_cast<std::byte>(below(256));
    host.expected = host.memory;
    for (DomainId& domain : host.domains) domain = *fabric_->create_domain(id);
    add_region(id, 0, host.memory.size(), access::kAll, 0);
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t begin = below(static_cast<std::uint32_t>(host.memory.size() / 2));
      const auto bits = static_cast<std::uint8_t>(below(16));
      add_region(id, begin, 1 + below(static_cast<std::uint32_t>(host.memory.size() - begin)), bits,
                 static_cast<int>(below(2)));
    }
  }
  void add_region(HostId id, std::uint64_t begin, std::uint64_t bytes, std::uint8_t bits,
                  int domain) {
    ProgramHost& host = hosts_[id];
    const bool refused = (bits & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
                         (bits & access::kLocalWrite) == 0;
    const auto region = fabric_->register_memory(
        host.domains[domain], std::span(host.memory).subspan(begin, bytes), bits);
    misused_ += region.has_value() == refused;
    if (!region) return;
    host.regions.push_back({begin, bytes, (bits & access::kLocalWrite) != 0,
                            (bits & access::kRemoteWrite) != 0, (bits & access::kRemoteRead) != 0,
                            (bits & access::kRemoteAtomic) != 0, domain});
    host.ids.push_back(*region);
    host.keys.push_back(fabric_->key(*region));
  }

  void make_pair(std::size_t index) {
    ProgramPair& pair = pairs_[index];
    pair.model.kind = static_cast<plain::Kind>(std::min(2U, below(5) / 2));
    pair.model.kind = chance(2) ? plain::Kind::kReliable : pair.model.kind;
    const Transport transport = pair.model.kind == plain::Kind::kReliable     ? Transport::kRC
                                : pair.model.kind == plain::Kind::kUnreliable ? Transport::kUC
                                                                              : Transport::kUD;
    const auto hosts = static_cast<std::uint32_t>(hosts_.size());
    pair.sides[0].host = below(hosts);
    pair.sides[1].host = below(hosts);
    for (int i : {0, 1}) {
      ProgramSide& side = pair.sides[i];
      ProgramHost& host = hosts_[side.host];
      plain::Side& plain_side = pair.plain_side(i);
      side.area = (2 * index + static_cast<std::size_t>(i)) * kArea;
      plain_side.memory = &host.expected;
      plain_side.regions = &host.regions;
      side.send_cq = *fabric_->create_cq(side.host, {.depth = 256});
      side.receive_cq = *fabric_->create_cq(side.host, {.depth = 256});
      side.qp = *fabric_->create_qp({.transport = transport,
                                     .domain = host.domains[0],
                                     .send_cq = side.send_cq,
                                     .receive_cq = side.receive_cq,
                                     .send_depth = 32,
                                     .receive_depth = 64});
    }
    for (int i : {0, 1}) {
      ProgramSide& side = pair.sides[i];
      ProgramSide& peer = pair.sides[1 - i];
      plain::Side& plain_side = pair.plain_side(i);
      std::uint8_t bits = access::kAll;
      if (chance(6)) bits = static_cast<std::uint8_t>(below(16));
      plain_side.may_write = (bits & access::kRemoteWrite) != 0;
      plain_side.may_read = (bits & access::kRemoteRead) != 0;
      plain_side.may_atomic = (bits & access::kRemoteAtomic) != 0;
      const QpAttributes attributes{.peer_host = peer.host,
                                    .peer_qp = peer.qp.id,
                                    .mtu_bytes = kMtu,
                                    .access = bits,
                                    .ack_timeout = 10,
                                    .retry_count = 1,
                                    .rnr_retry = static_cast<int>(below(3)),
                                    .min_rnr_timer = 1,
                                    .most_reads = 1 + below(16)};
      for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
        misused_ += !fabric_->modify(side.qp, to, attributes);
      }
      side.to = *fabric_->create_address_handle(hosts_[side.host].domains[0], peer.host);
      side.foreign = *fabric_->create_address_handle(hosts_[side.host].domains[1], peer.host);
    }
  }

  void deregister() {
    ProgramHost& host = hosts_[below(static_cast<std::uint32_t>(hosts_.size()))];
    const std::size_t which = below(static_cast<std::uint32_t>(host.regions.size()));
    if (which == 0) return;  // the one that all depend on
    misused_ += fabric_->destroy(host.ids[which]).has_value() == host.regions[which].gone;
    host.regions[which].gone = true;
  }
  /// What nobody may do, and what has to be said to it.
  void misuse() {
    const SendRequest request;
    const ReceiveRequest receive;
    Completion out;
    ProgramSide& side = pairs_[0].sides[0];
    misused_ += fabric_->post_send(QpId{0xffffff}, std::span(&request, 1)).error != EINVAL;
    misused_ += fabric_->post_receive(QpId{0}, std::span(&receive, 1)).error != EINVAL;
    misused_ += fabric_->post_receive(SrqId{77}, std::span(&receive, 1)).error != EINVAL;
    misused_ += fabric_->poll(CqId{0xabcdef}, std::span(&out, 1)) != -1;
    misused_ += fabric_->destroy(hosts_[side.host].domains[0]).has_value();
    misused_ += fabric_->destroy(side.send_cq).has_value();
    misused_ += fabric_->destroy(RegionId{0x123456}).has_value();
    misused_ += fabric_->modify(side.qp, QpState::kInit).has_value();
    misused_ += fabric_->key(RegionId{0x123456}) != 0;
    const HostId other = (side.host + 1) % static_cast<HostId>(hosts_.size());
    misused_ += fabric_
                    ->create_qp({.domain = hosts_[other].domains[0],
                                 .send_cq = side.send_cq,
                                 .receive_cq = side.send_cq})
                    .has_value();
    const std::vector<Sge> many(99);
    SendRequest long_one;
    long_one.elements = many;
    misused_ += fabric_->post_send(side.qp, std::span(&long_one, 1)).error != EINVAL;
  }
  void break_qp(ProgramPair& pair) {
    const int which = static_cast<int>(below(2));
    if (chance(3)) {
      misused_ += !fabric_->modify(pair.sides[which].qp, QpState::kError);
      plain::to_error(pair.plain_side(which));
    }
  }

  int any_region(HostId host) {
    if (!chance(10)) return 0;
    const auto count = static_cast<std::uint32_t>(hosts_[host].regions.size());
    return static_cast<int>(below(count + 1)) - 1;
  }
  std::uint32_t key_of(HostId host, int region) {
    return region < 0 ? kNoKey : hosts_[host].keys[static_cast<std::size_t>(region)];
  }
  Sge element(HostId host, const plain::Bytes& bytes, int region) {
    return {reinterpret_cast<std::uintptr_t>(hosts_[host].memory.data()) + bytes.at,
            static_cast<std::uint32_t>(bytes.count), key_of(host, region)};
  }

  void post_receives(ProgramPair& pair, int which) {
    ProgramSide& side = pair.sides[which];
    plain::Side& plain_side = pair.plain_side(which);
    for (std::uint32_t i = below(6); i > 0; --i) {
      const std::uint64_t count = chance(6) ? below(200) : 600 + below(900);
      const plain::Receive receive{
          ++next_id_,
          {side.area + 3 * kZone + below(static_cast<std::uint32_t>(kZone - count)), count},
          any_region(side.host)};
      const Sge sge = element(side.host, receive.local, receive.region);
      const ReceiveRequest request{receive.id, std::span(&sge, 1)};
      if (fabric_->post_receive(side.qp, std::span(&request, 1)).error != 0) continue;
      if (plain_side.error) {
        plain_side.receives_done.push_back({receive.id, "IBV_WC_WR_FLUSH_ERR", true});
      } else {
        plain_side.receives.push_back(receive);
      }
    }
  }

  plain::Request draw(const ProgramPair& pair, int which) {
    const ProgramSide& mine = pair.sides[which];
    const ProgramSide& peer = pair.sides[1 - which];
    plain::Request q;
    q.id = ++next_id_;
    q.signaled = !chance(4);
    q.immediate = static_cast<std::uint32_t>(random_.next());
    const bool datagram = pair.model.kind == plain::Kind::kDatagram;
    const std::uint32_t kinds = datagram ? 2 : pair.model.kind == plain::Kind::kReliable ? 7 : 4;
    q.op = static_cast<plain::Op>(below(kinds));
    std::uint64_t count = datagram ? below(kMtu + 8) : chance(3) ? below(64) : below(700);
    const bool atomic = q.op == plain::Op::kSwap || q.op == plain::Op::kAdd;
    if (atomic) count = 8;
    const bool reads = q.op == plain::Op::kRead || atomic;
    // Answers go to places of their own; whoever reads is not sure to be overtaken by later writes.
    std::uint64_t local = below(static_cast<std::uint32_t>(kZone - count));
    std::uint64_t remote = below(static_cast<std::uint32_t>(kZone - count));
    if (atomic && !chance(8)) remote &= ~7ULL;
    const bool writes = q.op == plain::Op::kWrite || q.op == plain::Op::kWriteImm || atomic;
    if (reads && destination_ + count > kZone) q.op = plain::Op::kSend;
    if (writes && overlaps_reads(remote, count)) q.op = plain::Op::kSend;
    if (q.op == plain::Op::kRead || q.op == plain::Op::kSwap || q.op == plain::Op::kAdd) {
      local = kZone + destination_;
      destination_ += count;
    }
    if (q.op == plain::Op::kRead) reads_.push_back({remote, count});
    q.local = {mine.area + local, count};
    q.local_region = any_region(mine.host);
    q.remote = peer.area + 2 * kZone + remote;
    q.remote_region = any_region(peer.host);
    q.foreign_handle = datagram && chance(12);
    q.compare_add = below(3);
    q.swap = random_.next();
    if (q.op == plain::Op::kSwap && chance(2)) {
      std::memcpy(&q.compare_add, hosts_[peer.host].expected.data() + q.remote, 8);
    }
    return q;
  }
  bool overlaps_reads(std::uint64_t at, std::uint64_t count) const {
    for (const plain::Bytes& r : reads_) {
      if (at < r.at + r.count && r.at < at + count) return true;
    }
    return false;
  }

  void run_round(ProgramPair& pair) {
    const int which = static_cast<int>(below(2));
    ProgramSide& mine = pair.sides[which];
    ProgramSide& peer = pair.sides[1 - which];
    post_receives(pair, 1 - which);
    reads_.clear();
    destination_ = 0;
    for (std::uint64_t i = 0; i < kZone; ++i) {  // new bytes to send
      ProgramHost& host = hosts_[mine.host];
      host.memory[mine.area + i] = host.expected[mine.area + i] =
          static_cast<std::byte>(below(256));
    }
    std::vector<plain::Request> list;
    for (std::uint32_t i = below(7); i > 0; --i) list.push_back(draw(pair, which));
    std::vector<Sge> elements(list.size());
    std::vector<SendRequest> requests(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const plain::Request& q = list[i];
      static constexpr WorkKind kKinds[] = {
          WorkKind::kSend, WorkKind::kSend,        WorkKind::kWrite,   WorkKind::kWrite,
          WorkKind::kRead, WorkKind::kCompareSwap, WorkKind::kFetchAdd};
      elements[i] = element(mine.host, q.local, q.local_region);
      SendRequest& r = requests[i];
      r.id = q.id;
      r.kind = kKinds[static_cast<std::size_t>(q.op)];
      r.elements = std::span(&elements[i], 1);
      r.remote_address =
          reinterpret_cast<std::uintptr_t>(hosts_[peer.host].memory.data()) + q.remote;
      r.rkey = key_of(peer.host, q.remote_region);
      r.signaled = q.signaled;
      r.has_immediate = q.op == plain::Op::kSendImm || q.op == plain::Op::kWriteImm;
      r.immediate = q.immediate;
      r.compare_add = q.compare_add;
      r.swap = q.swap;
      r.to = q.foreign_handle ? mine.foreign : mine.to;
      r.to_qp = peer.qp.id;
    }
    const Posted posted = fabric_->post_send(mine.qp, requests);
    misused_ += posted.count != list.size();
    plain::run_round(pair.model, pair.plain_side(which), pair.plain_side(1 - which), list, kMtu);
  }

  void take_completions(ProgramPair& pair) {
    for (ProgramSide& side : pair.sides) {
      Completion one;
      while (fabric_->poll(side.send_cq, std::span(&one, 1)) == 1) side.sends.push_back(one);
      while (fabric_->poll(side.receive_cq, std::span(&one, 1)) == 1) side.receives.push_back(one);
    }
  }
  std::string compare_queue(const std::vector<Completion>& seen,
                            const std::vector<plain::Done>& expected, const char* what) {
    for (std::size_t i = 0; i < std::max(seen.size(), expected.size()); ++i) {
      if (i >= seen.size())
        return fmt::format("{} {}: {} is missing", what, expected[i].id, expected[i].status);
      if (i >= expected.size())
        return fmt::format("{} {}: {} too much", what, seen[i].id, to_string(seen[i].status));
      const plain::Done& e = expected[i];
      plain::Done s{seen[i].id, std::string(to_string(seen[i].status)), e.receive};
      if (e.receive && seen[i].status == WcStatus::kSuccess) {
        s.write_imm = seen[i].kind == WorkKind::kReceiveWriteImm;
        s.bytes = seen[i].bytes;
        s.immediate = seen[i].immediate;
        if (!seen[i].has_immediate) s.immediate = 0;
      }
      ++completions;
      failures += seen[i].status != WcStatus::kSuccess;
      if (s == e) continue;
      return fmt::format("{} {} {} {} B, imm {:x}, where {} {} {} B, imm {:x} should be", what,
                         s.id, s.status, s.bytes, s.immediate, e.id, e.status, e.bytes,
                         e.immediate);
    }
    return "";
  }
  std::string compare() {
    for (ProgramPair& pair : pairs_) {
      for (int i : {0, 1}) {
        ProgramSide& side = pair.sides[i];
        plain::Side& expected = pair.plain_side(i);
        std::string wrong = compare_queue(side.sends, expected.sends_done, "send");
        if (wrong.empty()) wrong = compare_queue(side.receives, expected.receives_done, "receive");
        if (!wrong.empty()) {
          return fmt::format("pair {} side {}, kind {}: {}", &pair - pairs_.data(), i,
                             static_cast<int>(pair.model.kind), wrong);
        }
        side.sends.clear();
        side.receives.clear();
        expected.sends_done.clear();
        expected.receives_done.clear();
      }
    }
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const auto [a, b] = std::mismatch(hosts_[host].memory.begin(), hosts_[host].memory.end(),
                                        hosts_[host].expected.begin());
      if (a == hosts_[host].memory.end()) continue;
      const auto at = static_cast<std::uint64_t>(a - hosts_[host].memory.begin());
      return fmt::format("host {}: byte {} of area {}, zone {} differs", host, at % kZone,
                         at / kArea, at % kArea / kZone);
    }
    return "";
  }

  statistics::Random random_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<ProgramHost> hosts_;
  std::vector<ProgramPair> pairs_;
  std::vector<plain::Bytes> reads_;
  std::uint64_t destination_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t misused_ = 0;
};

// Claim:  whatever a program does, every completion, status and byte is what verbs say.
// Oracle: verbs_model.h, which carries requests out one by one and knows no time.
// Method: 10,000 random programs of up to 3 hosts and pairs over RC, UC and UD, with keys, lengths,
//         rights and handles that are wrong, missing receives, QPs that fail, regions that go.
TEST(RandomPrograms, DoWhatVerbsSay) {
  constexpr std::uint64_t kPrograms = sized(10000U, 1000U);
  std::uint64_t completions = 0, failures = 0;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    Program program(seed);
    EXPECT_EQ(program.run(), "") << "seed " << seed;
    completions += program.completions;
    failures += program.failures;
  }
  // The programs are worth something: they complete, and they fail.
  EXPECT_GT(completions, 10 * kPrograms);
  EXPECT_GT(failures, kPrograms);
  std::printf("%llu completions, %llu of them errors\n",
              static_cast<unsigned long long>(completions),
              static_cast<unsigned long long>(failures));
}

}  // namespace
}  // namespace greynic::twin
