#include "validation/shared_qps.h"

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "greynic/core/check.h"
#include "greynic/statistics/random.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kMemoryBytes = 1 << 20, kPageBytes = 1 << 21;
/// All connections' READs take turns, so they end together: a thousand of 64 KiB take 13 ms.
constexpr Time kWarmUp = 15e6;
constexpr double kBytesWanted = 45e6, kMessagesWanted = 5000;
constexpr Time kStep = 1e6, kLongest = 60e6;

class Program {
 public:
  Program(Fabric& fabric, const SharedQps& load, std::uint64_t seed)
      : fabric_(fabric),
        load_(load),
        qp_count_(std::min(load.qp_count, load.connection_count)),
        thread_count_(threads_of(load)),
        random_(seed),
        open_(qp_count_),
        threads_(thread_count_) {
    const DomainId here = *fabric.create_domain(0), there = *fabric.create_domain(1);
    const CqId serves = *fabric.create_cq(1, {});
    for (std::uint32_t i = 0; i < qp_count_; ++i) {
      cqs_.push_back(*fabric.create_cq(0, {.depth = 2 * load.send_depth,
                                           .thread = i % thread_count_,
                                           .on_event = [this, i] { take_completions(i); }}));
      fabric.arm(cqs_[i]);
      qps_.push_back(*fabric.create_qp({.domain = here,
                                        .send_cq = cqs_[i],
                                        .receive_cq = cqs_[i],
                                        .send_depth = load.send_depth,
                                        .own_doorbell = true}));
      const QpId peer =
          *fabric.create_qp({.domain = there, .send_cq = serves, .receive_cq = serves});
      GREYNIC_CHECK(fabric.connect(qps_[i], 0, peer, 1).has_value());
    }
    for (std::uint32_t c = 0; c < load.connection_count; ++c) {
      own_.push_back(*fabric.register_counted(here, load.message_bytes, access::kAll, kPageBytes));
      remote_.push_back(*fabric.register_counted(there, kMemoryBytes, access::kAll, kPageBytes));
      want(c);
    }
  }
  static std::uint32_t threads_of(const SharedQps& load) {
    return std::min({load.qp_count, load.connection_count, 16U}) * load.threads_per_qp;
  }
  /// READs that are complete, and payload that has come.
  [[nodiscard]] double messages() const { return static_cast<double>(done_); }
  [[nodiscard]] double bytes() const {
    const auto all = fabric_.counters(0);
    const auto found = std::ranges::find(all, "rx_vport_rdma_unicast_bytes",
                                         &std::pair<std::string, double>::first);
    GREYNIC_CHECK(found != all.end());
    return found->second;
  }

 private:
  struct ThreadWork {
    std::deque<std::uint32_t> connections;  ///< that want to post
    bool awake = false;
  };

  /// The connection's turn comes when its thread has time.
  void want(std::uint32_t connection) {
    const std::uint32_t index = connection % thread_count_;
    threads_[index].connections.push_back(connection);
    wake(index);
  }
  void wake(std::uint32_t index) {
    if (std::exchange(threads_[index].awake, true)) return;
    fabric_.on_thread(0, index, [this, index] { step(index); });
  }
  /// Posts for one connection whose QP has room.
  void step(std::uint32_t index) {
    ThreadWork& thread = threads_[index];
    thread.awake = false;
    for (std::size_t tried = thread.connections.size(); tried > 0; --tried) {
      const std::uint32_t connection = thread.connections.front();
      thread.connections.pop_front();
      if (open_[connection % qp_count_] < load_.send_depth) {
        post(connection);
        if (!thread.connections.empty()) wake(index);
        return;
      }
      thread.connections.push_back(connection);
    }
  }
  void post(std::uint32_t connection) {
    const Sge to{fabric_.region_address(own_[connection]),
                 static_cast<std::uint32_t>(load_.message_bytes), fabric_.key(own_[connection])};
    const std::uint64_t places = kMemoryBytes / load_.message_bytes;
    SendRequest request;
    request.id = connection;
    request.kind = WorkKind::kRead;
    request.elements = std::span(&to, 1);
    request.remote_address =
        fabric_.region_address(remote_[connection]) +
        load_.message_bytes * random_.below(static_cast<std::uint32_t>(places));
    request.rkey = fabric_.key(remote_[connection]);
    const std::uint32_t qp = connection % qp_count_;
    GREYNIC_CHECK(fabric_.post_send(qps_[qp], std::span(&request, 1)).error == 0);
    ++open_[qp];
  }
  void take_completions(std::uint32_t qp) {
    std::array<Completion, 64> seen;
    for (int count = 0; (count = fabric_.poll(cqs_[qp], seen)) > 0;) {
      for (const Completion& one : std::span(seen).first(static_cast<std::size_t>(count))) {
        GREYNIC_CHECK(one.status == WcStatus::kSuccess);
        ++done_;
        --open_[qp];
        want(static_cast<std::uint32_t>(one.id));
      }
    }
    for (std::uint32_t t = qp % thread_count_; t < thread_count_; t += qp_count_) {
      if (!threads_[t].connections.empty()) wake(t);  // its QP has room again
    }
    fabric_.arm(cqs_[qp]);
  }

  Fabric& fabric_;
  SharedQps load_;
  std::uint32_t qp_count_, thread_count_;
  statistics::Random random_;
  std::vector<CqId> cqs_;
  std::vector<QpId> qps_;
  std::vector<RegionId> own_, remote_;
  std::vector<std::uint32_t> open_;
  std::vector<ThreadWork> threads_;
  std::uint64_t done_ = 0;
};

}  // namespace

SharedRate rate_of(const SharedQps& load, const std::string& rnic, std::uint64_t seed) {
  FabricSpec spec;
  spec.host.rnic = rnic;
  spec.host.overlay = HostSpec::Overlay::kOff;
  spec.host.thread_count = Program::threads_of(load);
  spec.bytes = FabricSpec::Bytes::kCounted;
  spec.seed = seed;
  const std::unique_ptr<Fabric> fabric = std::move(*Fabric::create(spec));
  Program program(*fabric, load, seed);
  const bool small = load.message_bytes < 1024;
  const Time from = small ? kStep : kWarmUp;
  fabric->run_until(from);
  const double bytes = program.bytes(), messages = program.messages();
  Time until = from;
  do {
    until += kStep;
    fabric->run_until(until);
  } while (until < kLongest && (small ? program.messages() - messages < kMessagesWanted
                                      : program.bytes() - bytes < kBytesWanted));
  return {(program.bytes() - bytes) * 8 / (until - from),
          (program.messages() - messages) / (until - from) * 1e9};
}

}  // namespace greynic::twin
