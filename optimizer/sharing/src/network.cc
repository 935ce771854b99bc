#include "network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "greynic/statistics/random.h"
#include "network_parts.h"

namespace greynic::sharing {
namespace {

// What no law of rates tells, and what is taken for it: numbers of a common RNIC and switch.

/// A receiver fetches the context alone, a sender also what it keeps to match acknowledgements.
constexpr double kReceiverShare = 0.5;
/// Packets that are ready for the wire at most; all that leaves a busy port waits for them.
constexpr std::uint32_t kReadyPackets = 64;
/// Payload of one sender that a switch holds before it tells that sender to stop, and to go on.
constexpr double kStopBytes = 800e3, kGoBytes = 700e3;
/// Packets that an RNIC holds while contexts are fetched for them; then its port is paused, until it holds
/// fewer again.
constexpr std::uint32_t kHeldPackets = 512, kResumePackets = 384;
/// READs of a QP that wait for their answers; what was posted after them waits as well.
constexpr std::uint32_t kReadsOfQp = 16;
/// Requests that a broker keeps in one send queue; a few slots are for control.
constexpr std::uint32_t kQueueDepth = 120;
/// It is told of one completion in so many, of the last that it posts at a time, and whenever this part of
/// what may be under way is done.
constexpr std::size_t kTellEvery = 8;
/// What it costs its thread to be told of one; of a QP of its own a thread is told of each.
constexpr double kTellNs = 80;
/// No two requests take a processor the same time; without, what comes in step stays in step.
constexpr double kSpread = 0.06;
/// A broker's turns between applications, and what a message costs at least of them, in bytes.
constexpr double kQuantum = 65536, kLeastCost = 256;
/// Long enough that each of some thousand QPs has had turns while contexts are fetched; where all
/// are on the chip, that what exceeds a line by little has filled its port.
constexpr double kFetchingNs = 20e6, kAllThereNs = 10e6;

class Network {
 public:
  Network(const Matrix& matrix, const Way& way, const Contexts& contexts, double request_fetch_ns)
      : matrix_(matrix),
        way_(way),
        contexts_(contexts),
        request_fetch_ns_(request_fetch_ns),
        bytes_(matrix.demands.size(), 0) {
    for (const Demand& demand : matrix.demands) {
      for (const std::string& name : {demand.from, demand.to}) {
        numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size()));
      }
    }
    hosts_.resize(numbers_.size());
    const std::uint32_t threads = way.shared ? 1 : matrix.threads;
    for (Host& host : hosts_) host.thread_free.assign(threads, 0);
    way.shared ? share() : connect();
    for (Host& host : hosts_) host.contexts.emplace(contexts.entries, host.ends);
  }

  [[nodiscard]] std::uint32_t ends_of(const std::string& host) const {
    return hosts_[numbers_.at(host)].ends;
  }

  /// `posting_ns` is by demand.
  std::vector<double> goodput(const std::vector<Times>& times,
                              const std::vector<double>& posting_ns) {
    times_ = times;
    posting_ns_ = posting_ns;
    for (std::uint32_t m = 0; m < messages_.size(); ++m) want(m);
    for (Host& host : hosts_) serve(host);
    const bool all_there = std::all_of(hosts_.begin(), hosts_.end(),
                                       [](const Host& host) { return host.contexts->all_fit(); });
    const double settled = all_there ? kAllThereNs : kFetchingNs;
    run_until(settled);
    std::fill(bytes_.begin(), bytes_.end(), 0.0);
    run_until(2 * settled);
    for (double& bytes : bytes_) bytes *= 8 / settled;
    return bytes_;
  }

 private:
  std::uint32_t add_qp(std::uint32_t from, std::uint32_t to, std::uint32_t thread) {
    const auto first = static_cast<std::uint32_t>(ends_.size());
    ends_.push_back({.host = from, .far = first + 1, .thread = thread});
    ends_.push_back({.host = to, .far = first});
    for (const std::uint32_t end : {first, first + 1}) {
      ends_[end].place = hosts_[ends_[end].host].ends++;
    }
    return first;
  }
  void connect() {
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
  /// A broker makes a QP when it is first used: the first of each class to each peer, then the second of each.
  void share() {
    const Setting& setting = *way_.shared;
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    std::vector<Pair> pairs;
    for (const Demand& demand : matrix_.demands) {
      const Pair pair = std::minmax(numbers_.at(demand.from), numbers_.at(demand.to));
      if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
    }
    std::map<Pair, std::vector<std::uint32_t>> small, bulk;
    for (std::uint32_t q = 0; q < std::max(setting.latency_qps, setting.bulk_qps); ++q) {
      for (const Pair& pair : pairs) {
        if (q < setting.latency_qps) small[pair].push_back(add_qp(pair.first, pair.second, 0));
        if (q < setting.bulk_qps) bulk[pair].push_back(add_qp(pair.first, pair.second, 0));
      }
    }
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

  void at(double time, Kind kind, std::uint32_t what, std::uint32_t turns_left = 0) {
    events_.push({time, kind, what, turns_left});
  }
  void run_until(double end) {
    while (!events_.empty() && events_.top().time < end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      handle(event);
    }
  }
  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::kRung:
        return rung(event.what, event.turns_left);
      case Kind::kFetched:
        return join(event.what, false);
      case Kind::kServed:
        return served(hosts_[event.what]);
      case Kind::kTurnDone:
        return turn_done(event.what);
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

  [[nodiscard]] bool is_read(const Message& message) const {
    return matrix_.demands[message.demand].operation == Operation::kRead;
  }
  [[nodiscard]] double bytes_of(const Message& message) const {
    return static_cast<double>(matrix_.demands[message.demand].message_bytes);
  }

  Host& asker_of(const Message& message) { return hosts_[ends_[message.end].host]; }

  /// It is to be asked for, once more: by its thread, when that has time, or by the broker.
  void want(std::uint32_t m) {
    const Message& message = messages_[m];
    if (way_.shared) return asker_of(message).inbox.push_back(m);
    double& free = asker_of(message).thread_free[ends_[message.end].thread];
    free = std::max(free, now_) + spread(posting_ns_[message.demand]);
    ends_[message.end].order.push_back(m);
    ring(message.end, free, 1);
  }
  /// A broker is told of all that is done, posts what has waited, hands word to those who asked and takes what they ask
  /// next, and posts that. Its thread is free again only then.
  void serve(Host& host) {
    if (host.broker_busy || host.inbox.empty()) return;
    host.broker_busy = true;
    const std::vector<std::uint32_t> batch = std::exchange(host.inbox, {});
    double time = now_;
    for (const std::uint32_t m : batch) {
      if (messages_[m].told) time += kTellNs;
      End& end = ends_[messages_[m].end];
      if (!std::exchange(messages_[m].posted, false)) continue;
      end.in_flight -= static_cast<std::uint64_t>(bytes_of(messages_[m]));
      --end.posted;
    }
    for (const std::uint32_t m : batch) time = fill(messages_[m].end, time);
    for (const std::uint32_t m : batch) {
      time += spread(ring_ns());
      End& end = ends_[messages_[m].end];
      End::Waiting& waiting = end.waiting[messages_[m].demand];
      if (waiting.messages.empty()) end.turns.push_back(messages_[m].demand);
      waiting.messages.push_back(m);
    }
    for (const std::uint32_t m : batch) time = fill(messages_[m].end, time);
    at(time, Kind::kServed, static_cast<std::uint32_t>(&host - hosts_.data()));
  }
  void served(Host& host) {
    host.broker_busy = false;
    serve(host);
  }
  /// Posts while few bytes are under way, demand by demand in turn. Gives when its doorbell is rung.
  double fill(std::uint32_t e, double time) {
    End& end = ends_[e];
    const std::size_t before = end.order.size();
    double untold = 0;
    while (end.in_flight < way_.shared->in_flight_bytes && end.posted < kQueueDepth &&
           !end.turns.empty()) {
      End::Waiting& next = end.waiting[end.turns.front()];
      if (next.credit <= 0) {
        next.credit += kQuantum;
        end.turns.push_back(end.turns.front());
        end.turns.pop_front();
        continue;
      }
      const std::uint32_t m = next.messages.front();
      next.messages.pop_front();
      if (next.messages.empty()) end.turns.pop_front();
      next.credit -= std::max(kLeastCost, bytes_of(messages_[m]));
      end.in_flight += static_cast<std::uint64_t>(bytes_of(messages_[m]));
      ++end.posted;
      messages_[m].posted = true;
      untold += bytes_of(messages_[m]);
      const bool many = untold * kTellEvery >= static_cast<double>(way_.shared->in_flight_bytes);
      messages_[m].told = end.order.size() % kTellEvery == 0 || many;
      if (messages_[m].told) untold = 0;
      end.order.push_back(m);
      time += spread(std::max(0.0, posting_ns_[messages_[m].demand] - kTellNs));
    }
    if (before == end.order.size()) return time;
    messages_[end.order.back()].told = true;
    ring(e, time, static_cast<std::uint32_t>(end.order.size() - before));
    return time;
  }
  double spread(double ns) { return ns * (1 + kSpread * (random_.uniform() - 0.5)); }
  /// What a message costs a broker's thread beside posting and being told.
  [[nodiscard]] double ring_ns() const {
    return matrix_.broker_ns + kTellNs * (1 - 1.0 / kTellEvery);
  }
  /// The last `count` are posted together. One that is alone on its QP comes with its doorbell; others are
  /// fetched, also while those before them still wait.
  void ring(std::uint32_t e, double time, std::uint32_t count) {
    End& end = ends_[e];
    end.unrung += count;
    at(time, Kind::kRung, e, count);
    if (end.order.size() > 1) time += request_fetch_ns_;
    for (std::size_t i = end.order.size() - count; i < end.order.size(); ++i) {
      messages_[end.order[i]].fetched_at = time;
    }
  }
  void rung(std::uint32_t e, std::uint32_t count) {
    End& end = ends_[e];
    for (; count > 0; --count) {
      const std::uint32_t m = end.order[end.order.size() - end.unrung--];
      messages_[m].turns_left = times_[messages_[m].demand].turns;
      end.asks.messages.push_back(m);
    }
    join(e, false);
  }
  /// Requests of a QP complete in the order in which they were posted.
  void done(std::uint32_t m) {
    Message& message = messages_[m];
    End& end = ends_[message.end];
    message.answered = true;
    if (is_read(message)) {
      --end.reads_open;
      join(message.end, false);
    }
    std::size_t complete = 0, told = 0;
    while (complete < end.order.size() && messages_[end.order[complete]].answered) {
      if (messages_[end.order[complete++]].told) told = complete;
    }
    for (; told > 0; --told) {
      const std::uint32_t finished = end.order.front();
      end.order.pop_front();
      messages_[finished].answered = false;
      want(finished);
    }
    if (way_.shared) serve(asker_of(message));
  }

  Lane& lane_of(std::uint32_t id) {
    return (id & 1) != 0 ? ends_[id >> 1].answers : ends_[id >> 1].asks;
  }
  /// Takes its place among those that have turns, and asks for its context at once.
  void join(std::uint32_t e, bool answers) {
    End& end = ends_[e];
    Lane& lane = answers ? end.answers : end.asks;
    if (lane.in_ring || lane.messages.empty()) return;
    const Message& next = messages_[lane.messages.front()];
    if (!answers && is_read(next) && end.reads_open >= kReadsOfQp) return;
    if (!answers && next.fetched_at > now_) return at(next.fetched_at, Kind::kFetched, e);
    Host& host = hosts_[end.host];
    const std::uint32_t unit = end.place % kUnits;
    lane.in_ring = true;
    lane.context_at = host.contexts->touch(end.place) ? 0 : fetched(host, now_, 1);
    host.units[unit].ring.push_back(e << 1 | (answers ? 1U : 0U));
    begin_turn(end.host * kUnits + unit);
  }
  double fetched(Host& host, double from, double share) {
    return host.fetcher_free = std::max(host.fetcher_free, from) + share * contexts_.fetch_ns;
  }
  void begin_turn(std::uint32_t which) {
    Host& host = hosts_[which / kUnits];
    Unit& unit = host.units[which % kUnits];
    if (unit.busy || unit.ring.empty()) return;
    unit.busy = true;
    const std::uint32_t id = unit.ring.front();
    if (host.stopped && !asks(id)) return host.waiting_units.push_back(which);
    const Times& times = times_[messages_[lane_of(id).messages.front()].demand];
    const double turn =
        kUnits * (asks(id) ? times.unit_ns / times.packets : times.unit_ns / times.turns);
    at(std::max({now_ + turn, lane_of(id).context_at + turn, room_at(host)}), Kind::kTurnDone,
       which);
  }
  /// When a packet more may be ready for the wire.
  double room_at(Host& host) {
    while (!host.ready.empty() && host.ready.front() <= now_) host.ready.pop_front();
    const std::size_t count = host.ready.size();
    return count < kReadyPackets ? 0 : host.ready[count - kReadyPackets];
  }
  /// So many packets are ready; when the last will have left.
  double send(Host& host, std::uint32_t packets, double ns) {
    for (std::uint32_t i = 0; i < packets; ++i) {
      host.wire_until = std::max(host.wire_until, now_) + ns / packets;
      host.ready.push_back(host.wire_until);
    }
    return host.wire_until;
  }
  /// Is the lane's next message a READ's request?
  bool asks(std::uint32_t id) {
    return (id & 1) == 0 && is_read(messages_[lane_of(id).messages.front()]);
  }
  void turn_done(std::uint32_t which) {
    Host& host = hosts_[which / kUnits];
    Unit& unit = host.units[which % kUnits];
    const std::uint32_t id = unit.ring.front();
    unit.ring.pop_front();
    unit.busy = false;
    const bool request = asks(id);
    Lane& lane = lane_of(id);
    lane.in_ring = false;
    const std::uint32_t m = lane.messages.front();
    Message& message = messages_[m];
    const Times& times = times_[message.demand];
    if (!request) --message.turns_left;
    if (request || message.turns_left == 0) lane.messages.pop_front();
    if (request) ++ends_[message.end].reads_open;
    const double left = request ? send(host, 1, times.header_ns)
                                : send(host, times.packets_of_turn(), times.wire_ns / times.turns);
    at(left + times.trip_ns / 2, request ? Kind::kAsked : Kind::kArrived, m, message.turns_left);
    join(id >> 1, (id & 1) != 0);
    begin_turn(which);
  }
  [[nodiscard]] bool goes_back(const Event& event) const {
    return event.kind == Kind::kWord ||
           (event.kind == Kind::kArrived && is_read(messages_[event.what]));
  }
  Host& asked(const Message& message) { return hosts_[ends_[ends_[message.end].far].host]; }
  Host& receiver(const Event& event) {
    const Message& message = messages_[event.what];
    return goes_back(event) ? asker_of(message) : asked(message);
  }
  Host& sender(const Event& event) {
    const Message& message = messages_[event.what];
    return goes_back(event) ? asked(message) : asker_of(message);
  }
  [[nodiscard]] double wire_ns(const Event& event) const {
    const Times& times = times_[messages_[event.what].demand];
    return event.kind == Kind::kArrived ? times.wire_ns / times.turns : times.header_ns;
  }
  [[nodiscard]] double payload(const Event& event) const {
    const Message& message = messages_[event.what];
    return event.kind == Kind::kArrived ? bytes_of(message) / times_[message.demand].turns : 0;
  }
  /// Words queue at the port like all else.
  void at_port(const Event& event) {
    Host& from = sender(event);
    from.in_switch += payload(event);
    from.stopped = from.stopped || from.in_switch > kStopBytes;
    Host& host = receiver(event);
    host.port.push_back(event);
    leave_port(host);
  }
  void leave_port(Host& host) {
    if (host.port_busy || host.port_paused || host.port.empty()) return;
    host.port_busy = true;
    // It came in while it was sent: on an idle port the last packet leaves as it comes.
    host.port_until = std::max(now_, host.port_until + wire_ns(host.port.front()));
    at(host.port_until, Kind::kLeft, static_cast<std::uint32_t>(&host - hosts_.data()));
  }
  void left_port(Host& host) {
    const Event event = host.port.front();
    host.port.pop_front();
    host.port_busy = false;
    Host& from = sender(event);
    from.in_switch -= payload(event);
    if (from.stopped && from.in_switch < kGoBytes) go_on(from);
    if (event.kind == Kind::kArrived) {
      arrived(host, event.what, event.turns_left);
    } else if (event.kind == Kind::kAsked) {
      heard(event.what);
    } else {
      done(event.what);
    }
    leave_port(host);
  }
  void go_on(Host& host) {
    host.stopped = false;
    for (const std::uint32_t which : std::exchange(host.waiting_units, {})) {
      host.units[which % kUnits].busy = false;
      begin_turn(which);
    }
  }
  void heard(std::uint32_t m) {
    const std::uint32_t far = ends_[messages_[m].end].far;
    ends_[far].answers.messages.push_back(m);
    join(far, true);
  }
  void arrived(Host& host, std::uint32_t m, std::uint32_t turns_left) {
    const Message& message = messages_[m];
    const Times& times = times_[message.demand];
    const End& end = ends_[is_read(message) ? message.end : ends_[message.end].far];
    double from = now_;
    if (!host.contexts->touch(end.place)) from = fetched(host, from, kReceiverShare);
    host.taken_until = std::max(from, host.taken_until);
    bytes_[message.demand] += bytes_of(message) / times.turns;
    host.held += times.packets_of_turn();
    host.port_paused = host.port_paused || host.held >= kHeldPackets;
    at(host.taken_until, Kind::kTaken, m, turns_left);
  }
  void taken(std::uint32_t m, std::uint32_t turns_left) {
    const Message& message = messages_[m];
    Host& taker = is_read(message) ? asker_of(message) : asked(message);
    const Times& times = times_[message.demand];
    taker.held -= times.packets_of_turn();
    if (taker.port_paused && taker.held < kResumePackets) {
      taker.port_paused = false;
      taker.port_until = std::max(taker.port_until, now_);
      leave_port(taker);
    }
    if (turns_left > 0) return;
    if (is_read(message)) return done(m);
    // Word of a WRITE goes back, behind what is ready for the wire there.
    at(send(taker, 1, times.header_ns) + times.trip_ns / 2, Kind::kWord, m);
  }

  const Matrix& matrix_;
  const Way& way_;
  Contexts contexts_;
  double request_fetch_ns_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<Host> hosts_;
  std::vector<End> ends_;
  std::vector<Message> messages_;
  std::vector<Times> times_;
  std::vector<double> posting_ns_, bytes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  statistics::Random random_{1};
};

}  // namespace

Result<std::vector<double>> play(const model::Model& model, const Matrix& matrix, const Way& way) {
  const auto contexts = contexts_of(model);
  if (!contexts) return pass_on(contexts);
  const auto fetch_ns = request_fetch_ns(model);
  if (!fetch_ns) return pass_on(fetch_ns);
  Network network(matrix, way, *contexts, *fetch_ns);
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
    const double parts =
        *ns + one.header_ns +
        kUnits * (one.unit_ns / one.turns + (read ? one.unit_ns / one.packets : 0));
    one.trip_ns = std::max(0.0, one.trip_ns - parts);
  }
  return network.goodput(times, posting);
}

}  // namespace greynic::sharing
