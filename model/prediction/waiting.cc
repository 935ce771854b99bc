#include "prediction/waiting.h"

#include <algorithm>
#include <cmath>

#include "greynic/statistics/distributions.h"

namespace greynic::model {
namespace {

/// A side that is busier than this has no steady state that lasts.
constexpr double kBusiest = 0.995;

/// Sums over the streams that a message meets.
struct Load {
  double rate = 0.0;     ///< messages a microsecond
  double shared = 0.0;   ///< share of time that those keep the side busy
  double first = 0.0;    ///< mean of what a message at the side costs a newcomer, times busy
  double squares = 0.0;  ///< of that cost

  /// A newcomer waits for the turn under way, which is half over on average, and for one turn of
  /// all others; with several turns a message, the one under way is seldom its last.
  void add(double share, const Stream& stream, double turn) {
    const double part = stream.service > 0.0 ? turn / stream.service : 1.0;
    const double keeps = share * stream.rate * stream.service;
    first += keeps * turn * (1.0 - part / 2.0);
    squares += keeps * turn * turn * (1.0 - part * 2.0 / 3.0);
  }
};

double busy_of(std::span<const Stream> streams) {
  double busy = 0.0;
  for (const Stream& stream : streams) busy += stream.rate * stream.service;
  return busy;
}

/// Mean work that stands before a server, in whatever order it is done (Pollaczek-Khinchine).
double unfinished(std::span<const Stream> streams) {
  double squares = 0.0;
  for (const Stream& stream : streams) squares += stream.rate * stream.service * stream.service;
  return 0.5 * squares / (1.0 - std::min(busy_of(streams), kBusiest));
}

}  // namespace

double Wait::quantile(double share) const {
  if (some <= 1.0 - share || mean <= 0.0) return 0.0;
  const double if_any = mean / some;
  const double spread = (variance + mean * mean) / some - if_any * if_any;
  const double below = 1.0 - (1.0 - share) / some;
  if (spread <= 1e-9 * if_any * if_any) return if_any;
  const double shape = if_any * if_any / spread;
  return spread / if_any * statistics::gamma_quantile(shape, below);
}

Wait wait_in_line(std::span<const std::vector<Stream>> senders) {
  std::vector<Stream> all;
  Wait wait;
  for (const std::vector<Stream>& streams : senders) {
    wait.mean -= unfinished(streams);
    all.insert(all.end(), streams.begin(), streams.end());
  }
  wait.mean += unfinished(all);
  if (wait.mean <= 0.0) return {};
  const double tail = unfinished(all) / std::min(busy_of(all), kBusiest);
  wait.some = wait.mean / tail;
  wait.variance = 2.0 * wait.mean * tail - wait.mean * wait.mean;
  return wait;
}

Wait wait_for_turns(const Stream& own, std::span<const Stream> streams, const Restless& restless) {
  const double busy = busy_of(streams);
  Wait wait;
  if (busy <= 0.0 && restless.qps <= 0.0) return wait;
  double qps = 0.0;
  for (const Stream& stream : streams) qps += stream.qps;
  // Restless QPs take their turns out of what those with messages now and then may have at most.
  const double taken = busy * (1.0 + (qps > 0.0 ? restless.qps / qps : 0.0));
  const double idle = 1.0 - std::min(taken, kBusiest);
  Load load;
  for (const Stream& stream : streams) {
    // Messages beyond one a QP stand behind one another and take no turns. The share that does:
    // exact for one QP and for many, close to simulations between.
    const double waiting = 2.0 * stream.rate * stream.service / idle;
    const double apart = stream.qps > 1.0 ? (stream.qps - 1.0) / (stream.qps - 1.0 + waiting) : 0.0;
    const double behind = &stream == &own ? 1.0 - apart : 0.0;
    load.add(1.0 - behind, stream, stream.turn);
    load.add(behind, stream, stream.service);
    load.rate += apart * stream.rate;
    load.shared += apart * stream.rate * stream.service;
  }

  // The first turn, and all of what came before in the same QP.
  const double by_chance = load.first / idle;
  wait.mean = by_chance + restless.turns / idle;
  const double first =
      by_chance * by_chance + load.squares / idle + restless.turns * load.first / (idle * idle);

  // The turns after it, each of which meets whoever is there then.
  const double more = own.turn > 0.0 ? std::max(0.0, own.service / own.turn - 1.0) : 0.0;
  wait.mean += more * (load.shared * own.turn + restless.turns) / idle;
  double later = 0.0;
  double both = 0.0;
  if (more > 0.0 && busy > 0.0) {
    // Others come and go within as many turns as a first-come queue takes to forget.
    const double memory = unfinished(streams) / busy / own.turn;
    // How many QPs are about varies as the number of messages does, as far as one means the other.
    const double spread =
        load.shared / busy * load.shared * own.turn * (own.turn + restless.turns) / (idle * idle);
    const double faded = -std::expm1(-more / memory);
    later = spread * 2.0 * memory * memory * (more / memory - faded);
    both = std::sqrt(first * spread) * memory * faded;
  }
  wait.variance = first + later + 2.0 * both;
  const double undisturbed = idle * std::exp(-load.rate * (own.service - own.turn));
  wait.some = restless.qps > 0.0 ? 1.0 : 1.0 - undisturbed;
  return wait;
}

}  // namespace greynic::model
