#include "fleet/network.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace greynic::twin {
namespace {

constexpr std::size_t kMostIterations = 2000;
constexpr double kSettled = 1e-6;  ///< largest relative change of total throughput in two passes
constexpr double kLongestStep = 64;
constexpr double kLongestLog = 50;

/// One queue of each RNIC (or leaf).
struct Queues {
  explicit Queues(std::size_t count)
      : length(count, 0.0), found(count, 0.0), visitors(count, 0.0), load(count, 0.0) {}
  std::vector<double> length;    ///< messages in it, mean
  std::vector<double> found;     ///< what one that arrives finds before it
  std::vector<double> visitors;  ///< messages that ever come here
  std::vector<double> load;      ///< utilisation: arrivals x time of each

  void look() {
    for (std::size_t i = 0; i < length.size(); ++i) {
      found[i] = visitors[i] > 1 ? length[i] * (visitors[i] - 1) / visitors[i] : 0.0;
      load[i] = 0;
    }
  }
  void settle() {
    for (std::size_t i = 0; i < length.size(); ++i) length[i] = load[i] * (1 + found[i]);
  }
};

class Solver {
 public:
  Solver(const FleetPlacement& placement, const std::vector<MessageCost>& costs,
         const FleetTraffic& traffic)
      : p_(placement),
        costs_(costs),
        t_(traffic),
        send_(costs.size()),
        receive_(costs.size()),
        fetch_(costs.size()),
        software_(costs.size()),
        up_(placement.leaf_count),
        down_(placement.leaf_count),
        at_sender_(costs.size()),
        at_receiver_(costs.size()),
        sent_(costs.size()),
        host_sum_(placement.host_count, 0.0),
        leaf_sum_(placement.leaf_count, 0.0),
        rate_(placement.groups.size()),
        cycle_(placement.groups.size()),
        window_(placement.groups.size()) {
    count_visitors();
  }

  /// Plain iteration forgets an imbalance among n messages at a rate of 1 - 2 / n a pass. So every
  /// two passes are extrapolated along the way they went (SQUAREM, steplength S3).
  FleetFlow run() {
    FleetFlow flow;
    double before = 0;
    std::vector<double> start = logs();
    while (flow.iterations < kMostIterations && !flow.converged) {
      (void)pass();
      const std::vector<double> once = logs();
      const double total = pass();
      const std::vector<double> twice = logs();
      flow.iterations += 2;
      flow.converged = std::abs(total - before) <= kSettled * total;
      before = total;
      if (!flow.converged) start = extrapolate(start, once, twice);
    }
    finish(flow);
    return flow;
  }

 private:
  void count_visitors() {
    for (std::size_t s = 0; s < p_.service_count(); ++s) {
      double all = 0;
      for_groups(s, [&](std::uint32_t g, const FleetGroup& group) {
        const double own = std::max(1.0, t_.active_peer_share * group.peers_remote);
        window_[g] = group.peers_remote > 0 ? own * group.container_count : 0.0;
        all += window_[g];
      });
      for_groups(s, [&](std::uint32_t g, const FleetGroup& group) {
        const std::uint32_t r = group.rnic;
        send_.visitors[r] += window_[g];
        up_.visitors[p_.leaf_of[r]] += window_[g];
        receive_.visitors[r] += all - window_[g];
        down_.visitors[p_.leaf_of[r]] += all / (p_.first[s + 1] - p_.first[s]);
      });
    }
    for (std::size_t r = 0; r < costs_.size(); ++r) {
      fetch_.visitors[r] = software_.visitors[r] = send_.visitors[r] + receive_.visitors[r];
    }
  }

  template <typename Visit>
  void for_groups(std::size_t service, const Visit& visit) const {
    for (std::uint32_t g = p_.first[service]; g < p_.first[service + 1]; ++g) {
      visit(g, p_.groups[g]);
    }
  }

  [[nodiscard]] std::array<Queues*, 6> all_queues() {
    return {&send_, &receive_, &fetch_, &software_, &up_, &down_};
  }

  [[nodiscard]] std::vector<double> logs() {
    std::vector<double> x;
    x.reserve(4 * costs_.size() + 2 * p_.leaf_count);
    for (const Queues* queues : all_queues()) {
      for (const double length : queues->length) x.push_back(std::log1p(length));
    }
    return x;
  }

  /// Sets the queues to where the last two passes lead, and returns that.
  std::vector<double> extrapolate(const std::vector<double>& start, const std::vector<double>& once,
                                  const std::vector<double>& twice) {
    double moved = 0;
    double turned = 0;
    for (std::size_t i = 0; i < start.size(); ++i) {
      const double r = once[i] - start[i];
      const double v = twice[i] - once[i] - r;
      moved += r * r;
      turned += v * v;
    }
    const double step = turned > 0 ? std::clamp(std::sqrt(moved / turned), 1.0, kLongestStep) : 1.0;
    std::vector<double> next(start.size());
    std::size_t i = 0;
    for (Queues* queues : all_queues()) {
      for (double& length : queues->length) {
        const double r = once[i] - start[i];
        const double v = twice[i] - once[i] - r;
        next[i] = std::clamp(start[i] + 2 * step * r + step * step * v, 0.0, kLongestLog);
        length = std::expm1(next[i++]);
      }
    }
    return next;
  }

  double pass() {
    for (Queues* queues : all_queues()) queues->look();
    for (std::size_t r = 0; r < costs_.size(); ++r) {
      const MessageCost& c = costs_[r];
      const double waits =
          c.software_share * c.software_delay_ns + c.software_ns * software_.found[r];
      at_sender_[r] = c.send_delay_ns + std::max(c.send_ns, c.receive_ns) +
                      c.send_ns * send_.found[r] + c.send_fetch_ns * fetch_.found[r] + waits;
      at_receiver_[r] = c.receive_delay_ns + c.receive_ns * receive_.found[r] +
                        c.receive_fetch_ns * fetch_.found[r] + waits;
    }
    std::fill(sent_.begin(), sent_.end(), 0.0);
    double total = 0;
    for (std::size_t s = 0; s < p_.service_count(); ++s) total += pass_service(s);
    for (std::size_t r = 0; r < costs_.size(); ++r) {
      send_.load[r] = sent_[r] * costs_[r].send_ns;
      software_.load[r] += sent_[r] * costs_[r].software_ns;
      fetch_.load[r] += sent_[r] * costs_[r].send_fetch_ns;
    }
    for (Queues* queues : all_queues()) queues->settle();
    return total;
  }

  double pass_service(std::size_t s) {
    double receivers = 0;
    double leaves = 0;
    for_groups(s, [&](std::uint32_t, const FleetGroup& group) {
      const double n = group.container_count;
      const double wait = n * at_receiver_[group.rnic];
      const double down = n * t_.leaf_link_ns * down_.found[p_.leaf_of[group.rnic]];
      host_sum_[p_.host_of[group.rnic]] += wait;
      leaf_sum_[p_.leaf_of[group.rnic]] += down;
      receivers += wait;
      leaves += down;
    });
    for_groups(s, [&](std::uint32_t g, const FleetGroup& group) {
      if (group.peers_remote == 0) return;
      const std::uint32_t leaf = p_.leaf_of[group.rnic];
      const double remote = group.peers_remote;
      const double away = group.peers_away / remote;
      double cycle = at_sender_[group.rnic] + t_.return_ns +
                     (receivers - host_sum_[p_.host_of[group.rnic]]) / remote +
                     away * (t_.away_delay_ns + t_.leaf_link_ns * up_.found[leaf]);
      if (group.peers_away > 0) cycle += (leaves - leaf_sum_[leaf]) / remote;
      cycle_[g] = cycle;
      rate_[g] = window_[g] / cycle;
      if (!t_.most_per_ns.empty()) {
        const double own = window_[g] / send_.visitors[group.rnic];
        rate_[g] = std::min(rate_[g], own * t_.most_per_ns[group.rnic]);
      }
    });
    for_groups(s, [&](std::uint32_t, const FleetGroup& group) {
      host_sum_[p_.host_of[group.rnic]] = leaf_sum_[p_.leaf_of[group.rnic]] = 0;
    });
    double to_each = 0;  // what one container of the service is sent
    double total = 0;
    for_groups(s, [&](std::uint32_t g, const FleetGroup& group) {
      if (group.peers_remote == 0) return;
      const double share = rate_[g] / group.peers_remote;
      host_sum_[p_.host_of[group.rnic]] += share;
      leaf_sum_[p_.leaf_of[group.rnic]] += share;
      to_each += share;
      total += rate_[g];
      sent_[group.rnic] += rate_[g];
      up_.load[p_.leaf_of[group.rnic]] += share * group.peers_away * t_.leaf_link_ns;
    });
    for_groups(s, [&](std::uint32_t, const FleetGroup& group) {
      const std::uint32_t r = group.rnic;
      const double come = group.container_count * (to_each - host_sum_[p_.host_of[r]]);
      receive_.load[r] += come * costs_[r].receive_ns;
      fetch_.load[r] += come * costs_[r].receive_fetch_ns;
      software_.load[r] += come * costs_[r].software_ns;
      down_.load[p_.leaf_of[r]] +=
          group.container_count * (to_each - leaf_sum_[p_.leaf_of[r]]) * t_.leaf_link_ns;
    });
    for_groups(s, [&](std::uint32_t, const FleetGroup& group) {
      host_sum_[p_.host_of[group.rnic]] = leaf_sum_[p_.leaf_of[group.rnic]] = 0;
    });
    return total;
  }

  /// What software adds to a message that goes through it, at one RNIC.
  [[nodiscard]] double software_adds(std::size_t r) const {
    const MessageCost& c = costs_[r];
    if (c.software_share <= 0) return 0;
    return c.software_delay_ns + c.software_ns / c.software_share * software_.found[r];
  }

  void finish(FleetFlow& flow) const {
    flow.classes.resize(p_.groups.size());
    flow.sent_per_second.resize(costs_.size());
    for (std::size_t r = 0; r < costs_.size(); ++r) flow.sent_per_second[r] = sent_[r] * 1e9;
    flow.software_utilisation = software_.load;
    for (std::size_t s = 0; s < p_.service_count(); ++s) {
      double adds = 0;
      double shares = 0;
      double members = 0;
      for_groups(s, [&](std::uint32_t, const FleetGroup& group) {
        const double n = group.container_count;
        members += n;
        shares += n * costs_[group.rnic].software_share;
        adds += n * costs_[group.rnic].software_share * software_adds(group.rnic);
      });
      for_groups(s, [&](std::uint32_t g, const FleetGroup& group) {
        if (group.peers_remote == 0) return;
        FleetFlow::Class& c = flow.classes[g];
        c.per_second = rate_[g] * 1e9;
        c.latency_ns = cycle_[g] - t_.return_ns;
        c.send_share = costs_[group.rnic].software_share;
        c.send_software_ns = software_adds(group.rnic);
        c.receive_share = shares / members;
        c.receive_software_ns = shares > 0 ? adds / shares : 0.0;
        c.hardware_ns = std::max(0.0, c.latency_ns - c.send_share * c.send_software_ns -
                                          c.receive_share * c.receive_software_ns);
      });
    }
  }

  const FleetPlacement& p_;
  const std::vector<MessageCost>& costs_;
  const FleetTraffic& t_;
  Queues send_, receive_, fetch_, software_, up_, down_;
  std::vector<double> at_sender_, at_receiver_;
  std::vector<double> sent_;
  std::vector<double> host_sum_, leaf_sum_;  ///< all 0 between services
  std::vector<double> rate_, cycle_, window_;
};

}  // namespace

FleetFlow solve_fleet(const FleetPlacement& placement, const std::vector<MessageCost>& costs,
                      const FleetTraffic& traffic) {
  return Solver(placement, costs, traffic).run();
}

}  // namespace greynic::twin
