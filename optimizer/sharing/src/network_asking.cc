#include <algorithm>
#include <utility>

#include "network_parts.h"

namespace greynic::sharing {
namespace {

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

}  // namespace

/// It is to be asked for, once more: by its thread, when that has time, or by the broker.
void Network::want(std::uint32_t m) {
  const Message& message = messages_[m];
  if (way_.shared) return asker_of(message).inbox.push_back(m);
  double& free = asker_of(message).thread_free[ends_[message.end].thread];
  free = std::max(free, now_) + spread(posting_ns_[message.demand]);
  ends_[message.end].order.push_back(m);
  ring(message.end, free, 1);
}

/// A broker is told of all that is done, posts what has waited, hands word to those who asked and takes what they ask
/// next, and posts that. Its thread is free again only then.
void Network::serve(Host& host) {
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

void Network::served(Host& host) {
  host.broker_busy = false;
  serve(host);
}

/// Posts while few bytes are under way, demand by demand in turn. Gives when its doorbell is rung.
double Network::fill(std::uint32_t e, double time) {
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

double Network::spread(double ns) { return ns * (1 + kSpread * (random_.uniform() - 0.5)); }

/// What a message costs a broker's thread beside posting and being told.
double Network::ring_ns() const { return matrix_.broker_ns + kTellNs * (1 - 1.0 / kTellEvery); }

/// The last `count` are posted together. One that is alone on its QP comes with its doorbell; others are
/// fetched, also while those before them still wait.
void Network::ring(std::uint32_t e, double time, std::uint32_t count) {
  End& end = ends_[e];
  end.unrung += count;
  at(time, Kind::kRung, e, count);
  if (end.order.size() > 1) time += rnic_.request_fetch_ns;
  for (std::size_t i = end.order.size() - count; i < end.order.size(); ++i) {
    messages_[end.order[i]].fetched_at = time;
  }
}

void Network::rung(std::uint32_t e, std::uint32_t count) {
  End& end = ends_[e];
  for (; count > 0; --count) {
    const std::uint32_t m = end.order[end.order.size() - end.unrung--];
    messages_[m].turns_left = times_[messages_[m].demand].turns;
    end.asks.messages.push_back(m);
  }
  join(e, false);
}

/// Requests of a QP complete in the order in which they were posted.
void Network::done(std::uint32_t m) {
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

}  // namespace greynic::sharing
