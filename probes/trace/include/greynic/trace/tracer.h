#pragma once

/// Follows packets from device to device on this host, out of band: programs at net_dev_queue,
/// netif_receive_skb, consume_skb and kfree_skb. Packets are not touched. What a flow's packets take
/// from one point to the next is added up in the kernel; only sampled or slow journeys come out one
/// by one.
///
/// Not promised: what a NIC forwards by itself never reaches these hooks. Packets that are on their
/// way when the trace begins are counted from their next point on, without a delay there.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/trace/rules.h"
#include "greynic/trace/usage.h"

namespace greynic::trace {

/// Log-linear: 16 buckets in each power of two.
class DelayHistogram {
 public:
  void add(std::size_t bucket, std::uint64_t count);
  void merge(const DelayHistogram& other);
  /// What was added since it was as `before`.
  [[nodiscard]] DelayHistogram since(const DelayHistogram& before) const;
  /// The middle of the bucket that holds this share of the delays; 0 when empty.
  [[nodiscard]] double quantile_ns(double share) const;
  /// How far the true quantile may be from what quantile_ns says.
  [[nodiscard]] double error_ns(double share) const;
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const std::map<std::size_t, std::uint64_t>& buckets() const { return buckets_; }
  /// The first value of a bucket, and the first behind it.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> bounds(std::size_t bucket);

 private:
  [[nodiscard]] std::optional<std::size_t> bucket_at(double share) const;
  std::map<std::size_t, std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
};

struct Point {
  std::string label;  ///< "web/eth0"; empty: nowhere
  bool queued = false;
  auto operator<=>(const Point&) const = default;
};

struct FlowName {
  std::string text;  ///< "udp 10.1.0.2:4000 > 10.1.0.3:9000 vni 42"
  std::string rule;
};

/// One flow between two points that follow each other.
struct Hop {
  FlowName flow;
  Point from, to;
  std::uint64_t packets = 0;   ///< that arrived at `to`
  std::uint64_t segments = 0;  ///< the same as frames on a wire
  std::uint64_t timed = 0;     ///< of the packets; the delay of the others is not known
  std::uint64_t lost = 0;      ///< that the kernel dropped behind `from`
  std::map<std::string, std::uint64_t> lost_reasons;
  std::map<std::string, std::uint64_t> lost_places;  ///< functions of the kernel
  double sum_ns = 0;
  std::uint64_t max_ns = 0;
  DelayHistogram delays;
  double clock_error_ns = 0;  ///< between hosts: the delays may be off by so much
};

/// Packets whose way begins at a point.
struct Begin {
  FlowName flow;
  Point point;
  std::uint64_t packets = 0;
};

struct Summary {
  std::uint64_t events = 0, events_lost = 0, journeys = 0;
  std::map<std::string, std::uint64_t> lost_why;  ///< of events_lost
  std::uint64_t inferred = 0;                     ///< events whose packet was known by place alone
  std::uint64_t folded = 0;  ///< packets of flows beyond the table, counted as "all other flows"
  double cpu_share = 0;      ///< of all CPUs, by sampled run time of the programs
  std::optional<double> event_ns;  ///< a run of a program, the same way
  std::uint32_t one_in = 1;        ///< only so many-th journeys are followed now
  std::vector<std::string> hooks;
  std::string engine = "out_of_band";
  /// In band: packets of rules that carry no stamps, by why.
  std::map<std::string, std::uint64_t> left_out;
  std::map<std::string, std::string> clocks;  ///< of several hosts: how each is known
};

struct Report {
  std::vector<Hop> hops;
  std::vector<Begin> begins;
  std::vector<Usage> containers;  ///< since the trace began
  Summary summary;
};

/// A journey that a rule samples, or a slow one, point by point.
struct JourneyEvent {
  std::uint64_t journey = 0;
  std::int64_t time_ns = 0;    ///< CLOCK_MONOTONIC
  std::uint64_t identity = 0;  ///< what headers say of the packet on every host; 0: nothing
  FlowName flow;
  Point point;
  bool lost = false;
  std::string reason, place;  ///< of a loss
  std::uint32_t bytes = 0;
};

class Tracer {
 public:
  using OnEvent = std::function<void(const JourneyEvent&)>;

  /// Looks around, makes the plan, loads and attaches. Without rules nothing is attached. `places`:
  /// patterns of names of places ('*' is any text) that are looked at, all others are as if they were
  /// on another host; empty: all.
  [[nodiscard]] static Result<std::unique_ptr<Tracer>> start(
      const Rules& rules, OnEvent on_event = {}, const std::vector<std::string>& places = {});
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Other rules, in force when it returns; what was counted out of band stays. When it fails, the old
  /// ones stay in force.
  [[nodiscard]] Result<void> change_rules(const Rules& rules);
  /// To be called every 100 ms or so: hands over journeys, follows changes of the topology, measures
  /// the cost and keeps it in the budget. Waits for journeys for at most so long.
  [[nodiscard]] Result<void> tend(std::chrono::milliseconds patience);
  /// Is the window of the rules over? What was counted stays.
  [[nodiscard]] bool window_over() const;
  /// Detaches everything. Reports stay possible.
  void stop();
  [[nodiscard]] Result<Report> report() const;
  [[nodiscard]] const Topology& topology() const;

 private:
  struct State;
  explicit Tracer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The lines of `greynic trace run --json`: one a hop, and the summary last.
[[nodiscard]] std::string json_lines(const Report& report);
/// For the answer of an exec: target: one JSON object with hop_p50_us.FROM>TO, hop_p99_us.FROM>TO and
/// hop_loss_share.FROM>TO, over all flows between two points.
[[nodiscard]] std::string measures_line(const Report& report);
/// A table for people.
[[nodiscard]] std::string table_text(const Report& report);

}  // namespace greynic::trace
