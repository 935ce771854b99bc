#pragma once

/// How long a message waits for others at one side of an RNIC, where QPs take turns.

#include <span>
#include <vector>

namespace greynic::model {

/// Messages of one kind that come at random times (Poisson). Times in microseconds.
struct Stream {
  double rate = 0.0;     ///< messages a microsecond
  double service = 0.0;  ///< time one message keeps the side busy
  double turn = 0.0;     ///< the part of it for which its QP keeps others waiting, at most all
  double qps = 1.0;      ///< among which its messages are spread
};

/// QPs that always have something to send.
struct Restless {
  double qps = 0.0;
  double turns = 0.0;  ///< one turn of each, summed
};

/// Distribution of a wait: none at all with some probability, else a gamma distribution.
struct Wait {
  double some = 0.0;  ///< probability of any
  double mean = 0.0;
  double variance = 0.0;

  /// That one message in 1 / (1 - share) passes.
  [[nodiscard]] double quantile(double share) const;
};

/// Of a message of `own`, one of `streams` or none of them, at a side where those and `restless`
/// meet. The streams keep the side busy for less than what the restless leave them.
///
/// Between limits that are known exactly: with messages of one turn, and with all of them in one
/// QP, the queue of Pollaczek and Khinchine (mean and variance); with turns that are short beside
/// messages, each in a QP of its own, processor sharing, whose number of messages is geometric
/// (negative binomial beside restless QPs) and whose variance is Ott's (T. J. Ott, The sojourn-time
/// distribution in the M/G/1 queue with processor sharing, 1984).
[[nodiscard]] Wait wait_for_turns(const Stream& own, std::span<const Stream> streams,
                                  const Restless& restless);

/// Of any message at a side that takes packets as they come from several senders, one of which each
/// of `senders` lists the streams of. What stands there is the work unfinished in all less what has
/// not left its sender yet, and its tail is as long as that of all.
[[nodiscard]] Wait wait_in_line(std::span<const std::vector<Stream>> senders);

}  // namespace greynic::model
