#include "find_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace greynic::causal {
namespace {

constexpr std::size_t kEach = 3;       // tests of a configuration
constexpr double kMostOfTheWay = 0.5;  // back to the baseline, in logarithms
constexpr double kRose = 1.5;          // times, before a counter is told
constexpr double kLeastCount = 1e-3;   // for each packet: below, everything is as good as nothing
constexpr double kSlowDeletion = 1.5;  // times, of rule_delete_us
constexpr std::size_t kMostCounters = 3;
/// Which packets a counter is told for: those that its pipe passed, else those that were sent.
std::string packets_of(const std::string& counter) {
  const std::string side = counter.starts_with("server.") ? "server." : "";
  const std::string_view rest = std::string_view(counter).substr(side.size());
  if (rest.starts_with("rx_steering")) return side + "rx_vport_rdma_unicast_packets";
  if (rest.starts_with("tx_steering")) return side + "tx_vport_rdma_unicast_packets";
  return "tx_vport_rdma_unicast_packets";
}

/// Means of all counters over the tests of a configuration, for each packet.
std::map<std::string, double> counters_of(const std::vector<Observation>& tests) {
  std::map<std::string, double> sums;
  for (const Observation& test : tests) {
    for (const auto& [name, after] : test.counters_after) {
      const auto before = test.counters_before.find(name);
      sums[name] += after - (before == test.counters_before.end() ? 0.0 : before->second);
    }
  }
  std::map<std::string, double> each;
  for (const auto& [name, sum] : sums) {
    const auto packets = sums.find(packets_of(name));
    const double by = packets == sums.end() ? static_cast<double>(tests.size()) : packets->second;
    each[name] = sum / std::max(by, 1.0);
  }
  return each;
}

double value_at(const std::map<std::string, double>& all, const std::string& name) {
  const auto found = all.find(name);
  return found == all.end() ? 0.0 : found->second;
}

double rise_of(const MovedCounter& one) {
  return (one.wall + kLeastCount) / (one.baseline + kLeastCount);
}

std::optional<double> mean_measure(const std::vector<Observation>& tests, std::string_view name) {
  double sum = 0.0;
  double count = 0.0;
  for (const Observation& test : tests) {
    if (const auto value = test.value(name)) {
      sum += *value;
      count += 1.0;
    }
  }
  return count > 0.0 ? std::optional(sum / count) : std::nullopt;
}

/// What tells ScalaCN's symptoms apart: what the device shows, and which settings bring it.
class Symptoms {
 public:
  Symptoms(const Surroundings& around, const std::vector<Cause>& causes)
      : wall_(around.observations(around.wall())),
        baseline_(around.observations(around.baseline())) {
    for (const Cause& cause : causes) {
      for (const Condition& term : cause.all_of) terms_.insert(term.factor);
    }
    at_wall_ = counters_of(wall_);
    at_baseline_ = counters_of(baseline_);
  }

  void name(CriticalPath& path) const {
    for (const auto& [symptom, text, seen] : {
             Symptom{"S2",
                     "more encapsulation contexts than the device holds: it answers no command, "
                     "operations time out, and the kernel stalls",
                     rose("device_resets") && rose("kernel_stalls") && has("vxlan_contexts")},
             Symptom{"S8", "the device answers no command until it is reset",
                     rose("device_resets") && rose("driver_timeouts")},
             Symptom{"S3", "the driver crashes and all rules are lost",
                     rose("device_resets") && rose("flows_lost")},
             Symptom{"S7", "the link goes down when a virtual function is unbound",
                     failed() && has("vf_unbind_rate")},
             Symptom{"S4", "rules are deleted slowly", slow_deletion()},
             Symptom{"S1", "live flows are deleted by counters that are read too late",
                     rose("upcalls") && has("flow_idle_ms") && has("counter_poll_ms")},
             Symptom{"S5", "live flows are moved to software by counters that are read too late",
                     has("counter_poll_ms") && has("flow_setup_rate")},
             Symptom{"S2", "operations that time out stall the kernel",
                     rose("upcalls") && has("flow_setup_rate")},
             Symptom{"S6", "masks are queried one after another", walks()},
         }) {
      if (!seen) continue;
      path.symptom = symptom;
      path.symptom_text = text;
      return;
    }
  }

 private:
  struct Symptom {
    const char* name;
    const char* text;
    bool seen;
  };
  [[nodiscard]] bool has(const char* factor) const { return terms_.contains(factor); }
  [[nodiscard]] bool rose(const char* counter) const {
    return value_at(at_wall_, counter) > kRose * value_at(at_baseline_, counter);
  }
  [[nodiscard]] bool failed() const {
    return std::any_of(wall_.begin(), wall_.end(), [](const Observation& one) {
      return one.outcome == Outcome::kFailed || one.outcome == Outcome::kTimedOut;
    });
  }
  [[nodiscard]] bool slow_deletion() const {
    const auto wall = mean_measure(wall_, "rule_delete_us");
    const auto usual = mean_measure(baseline_, "rule_delete_us");
    return wall && usual && *wall > kSlowDeletion * *usual;
  }
  [[nodiscard]] bool walks() const {
    return (has("client_encap_masks") && rose("tx_steering_pipe_hops")) ||
           (has("server_decap_masks") && rose("server.rx_steering_pipe_hops")) ||
           (has("server_encap_masks") && rose("server.tx_steering_pipe_hops")) ||
           (has("client_decap_masks") && rose("rx_steering_pipe_hops"));
  }

  const std::vector<Observation>& wall_;
  const std::vector<Observation>& baseline_;
  std::set<std::string> terms_;
  std::map<std::string, double> at_wall_;
  std::map<std::string, double> at_baseline_;
};

class PathFinder {
 public:
  PathFinder(Surroundings& around, CriticalPath& found) : around_(around), found_(found) {
    for (std::size_t i = 0; i < stages_.size(); ++i) stages_[i].stage = static_cast<Stage>(i);
    for (const Moved& moved : around.settings()) {
      if (const auto stage = stage_of_factor(moved.factor)) {
        stages_[static_cast<std::size_t>(*stage)].settings.push_back(moved.factor);
      } else {
        found_.elsewhere.push_back(moved.factor);
      }
    }
  }

  Result<void> run() {
    std::vector<Configuration> wanted = {around_.baseline(), around_.wall()};
    for (const StageOnPath& stage : stages_) {
      if (stage.settings.empty()) continue;
      for (const Configuration& one : {healed(stage), alone(stage), up_to(stage)}) {
        if (around_.allows(one)) wanted.push_back(one);
      }
    }
    auto done = around_.test(wanted, kEach, "which stage holds the wall");
    if (!done) return done;
    for (StageOnPath& stage : stages_) judge(stage);
    compare_counters();
    for (StageOnPath& stage : stages_) {
      if (!stage.settings.empty() || !stage.counters.empty()) found_.stages.push_back(stage);
    }
    return {};
  }

 private:
  /// `from`, with the settings of a stage as in `to`.
  [[nodiscard]] static Configuration with(Configuration from, const StageOnPath& stage,
                                          const Configuration& to) {
    for (const std::string& factor : stage.settings) from.set(factor, *to.find(factor));
    return from;
  }
  [[nodiscard]] Configuration healed(const StageOnPath& stage) const {
    return with(around_.wall(), stage, around_.baseline());
  }
  [[nodiscard]] Configuration alone(const StageOnPath& stage) const {
    return with(around_.baseline(), stage, around_.wall());
  }
  [[nodiscard]] Configuration up_to(const StageOnPath& last) const {
    Configuration whole = around_.baseline();
    for (const StageOnPath& stage : stages_) {
      if (stage.stage <= last.stage) whole = with(whole, stage, around_.wall());
    }
    return whole;
  }

  void judge(StageOnPath& stage) const {
    if (stage.settings.empty()) return;
    stage.healed = around_.ratio(healed(stage), around_.wall());
    stage.alone = around_.ratio(alone(stage), around_.baseline());
    stage.up_to_here = around_.ratio(up_to(stage), around_.baseline());
    const auto gap = around_.ratio(around_.baseline(), around_.wall());
    if (!gap || !stage.healed) return;
    const double way = std::log(gap->value);
    const double back = std::log(stage.healed->value);
    const bool sure = way > 0.0 ? stage.healed->low > 1.0 : stage.healed->high < 1.0;
    stage.holds = sure && back / way > kMostOfTheWay;
  }

  void compare_counters() {
    const auto wall = counters_of(around_.observations(around_.wall()));
    const auto usual = counters_of(around_.observations(around_.baseline()));
    double most = kRose;
    for (const auto& [name, value] : wall) {
      const auto stage = stage_of_counter(name);
      const MovedCounter moved{name, value_at(usual, name), value};
      if (!stage || rise_of(moved) < kRose) continue;
      stages_[static_cast<std::size_t>(*stage)].counters.push_back(moved);
      if (rise_of(moved) <= most) continue;
      most = rise_of(moved);
      found_.by_counters = *stage;
    }
    for (StageOnPath& stage : stages_) {
      std::stable_sort(stage.counters.begin(), stage.counters.end(),
                       [](const auto& a, const auto& b) { return rise_of(a) > rise_of(b); });
      if (stage.counters.size() > kMostCounters) stage.counters.resize(kMostCounters);
    }
  }

  Surroundings& around_;
  CriticalPath& found_;
  std::array<StageOnPath, kStages> stages_;
};

}  // namespace

CriticalPath path_of_stuck_device() {
  CriticalPath path;
  path.symptom = "S9";
  path.symptom_text = "performance does not come back after the load until the device is reset";
  return path;
}

Result<void> find_path(Surroundings& around, const std::vector<Cause>& causes,
                       CriticalPath& found) {
  found.wall = around.wall();
  const std::size_t before = around.tests();
  auto done = PathFinder(around, found).run();
  found.tests = around.tests() - before;
  if (done) Symptoms(around, causes).name(found);
  return done;
}

}  // namespace greynic::causal
