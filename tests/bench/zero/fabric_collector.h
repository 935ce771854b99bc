#pragma once

/// A collector of many hosts on the twin's fabric: one I/O thread, one QP a host, all answers
/// through one port. What it asks for at once is decided by credits, or by nothing (the variants).

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "greynic/monitor/credits.h"
#include "greynic/twin/fabric.h"

namespace greynic::monitor {

struct FabricRun {
  enum class Sharing { kCredits, kAllAtOnce } sharing = Sharing::kCredits;
  std::uint32_t hosts = 1000;    ///< watched
  std::uint32_t bytes = 4096;    ///< of each, at each round
  std::uint32_t high_every = 0;  ///< each so many hosts has high priority; 0: none
  bool one_queue = false;        ///< the high class waits for its turn as all others
  bool others_wait = false;      ///< until the high class is there whole
  double others_after_ns = 0;    ///< no sooner, whatever else
  std::uint32_t rounds = 3;
  double interval_ns = 100e6;
  double gbps = 100;
  bool pfc = false, dcqcn = false;
  CreditOptions credits;
};

struct FabricOutcome {
  double line_share =
      0;  ///< bytes on the collector's port, of what it could carry while a round ran
  std::uint64_t deepest_queue_bytes = 0;
  std::uint64_t completed = 0, failed = 0;
  std::uint64_t marked = 0;                      ///< packets with ECN
  double round_ns = 0;                           ///< the longest
  double high_mean_ns = 0, other_mean_ns = 0;    ///< from the begin of a round
  double high_last_ns = 0, other_last_ns = 0;    ///< when a class is there whole, at its latest
  double delay_median_ns = 0, delay_p99_ns = 0;  ///< of READs
  double k = 0;
  std::uint64_t drops_and_pauses = 0;  ///< as far as the RNICs count them
};

class FabricCollector : public twin::PortObserver {
 public:
  explicit FabricCollector(const FabricRun& run) : run_(run), credits_(with_rate(run)) {
    twin::FabricSpec spec;
    spec.host_count = run.hosts + 1;
    spec.host.link_gbps = run.gbps;
    spec.host.overlay = twin::HostSpec::Overlay::kOff;
    spec.pfc = run.pfc;
    spec.dcqcn = run.dcqcn;
    spec.bytes = twin::FabricSpec::Bytes::kCounted;  // and at most 10,000 hosts with the collector
    fabric_ = std::move(*twin::Fabric::create(spec));
    connect();
  }

  FabricOutcome measure() {
    double used_ns = 0;
    for (std::uint32_t round = 0; round < run_.rounds; ++round) {
      begin_ns_ = run_.interval_ns * round + 1000;
      fabric_->at(begin_ns_, [this] { begin_round(); });
      fabric_->run_until(run_.interval_ns * (round + 1));
      used_ns += last_ns_ - begin_ns_;
      outcome_.round_ns = std::max(outcome_.round_ns, last_ns_ - begin_ns_);
    }
    outcome_.line_share = port_bytes_ / (used_ns * run_.gbps / 8);
    outcome_.high_mean_ns = highs_ > 0 ? high_sum_ / highs_ : 0;
    outcome_.other_mean_ns = others_ > 0 ? other_sum_ / others_ : 0;
    std::sort(delays_.begin(), delays_.end());
    if (!delays_.empty()) {
      outcome_.delay_median_ns = delays_[delays_.size() / 2];
      outcome_.delay_p99_ns = delays_[delays_.size() * 99 / 100];
    }
    outcome_.k = credits_.k();
    for (const auto& [name, value] : fabric_->counters(0)) {
      if (name.find("pause") != std::string::npos || name.find("discard") != std::string::npos ||
          name.find("out_of_sequence") != std::string::npos ||
          name.find("timeout") != std::string::npos) {
        outcome_.drops_and_pauses += static_cast<std::uint64_t>(value);
      }
    }
    return outcome_;
  }

  void on_packet(const twin::PacketRecord& record) override {
    port_bytes_ += record.bytes;
    outcome_.deepest_queue_bytes = std::max(outcome_.deepest_queue_bytes, record.depth_at_enqueue);
    outcome_.marked += record.marked ? 1 : 0;
  }

 private:
  static CreditOptions with_rate(const FabricRun& run) {
    CreditOptions options = run.credits;
    options.bytes_per_ns = run.gbps / 8;
    return options;
  }

  void connect() {
    const twin::DomainId own = *fabric_->create_domain(0);
    into_ = *fabric_->register_counted(own, run_.bytes, twin::access::kAll);
    cq_ = *fabric_->create_cq(
        0, {.depth = 2 * run_.hosts + 64, .thread = 0, .on_event = [this] { look(); }});
    twin::QpAttributes attributes;
    attributes.mtu_bytes = 4096;
    for (twin::HostId host = 1; host <= run_.hosts; ++host) {
      const twin::DomainId domain = *fabric_->create_domain(host);
      const twin::RegionId region =
          *fabric_->register_counted(domain, run_.bytes, twin::access::kRemoteRead);
      const twin::CqId cq = *fabric_->create_cq(host, {.depth = 4});
      const twin::QpId there = *fabric_->create_qp(
          {.domain = domain, .send_cq = cq, .receive_cq = cq, .send_depth = 4, .receive_depth = 4});
      const twin::QpId here = *fabric_->create_qp(
          {.domain = own, .send_cq = cq_, .receive_cq = cq_, .send_depth = 4, .receive_depth = 4});
      (void)fabric_->connect(here, 0, there, host, attributes);
      hosts_.push_back({here, fabric_->region_address(region), fabric_->key(region), 0});
    }
    (void)fabric_->observe({false, 0, 0}, this);
  }

  [[nodiscard]] bool is_high(std::uint32_t host) const {
    return run_.high_every > 0 && host % run_.high_every == 0;
  }

  void begin_round() {
    const bool together = !run_.others_wait && run_.others_after_ns == 0;
    high_left_ = 0;
    for (std::uint32_t i = 0; i < run_.hosts; ++i) {
      if (is_high(i)) ++high_left_;
      if (is_high(i) || together) add(i);
    }
    fabric_->on_thread(0, 0, [this] { go_on(); });
    if (together || run_.others_wait) return;
    fabric_->at(begin_ns_ + run_.others_after_ns, [this] { add_others(); });
  }

  void add(std::uint32_t host) {
    credits_.add({host, run_.bytes,
                  static_cast<std::uint8_t>(is_high(host) && !run_.one_queue ? 0 : 1),
                  begin_ns_ + run_.interval_ns});
  }

  void add_others() {
    for (std::uint32_t i = 0; i < run_.hosts; ++i) {
      if (!is_high(i)) add(i);
    }
    fabric_->on_thread(0, 0, [this] { go_on(); });
  }

  void post(const Credits::Job& job) {
    Host& host = hosts_[job.host];
    const twin::Sge into{fabric_->region_address(into_), job.bytes, fabric_->key(into_)};
    twin::SendRequest request;
    request.id = job.host;
    request.kind = twin::WorkKind::kRead;
    request.elements = std::span(&into, 1);
    request.remote_address = host.address;
    request.rkey = host.rkey;
    host.posted_ns = fabric_->thread_time(0, 0);
    if (!fabric_->post_send(host.qp, std::span(&request, 1))) ++outcome_.failed;
  }

  /// Posts what may be posted, and comes again when pacing lets more go.
  void go_on() {
    if (run_.sharing == FabricRun::Sharing::kAllAtOnce) {
      while (auto job = credits_.next(HUGE_VAL)) {
        post(*job);
        credits_.done(*job, 0, 0);  // nothing is held back
      }
    } else {
      for (int posted = 0; posted < 32; ++posted) {
        const auto job = credits_.next(fabric_->thread_time(0, 0));
        if (!job) break;
        post(*job);
      }
      const double now = fabric_->thread_time(0, 0);
      if (!credits_.idle() && !waiting_ && credits_.pace_ns() > now) {
        waiting_ = true;
        fabric_->on_thread(
            0, 0,
            [this] {
              waiting_ = false;
              go_on();
            },
            credits_.pace_ns());
      }
    }
    fabric_->arm(cq_);
    look();
  }

  void look() {
    std::array<twin::Completion, 16> seen;
    for (;;) {
      const int count = fabric_->poll(cq_, seen);
      if (count <= 0) break;
      const double now = fabric_->thread_time(0, 0);
      for (int i = 0; i < count; ++i) take(seen[static_cast<std::size_t>(i)], now);
    }
    fabric_->arm(cq_);
    if (run_.sharing == FabricRun::Sharing::kCredits && !looking_) {
      looking_ = true;
      go_on();
      looking_ = false;
    }
  }

  void take(const twin::Completion& completion, double now) {
    const auto host = static_cast<std::uint32_t>(completion.id);
    const double delay = now - hosts_[host].posted_ns;
    const bool good = completion.status == twin::WcStatus::kSuccess;
    if (run_.sharing == FabricRun::Sharing::kCredits) {
      credits_.done({host, run_.bytes, 0, 0}, now, good ? delay : 0);
    }
    ++(good ? outcome_.completed : outcome_.failed);
    last_ns_ = now;
    delays_.push_back(delay);
    const bool high = is_high(host);
    if (high && --high_left_ == 0 && run_.others_wait) add_others();
    (high ? high_sum_ : other_sum_) += now - begin_ns_;
    ++(high ? highs_ : others_);
    double& last = high ? outcome_.high_last_ns : outcome_.other_last_ns;
    last = std::max(last, now - begin_ns_);
  }

  struct Host {
    twin::QpId qp;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    double posted_ns = 0;
  };
  FabricRun run_;
  Credits credits_;
  std::unique_ptr<twin::Fabric> fabric_;
  twin::RegionId into_;
  twin::CqId cq_;
  std::vector<Host> hosts_;
  bool waiting_ = false, looking_ = false;
  std::uint32_t high_left_ = 0;  ///< that have not come in this round
  double begin_ns_ = 0, last_ns_ = 0, port_bytes_ = 0;
  double high_sum_ = 0, other_sum_ = 0, highs_ = 0, others_ = 0;
  std::vector<double> delays_;
  FabricOutcome outcome_;
};

}  // namespace greynic::monitor
