#include "greynic/statistics/event_rate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "greynic/statistics/halves.h"
#include "mser.h"

namespace greynic::statistics {
namespace {

constexpr int kBlocks = 20;  ///< of a series without a period

/// A moment until which `told` events had come since the first of such moments.
struct Point {
  double at = 0.0;  ///< in bins
  double told = 0.0;
};

double between(const Point& a, const Point& b) { return (b.told - a.told) / (b.at - a.at); }

/// What an estimate says, in events a bin.
struct Estimate {
  double rate = 0.0;
  std::optional<double> standard_error;
  int kept_from = 0;   ///< bin
  double early = 0.0;  ///< rate of the first half of what was kept
  double late = 0.0;   ///< and of the second
};

/// How much wider two standard errors of `freedoms` degrees are than two sigma, for the same 95 %:
/// Student's t to 3 %.
double widened(double freedoms) { return std::exp(1.21 / freedoms + 0.66 / (freedoms * freedoms)); }

/// How many values to leave out in front by MSER: no more than half of them, none where there are
/// too few to tell, and none for what chance brings about.
std::size_t warm_up(const std::vector<double>& values) {
  constexpr std::size_t kFew = 12;
  if (values.size() < kFew) return 0;
  constexpr double kWorth = 0.5;
  const std::vector<double> scores = mser_scores(values);
  const auto best = std::min_element(scores.begin() + 1, scores.begin() + scores.size() / 2 + 1);
  return *best < kWorth * scores.front() ? static_cast<std::size_t>(best - scores.begin()) : 0;
}

/// Bins without an event between two with one.
struct Silence {
  int from = 0;
  int bins = 0;
};

/// The moments at which bursts end that are divided by the silences of at least `shortest` bins;
/// empty when those are less than half of the time.
std::vector<Point> burst_ends(const std::vector<double>& told, const std::vector<Silence>& silences,
                              int last, int shortest) {
  std::vector<Point> ends;
  int silent = 0;
  int begin = 0;
  std::optional<int> widest;  // of those that are seen whole: the first may have begun before
  for (const Silence& silence : silences) {
    if (silence.bins < shortest) continue;
    ends.push_back({static_cast<double>(silence.from), told[silence.from]});
    if (begin > 0) widest = std::max(widest.value_or(0), silence.from - begin);
    begin = silence.from + silence.bins;
    silent += silence.bins;
  }
  if (2 * silent < last) return {};
  // The last one may be cut short, unless enough time has passed since it began or went silent.
  const int end = static_cast<int>(told.size()) - 1;
  if (ends.size() < 2 || end - last >= shortest || (widest && end - begin > 2 * *widest + 1)) {
    ends.push_back({static_cast<double>(last), told[last]});
  }
  return ends;
}

/// The line through the ends of bursts.
Estimate through(std::vector<Point> ends) {
  std::vector<double> rates;
  for (std::size_t i = 1; i < ends.size(); ++i) rates.push_back(between(ends[i - 1], ends[i]));
  ends.erase(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(warm_up(rates)));
  const auto n = static_cast<double>(ends.size());
  Point mean;
  for (const Point& end : ends) mean = {mean.at + end.at / n, mean.told + end.told / n};
  double across = 0.0;
  double along = 0.0;
  for (const Point& end : ends) {
    along += (end.at - mean.at) * (end.at - mean.at);
    across += (end.at - mean.at) * (end.told - mean.told);
  }
  Estimate estimate;
  estimate.rate = across / along;
  estimate.kept_from = static_cast<int>(ends.front().at);
  const Point& middle = ends[ends.size() / 2];
  estimate.early = between(ends.front(), middle);
  estimate.late = ends.size() > 2 ? between(middle, ends.back()) : estimate.early;
  if (ends.size() < 3) return estimate;
  // Steps over a sixth of the bursts: long enough for what evens out from burst to burst.
  const std::size_t lag = std::max<std::size_t>(1, (ends.size() - 1) / 6);
  double squares = 0.0;
  double time = 0.0;
  for (std::size_t i = lag; i < ends.size(); ++i) {
    const double step = ends[i].at - ends[i - lag].at;
    const double off = ends[i].told - ends[i - lag].told - estimate.rate * step;
    squares += off * off;
    time += step;
  }
  const double intervals = n - 1.0;
  const double freedoms = intervals / static_cast<double>(lag) - 1.0;
  const double intensity = squares / time * (1.0 + 1.0 / freedoms);
  constexpr double kLineNoise = 1.2;  // of a line through a random walk, against its two ends
  estimate.standard_error =
      widened(freedoms) * std::sqrt(kLineNoise * intensity / (ends.back().at - ends.front().at));
  return estimate;
}

/// For a series of bursts between silences. Which silences divide bursts and which are pauses
/// within one is not known: wherever their lengths make a step, those above it are tried, and what
/// lies best on a line is taken.
std::optional<Estimate> from_bursts(const std::vector<double>& told) {
  constexpr int kShortest = 8;  // bins: a shorter silence is not told well from none
  constexpr double kStep = 1.5;
  constexpr double kUntold =
      0.02;  // of the rate: taken for the error of two bursts, which tell none
  int last = static_cast<int>(told.size()) - 1;
  while (last > 0 && told[last] == told[last - 1]) --last;
  std::vector<Silence> silences;
  std::vector<int> lengths;
  for (int i = 0; i < last; ++i) {
    const int from = i;
    while (told[i + 1] == told[i]) ++i;
    if (i == from) continue;
    silences.push_back({from, i - from});
    lengths.push_back(i - from);
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  lengths.push_back(0);
  std::optional<Estimate> best;
  for (std::size_t i = 0; i + 1 < lengths.size(); ++i) {
    if (lengths[i] < kShortest) break;
    if (lengths[i] < kStep * lengths[i + 1]) continue;
    const std::vector<Point> ends = burst_ends(told, silences, last, lengths[i]);
    if (ends.size() < 2) continue;
    const Estimate estimate = through(ends);
    const auto error = [](const Estimate& of) {
      return of.standard_error.value_or(kUntold * of.rate);
    };
    if (!best || error(estimate) < error(*best)) best = estimate;
  }
  return best;
}

/// Events in windows of `length` that begin at bin 0, 1, 2 ...
std::vector<double> windows(const std::vector<double>& told, int length) {
  std::vector<double> counts(told.size() - length);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = told[i + length] - told[i];
  return counts;
}

/// How unlike itself a series is after `lag` bins: 0 when it repeats itself, 1 when it forgets.
double unlikeness(const std::vector<double>& told, int lag) {
  const std::vector<double> counts = windows(told, std::max(1, lag / 8));
  double sum = 0.0;
  double squares = 0.0;
  for (const double count : counts) {
    sum += count;
    squares += count * count;
  }
  const auto n = static_cast<double>(counts.size());
  const double variance = squares / n - sum * sum / n / n;
  if (variance <= 0) return 1.0;
  double off = 0.0;
  for (std::size_t i = lag; i < counts.size(); ++i) {
    off += (counts[i] - counts[i - lag]) * (counts[i] - counts[i - lag]);
  }
  return off / (n - lag) / (2.0 * variance);
}

/// After how many bins the series repeats itself; 0 when it does not, or more than twelve times.
int period(const std::vector<double>& told) {
  const int n = static_cast<int>(told.size()) - 1;
  std::vector<std::pair<int, double>> tried;
  double best = 1.0;
  for (int lag = std::max(8, n / 12); lag <= n / 2; lag += std::max(1, lag / 64)) {
    tried.emplace_back(lag, unlikeness(told, lag));
    best = std::min(best, tried.back().second);
  }
  if (best > 0.25) return 0;
  std::size_t at = 0;
  while (tried[at].second > best + 0.05) ++at;
  while (at + 1 < tried.size() && tried[at + 1].second < tried[at].second) ++at;
  const int near = tried[at].first;
  int length = near;
  for (int lag = near - near / 64; lag <= std::min(near + near / 64, n / 2); ++lag) {
    const double found = unlikeness(told, lag);
    if (found < tried[at].second) {
      tried[at].second = found;
      length = lag;
    }
  }
  return length;
}

/// Weights of `n` bins that add up to 1 and weigh nothing at the edges.
std::vector<double> hann(int n) {
  std::vector<double> bell(n);
  for (int i = 0; i < n; ++i) {
    bell[i] = (1.0 - std::cos(2.0 * std::numbers::pi * (i + 0.5) / n)) / n;
  }
  return bell;
}

/// The same as the mean over all windows of `length`, those in the middle weighed most (Welch's
/// parabola): what repeats itself after that length counts evenly, and the less it depends on edges
/// the better it bears one that comes late.
std::vector<double> bell_of_windows(int n, int length) {
  std::vector<double> bell(n);
  const int places = n - length + 1;
  const double scale = 6.0 / (std::pow(places, 3) * length);
  double sum = 0.0;
  const auto weight = [&](int place) {
    return place < 0 || place >= places ? 0.0 : scale * (place + 0.5) * (places - place - 0.5);
  };
  for (int i = 0; i < n; ++i) {
    sum += weight(i) - weight(i - length);
    bell[i] = sum;
  }
  return bell;
}

Estimate from_time(const std::vector<double>& all) {
  const int length = period(all);
  // Blocks of time that hold whole periods.
  const int bins = static_cast<int>(all.size()) - 1;
  const int unit = std::max(1, length);
  const int block = std::max(1, bins / kBlocks / unit) * unit;
  std::vector<double> blocks;
  for (int i = bins % block; i + block <= bins; i += block)
    blocks.push_back(all[i + block] - all[i]);
  const int cut = static_cast<int>(warm_up(blocks));
  Estimate estimate;
  estimate.kept_from = cut == 0 ? 0 : bins % block + cut * block;
  const std::vector<double> told(all.begin() + estimate.kept_from, all.end());
  const int n = static_cast<int>(told.size()) - 1;
  const std::vector<double> bell = length > 0 ? bell_of_windows(n, length) : hann(n);
  double weight = 0.0;  // of the noise, against counting
  for (int i = 0; i < n; ++i) {
    estimate.rate += (told[i + 1] - told[i]) * bell[i];
    weight += bell[i] * bell[i] * n;
  }
  // Level of the series, its periods evened out, and the steps it makes.
  std::vector<double> level;
  const int even = std::max(1, length);
  double sum = 0.0;
  for (int i = 0; i <= n; ++i) {
    sum += told[i];
    if (i >= even) sum -= told[i - even];
    if (i + 1 >= even) level.push_back(sum / even - estimate.rate * i);
  }
  const int lag = std::max(even, n / kBlocks);
  double squares = 0.0;
  const int steps = static_cast<int>(level.size()) - lag;
  for (int i = 0; i < steps; ++i) {
    squares += (level[i + lag] - level[i]) * (level[i + lag] - level[i]);
  }
  const double freedoms = std::max(1.0, (n - even) / static_cast<double>(lag) - 1.0);
  const double intensity = squares / steps / (lag - even / 3.0) * (1.0 + 1.0 / freedoms);
  estimate.standard_error = widened(freedoms) * std::sqrt(weight * intensity / n);
  const int half = n / 2 / unit * unit;
  if (half > 0) {
    estimate.early = (told[half] - told[0]) / half;
    estimate.late = (told[n] - told[n - half]) / half;
  }
  return estimate;
}

}  // namespace

EventRate estimate_event_rate(std::span<const std::uint64_t> bins) {
  EventRate found;
  const auto count = static_cast<double>(bins.size());
  // From the end of the first bin with an event on.
  const auto first = std::find_if(bins.begin(), bins.end(), [](auto n) { return n > 0; });
  std::vector<double> told{0.0};
  for (auto bin = first; bin != bins.end() && bin + 1 != bins.end(); ++bin) {
    told.push_back(told.back() + static_cast<double>(*(bin + 1)));
  }
  if (told.back() == 0) {  // nothing to tell a rate from but that so much came
    if (first != bins.end()) found.per_bin = static_cast<double>(*first) / count;
    return found;
  }
  const auto bursts = from_bursts(told);
  const Estimate estimate = bursts ? *bursts : from_time(told);
  found.per_bin = estimate.rate;
  found.standard_error = estimate.standard_error;
  found.settled = estimate.standard_error &&
                  halves_agree(estimate.early, estimate.late, estimate.rate,
                               *estimate.standard_error, {.share = 0.05, .standard_errors = 4.0});
  found.warmup_share = static_cast<double>(first - bins.begin() + estimate.kept_from) / count;
  return found;
}

}  // namespace greynic::statistics
