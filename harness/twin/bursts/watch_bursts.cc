#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "greynic/twin/bursts.h"

namespace greynic::twin {
namespace {

/// One QP pair: writes messages, in order, as many at once as its queue holds.
class WriteStream {
 public:
  static Result<std::unique_ptr<WriteStream>> open(Fabric& fabric, HostId from, HostId to,
                                                   const BurstWorkload& workload) {
    auto stream = std::unique_ptr<WriteStream>(new WriteStream(fabric, from, workload.send_depth));
    if (auto opened = stream->connect(to, workload.mtu_bytes); !opened) return pass_on(opened);
    return stream;
  }
  void write(std::uint64_t bytes) {
    waiting_.push_back(bytes);
    post();
  }

 private:
  static constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << 30;

  WriteStream(Fabric& fabric, HostId from, std::uint32_t depth)
      : fabric_(fabric), from_(from), depth_(depth) {}

  Result<void> connect(HostId to, std::uint32_t mtu_bytes) {
    std::array<QpId, 2> qps;
    for (const bool sends : {true, false}) {
      const HostId host = sends ? from_ : to;
      const auto domain = fabric_.create_domain(host);
      if (!domain) return pass_on(domain);
      const auto region = fabric_.register_counted(*domain, kRegionBytes, access::kAll, 2 << 20);
      if (!region) return pass_on(region);
      regions_[sends ? 0 : 1] = *region;
      const auto cq = fabric_.create_cq(host, {.depth = 2 * depth_, .on_event = [this, sends] {
                                                 if (sends) take();
                                               }});
      if (!cq) return pass_on(cq);
      if (sends) cq_ = *cq;
      const auto qp = fabric_.create_qp(
          {.domain = *domain, .send_cq = *cq, .receive_cq = *cq, .send_depth = depth_});
      if (!qp) return pass_on(qp);
      qps[sends ? 0 : 1] = *qp;
    }
    qp_ = qps[0];
    fabric_.arm(cq_);
    return fabric_.connect(qps[0], from_, qps[1], to, {.mtu_bytes = mtu_bytes});
  }
  void take() {
    std::array<Completion, 64> seen;
    for (int count = 0; (count = fabric_.poll(cq_, seen)) > 0;) {
      open_ -= static_cast<std::uint32_t>(count);
    }
    fabric_.arm(cq_);
    post();
  }
  void post() {
    while (!waiting_.empty() && open_ < depth_) {
      const Sge sge{fabric_.region_address(regions_[0]),
                    static_cast<std::uint32_t>(waiting_.front()), fabric_.key(regions_[0])};
      SendRequest request;
      request.kind = WorkKind::kWrite;
      request.elements = std::span(&sge, 1);
      request.remote_address = fabric_.region_address(regions_[1]);
      request.rkey = fabric_.key(regions_[1]);
      if (!fabric_.post_send(qp_, std::span(&request, 1))) return;
      waiting_.pop_front();
      ++open_;
    }
  }

  Fabric& fabric_;
  HostId from_;
  std::uint32_t depth_;
  std::array<RegionId, 2> regions_;  ///< of the sender, of the receiver
  CqId cq_;
  QpId qp_;
  std::deque<std::uint64_t> waiting_;
  std::uint32_t open_ = 0;
};

/// All queues of a fabric, the rule at each, and the bursts that come of it.
class Watch {
 public:
  Watch(Fabric& fabric, const BurstWatchOptions& options)
      : options_(options),
        ports_(options.ports.empty() ? fabric.ports() : options.ports),
        states_(ports_.size()),
        ring_(std::max<std::size_t>(options.ring_records, 1)),
        snapshot_(states_, ring_, options.mode),
        analyser_(ports_.size(), [this](const burst::Burst& found) {
          findings_.tally.add(found);
          findings_.bursts.push_back(found);
        }) {
    findings_.allowance = options.allowance;
    findings_.mode = options.mode;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      burst::Allowance own = options.allowance;
      own.bits_per_second = static_cast<std::uint64_t>(fabric.port_gbps(ports_[i]) * 1e9);
      states_[i].threshold_bytes = own.threshold_bytes();
      findings_.queues.push_back(
          {to_string(ports_[i]), own.bits_per_second, states_[i].threshold_bytes});
      queues_.push_back(std::make_unique<QueueWatch>(
          snapshot_, i,
          [this](const PacketRecord& record, bool marked) { depart(record, marked); }));
    }
  }
  Result<void> attach(Fabric& fabric) {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (auto watched = fabric.observe(ports_[i], queues_[i].get()); !watched) return watched;
    }
    return {};
  }
  burst::Findings finish(Time duration) {
    for (const auto& queue : queues_) queue->finish();
    analyser_.finish();
    for (const burst::QueueState& state : states_) {
      findings_.packets_seen += state.seen;
      findings_.packets_marked += state.marked;
    }
    findings_.records_lost = snapshot_.ring().lost();
    findings_.duration_ns = static_cast<std::uint64_t>(duration);
    std::ranges::stable_sort(findings_.bursts, {}, &burst::Burst::start_ns);
    burst::relate(findings_.bursts, kPathSlackNs);
    return std::move(findings_);
  }

 private:
  /// What lies between two queues of a path: links and a switch.
  static constexpr std::uint64_t kPathSlackNs = 2000;

  void depart(const PacketRecord& record, bool marked) {
    burst::CourierRecord courier;
    while (snapshot_.ring().pop(courier)) analyser_.add(courier);
    if (options_.departed) options_.departed(record, marked);
  }

  const BurstWatchOptions& options_;
  std::vector<PortId> ports_;
  std::vector<burst::QueueState> states_;
  std::vector<burst::CourierRecord> ring_;
  burst::Snapshot snapshot_;
  burst::Findings findings_;
  burst::Analyser analyser_;
  std::vector<std::unique_ptr<QueueWatch>> queues_;
};

}  // namespace

Result<burst::Findings> watch_bursts(const BurstWorkload& workload,
                                     const BurstWatchOptions& options) {
  FabricSpec spec = workload.fabric;
  spec.bytes = FabricSpec::Bytes::kCounted;
  auto made = Fabric::create(spec);
  if (!made) return pass_on(made);
  Fabric& fabric = **made;
  std::map<std::tuple<HostId, HostId, std::uint32_t>, std::unique_ptr<WriteStream>> streams;
  for (const TimedMessage& message : workload.messages) {
    auto& stream = streams[{message.from, message.to, message.stream}];
    if (stream) continue;
    auto opened = WriteStream::open(fabric, message.from, message.to, workload);
    if (!opened) return opened.error().while_doing("opening the streams of a workload");
    stream = std::move(*opened);
  }
  // One timer a message would be an event for each from the start: each sets off the next one.
  std::size_t next = 0;
  std::function<void()> release = [&] {
    for (; next < workload.messages.size() && workload.messages[next].at <= fabric.now(); ++next) {
      const TimedMessage& message = workload.messages[next];
      WriteStream* const stream = streams[{message.from, message.to, message.stream}].get();
      fabric.on_thread(
          message.from, message.stream % std::max(1U, spec.host.thread_count),
          [stream, bytes = message.bytes] { stream->write(bytes); }, message.at);
    }
    if (next < workload.messages.size()) fabric.at(workload.messages[next].at, release);
  };
  if (!workload.messages.empty()) fabric.at(workload.messages[0].at, release);
  Watch watch(fabric, options);
  if (auto attached = watch.attach(fabric); !attached) return pass_on(attached);
  constexpr int kSteps = 100;
  for (int step = 1; step <= kSteps; ++step) {
    fabric.run_until(workload.duration * step / kSteps);
    if (options.progress) options.progress(static_cast<double>(step) / kSteps);
  }
  return watch.finish(workload.duration);
}

}  // namespace greynic::twin
