#include "network.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "network_parts.h"

namespace greynic::sharing {
namespace {

/// Long enough that some thousand QPs have had long messages answered while contexts are fetched.
constexpr double kFetchingNs = 100e6;
/// Where all are on the chip, so much at a time, until no port fills by so many bytes in it any more: one that is asked
/// for a little more than it passes on takes long, and all that goes there waits the longer.
constexpr double kAllThereNs = 10e6, kLongestNs = 300e6, kFillsBytes = 4e3;
/// What hosts do at most, several times what four busy ones need: then a way is played through in a minute or two. A law that lets
/// messages pass in no time would have no end of it. Looked at now and then; the first messages all come at once.
constexpr double kMostEventsPerNs = 4;
constexpr std::uint64_t kLookEvery = 10'000'000;

}  // namespace

Network::Network(const Matrix& matrix, const Way& way, const Rnic& rnic)
    : matrix_(matrix), way_(way), rnic_(rnic), bytes_(matrix.demands.size(), 0) {
  for (const Demand& demand : matrix.demands) {
    for (const std::string& name : {demand.from, demand.to}) {
      numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size()));
    }
  }
  hosts_.resize(numbers_.size());
  const std::uint32_t threads = way.shared ? 1 : matrix.threads;
  for (Host& host : hosts_) host.thread_free.assign(threads, 0);
  way.shared ? share() : connect();
  for (Host& host : hosts_) {
    host.contexts.emplace(rnic.contexts.entries, host.ends);
    host.units.resize(rnic.units);
  }
}

Result<std::vector<double>> Network::goodput(const std::vector<Times>& times,
                                             const std::vector<double>& posting_ns) {
  times_ = times;
  posting_ns_ = posting_ns;
  for (std::uint32_t m = 0; m < messages_.size(); ++m) want(m);
  for (Host& host : hosts_) serve(host);
  const bool all_there = std::all_of(hosts_.begin(), hosts_.end(),
                                     [](const Host& host) { return host.contexts->all_fit(); });
  const double measured = all_there ? kAllThereNs : kFetchingNs;
  double settled = measured;
  run_until(settled);
  for (bool fills = all_there; fills && settled < kLongestNs;) {
    fills = fills_until(settled += kAllThereNs);
  }
  std::fill(bytes_.begin(), bytes_.end(), 0.0);
  run_until(settled + measured);
  if (too_many_) {
    return fail(
        ErrorCode::kTooBig,
        fmt::format("{} hosts with {} connections do more than {:.0f} things in a nanosecond by "
                    "this model; ask for fewer hosts at a time, or fit it anew",
                    hosts_.size(), ends_.size() / 2, kMostEventsPerNs));
  }
  for (double& bytes : bytes_) bytes *= 8 / measured;
  return bytes_;
}

/// Does a switch hold more of a host until then, at the least, than it did before?
bool Network::fills_until(double end) {
  std::vector<double> before;
  for (Host& host : hosts_) before.push_back(std::exchange(host.least_in_switch, host.in_switch));
  run_until(end);
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (hosts_[h].least_in_switch > before[h] + kFillsBytes) return true;
  }
  return false;
}

std::uint32_t Network::add_qp(std::uint32_t from, std::uint32_t to, std::uint32_t thread) {
  const auto first = static_cast<std::uint32_t>(ends_.size());
  ends_.push_back({.host = from, .far = first + 1, .thread = thread});
  ends_.push_back({.host = to, .far = first});
  for (const std::uint32_t end : {first, first + 1}) {
    ends_[end].place = hosts_[ends_[end].host].ends++;
  }
  return first;
}

void Network::connect() {
  std::uint32_t number = 0;
  for (std::uint32_t d = 0; d < matrix_.demands.size(); ++d) {
    const Demand& demand = matrix_.demands[d];
    for (std::uint32_t i = 0; i < demand.connections; ++i, ++number) {
      const std::uint32_t end =
          add_qp(numbers_.at(demand.from), numbers_.at(demand.to), number % matrix_.threads);
      for (std::uint32_t k = 0; k < demand.outstanding; ++k) messages_.push_back({d, end});
    }
  }
}

/// A broker makes the first QP of each class when it meets a peer, the others when they are first used: those of
/// small messages also open connections.
void Network::share() {
  const Setting& setting = *way_.shared;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<Pair> pairs;
  for (const Demand& demand : matrix_.demands) {
    const Pair pair = std::minmax(numbers_.at(demand.from), numbers_.at(demand.to));
    if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
  }
  std::map<Pair, std::vector<std::uint32_t>> small, bulk;
  const auto add = [&](auto& qps, const Pair& pair, std::uint32_t count) {
    while (qps[pair].size() < count) qps[pair].push_back(add_qp(pair.first, pair.second, 0));
  };
  for (const Pair& pair : pairs) {
    add(small, pair, 1);
    add(bulk, pair, std::min(setting.bulk_qps, 1U));
  }
  for (const Pair& pair : pairs) add(small, pair, setting.latency_qps);
  for (const Pair& pair : pairs) add(bulk, pair, setting.bulk_qps);
  for (std::uint32_t d = 0; d < matrix_.demands.size(); ++d) {
    const Demand& demand = matrix_.demands[d];
    const std::uint32_t from = numbers_.at(demand.from), to = numbers_.at(demand.to);
    const bool is_bulk = demand.message_bytes > setting.bulk_bytes && setting.bulk_qps > 0;
    const auto& qps = (is_bulk ? bulk : small).at(std::minmax(from, to));
    for (std::uint32_t i = 0; i < demand.connections; ++i) {
      const std::uint32_t end = qps[i % qps.size()] + (from < to ? 0 : 1);
      for (std::uint32_t k = 0; k < demand.outstanding; ++k) messages_.push_back({d, end});
    }
  }
}

void Network::run_until(double end) {
  while (!events_.empty() && events_.top().time < end && !too_many_) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    handle(event);
    if (++handled_ % kLookEvery == 0) {
      too_many_ = static_cast<double>(handled_) > kMostEventsPerNs * now_;
    }
  }
}

void Network::handle(const Event& event) {
  switch (event.kind) {
    case Kind::kRung:
      return rung(event.what, event.turns_left);
    case Kind::kFetched:
      return join(event.what, false);
    case Kind::kServed:
      return served(hosts_[event.what]);
    case Kind::kPacketDone:
      return packet_done(event.what);
    case Kind::kAsked:
    case Kind::kArrived:
    case Kind::kWord:
      return at_port(event);
    case Kind::kLeft:
      return left_port(hosts_[event.what]);
    case Kind::kTaken:
      return taken(event.what, event.turns_left);
  }
}

Result<std::vector<double>> play(const model::Model& model, const Matrix& matrix, const Way& way) {
  const auto rnic = rnic_of(model);
  if (!rnic) return pass_on(rnic);
  Network network(matrix, way, *rnic);
  std::vector<Times> times;
  std::vector<double> posting;
  for (const Demand& demand : matrix.demands) {
    const auto of_demand = times_of(model, demand);
    if (!of_demand) return pass_on(of_demand);
    times.push_back(*of_demand);
    const auto ns = posting_ns(model, demand.operation, network.ends_of(demand.from),
                               way.shared ? 1 : matrix.threads, way.own_doorbells || way.shared);
    if (!ns) return pass_on(ns);
    posting.push_back(*ns);
    // A thread posts before the trip begins, and that is part of what was measured of it.
    // The whole of a trip was measured, with what threads, units and words take of it.
    Times& one = times.back();
    const bool read = demand.operation == Operation::kRead;
    const double packet_ns = std::min(rnic->packet_ns, rnic->units * one.unit_ns / one.packets);
    const double parts = *ns + one.header_ns + packet_ns * (one.packets_of_turn() + (read ? 1 : 0));
    one.trip_ns = std::max(0.0, one.trip_ns - parts);
  }
  return network.goodput(times, posting);
}

}  // namespace greynic::sharing
