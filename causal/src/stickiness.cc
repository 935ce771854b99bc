#include "stickiness.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace greynic::causal {
namespace {

constexpr double kNoiseAtWorst = 0.15;     // until the baseline was tested often
constexpr double kSurelySlow = 5.0;        // standard errors
constexpr double kApart = 4.0;             // noises
constexpr double kNoiseOfMiddle = 1.4826;  // noise over the median of distances
constexpr int kMostLooks = 8;
constexpr int kMostLooksInPlan =
    16;  // after the first wall: to test that again would slow the device anew
constexpr int kMostRounds = 4;         // of wall and baseline, where one look leaves it open
constexpr std::size_t kLeastSlow = 3;  // two tests may have stalled one after the other
constexpr std::size_t kManySlow = 5;   // are believed where they lie less far apart
constexpr double kApartIfMany = 3.0;
constexpr std::size_t kLeastFast = 3;        // or the fast ones may be far off by chance
constexpr int kMostRecovery = 40;            // tests of the baseline after a wall
constexpr std::size_t kHeapsFrom = 12;       // tests of the baseline
constexpr double kAtRest = -2.2;             // log odds of what cannot have slowed the device
constexpr std::size_t kMostSlowByNoise = 2;  // tests for each wait, where the baseline is one heap
constexpr double kFarForNoise = 2.5;         // noises
constexpr std::size_t kMostByChance = 3;     // tests of one configuration

double middle_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.empty()) return 0.0;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

}  // namespace

bool are_two_heaps(std::vector<double> fast, std::vector<double> slow, bool many) {
  if (slow.empty()) return false;
  const double of_fast = static_cast<double>(fast.size());
  const double of_slow = static_cast<double>(slow.size());
  const double apart = middle_of(slow) - middle_of(fast);
  std::vector<double> distances;
  for (std::vector<double>* heap : {&fast, &slow}) {
    const double middle = middle_of(*heap);
    for (const double score : *heap) distances.push_back(std::abs(score - middle));
  }
  const double scatter = kNoiseOfMiddle * middle_of(distances);
  const double noise =
      std::sqrt(scatter * scatter + 2.0 * kNoiseAtWorst * kNoiseAtWorst / (of_fast + of_slow));
  const double error = noise * std::sqrt(1.0 / std::max(of_fast, 1.0) + 1.0 / of_slow);
  if (many && slow.size() >= kManySlow && fast.size() >= kLeastFast)
    return apart > kApartIfMany * std::max(error, noise);
  return apart > std::max(kSurelySlow * error, kApart * noise);
}

Result<void> Stickiness::look() {
  if (session_.waits() || session_.waited_for_nothing()) return {};
  const Id baseline = session_.baseline();
  const bool in_batches = session_.options().batch > 1;
  for (const std::size_t place : session_.places_of(baseline)) {  // in the midst of a batch
    const bool after_wall =
        in_batches && place > session_.first_ordered() && !session_.reading(place - 1).of_baseline;
    const bool known = std::find(slow_.begin(), slow_.end(), place) != slow_.end();
    if (after_wall && !known && place < session_.last() && is_slow(place)) slow_.push_back(place);
  }
  if (!session_.reading(session_.last()).of_baseline) {
    if (slow_.empty()) return {};
    if (auto done = measure(baseline); !done) return done;
  }
  if (began_ && is_slow(session_.last())) {  // the wall is some tests ago, so it may be nearly back
    slow_.push_back(session_.last());
    for (const Id id : {wall_, baseline}) {
      if (auto done = measure(id); !done) return done;
    }
  }
  if (auto done = wait_while_slow(); !done) return done;
  if (!is_sticky()) return {};
  if (in_batches || began_) ignore_after_first_wall();
  wait_from_now_on();
  return {};
}

Result<void> Stickiness::look_after_wall() {
  if (session_.waits() || session_.waited_for_nothing()) return {};
  // Another wall may have slowed the device before the first test of this one, and this one did before the others.
  const std::vector<std::size_t> of_wall = session_.places_of(wall_);
  from_ = session_.model().bound();  // by all rows before it
  in_plan_ = true;
  const std::size_t first = of_wall.front();
  const bool from_rest = first == 0 || session_.is_clear(first - 1, kAtRest);
  for (int round = 0; round < kMostRounds && !is_sticky(); ++round) {
    if (round > 0) {
      if (auto done = measure(wall_); !done) return done;
    }
    if (auto done = measure(session_.baseline()); !done) return done;
    if (!is_slow(session_.last())) break;
    if (auto done = wait_while_slow(); !done) return done;
  }
  if (!is_sticky()) return {};
  session_.ignore(std::span(of_wall).subspan(from_rest ? 1 : 0));
  wait_from_now_on();
  return {};
}

Result<void> Stickiness::measure(Id id) {
  return session_.measure({&id, 1}, "is it slow since the wall?");
}

Result<void> Stickiness::wait_while_slow() {
  const bool may_reset = static_cast<bool>(session_.laboratory().reset);
  for (int tries = 0; is_slow(session_.last()); ++tries) {
    slow_.push_back(session_.last());
    const int most = in_plan_ && !may_reset ? kMostLooksInPlan : kMostLooks;
    const bool enough = tries >= most && (may_reset || !is_sticky());
    if (enough || tries >= kMostRecovery) return {};
    if (auto done = measure(session_.baseline()); !done) return done;
  }
  return {};
}

void Stickiness::wait_from_now_on() {
  const bool slow = is_slow(session_.last());
  session_.ignore(slow_);
  session_.refit();
  session_.wait_for_recovery(slow_.size());
  if (session_.ignore_slow_baseline()) {
    notes_.push_back(
        "the device was slow when the baseline was tested first, so what was taken for clear then "
        "may be a wall; ask again");
  }
  notes_.push_back(
      "the device stays slow for a while after a wall; each further test waits until the "
      "baseline is back");
  if (!slow) return;
  session_.call_stuck();
  notes_.push_back(session_.laboratory().reset
                       ? "its performance did not come back by itself (symptom S9); it "
                         "was reset after each wall"
                       : "its performance did not come back by itself (symptom S9); "
                         "reset it before each test");
}

bool Stickiness::is_slow(std::size_t place) const {
  const Reading& one = session_.reading(place);
  return !one.failed && one.score > from_;
}

/// Nothing was waited for yet, so whatever followed in a batch may have been slowed, walls too.
/// What a run stored stays.
void Stickiness::ignore_after_first_wall() {
  std::size_t place = session_.first_ordered();
  while (place < session_.last() && session_.reading(place).of_baseline) ++place;
  while (++place < session_.last()) session_.ignore({&place, 1});
}

bool Stickiness::is_sticky() const {
  if (slow_.size() < kLeastSlow) return false;
  std::vector<double> heaps[2];
  for (const std::size_t place : session_.places_of(session_.baseline())) {
    const Reading& reading = session_.reading(place);
    if (reading.failed) continue;
    const bool slow = std::find(slow_.begin(), slow_.end(), place) != slow_.end();
    heaps[slow ? 1 : 0].push_back(reading.score);
  }
  return are_two_heaps(heaps[0], heaps[1], in_plan_);
}

/// The bound that the baseline's first test sets.
double Session::slow_from() const {
  for (const std::size_t place : asked_[baseline_].readings) {
    const Reading& one = readings_[place];
    if (!one.failed && !one.ignored) return model_.scale().bound(one.score);
  }
  return model_.bound();
}

bool Session::recovers_at_once() const {
  const auto is_slow = [&](std::size_t place) {
    const Reading& one = readings_[place];
    return one.failed || one.score - model_.offset(place) > model_.bound();
  };
  for (std::size_t place = first_ordered_ + 1; place < last(); ++place) {
    if (is_slow(place) && !is_slow(place - 1) && !is_slow(place + 1)) return true;
  }
  return false;
}

bool Session::baseline_has_two_heaps() const {
  std::vector<double> heaps[2];
  for (const std::size_t place : asked_[baseline_].readings) {
    const Reading& one = readings_[place];
    if (!one.failed) heaps[one.score > model_.bound() ? 1 : 0].push_back(one.score);
  }
  return are_two_heaps(heaps[0], heaps[1], true);
}

/// Slow values of the baseline were noise like all others, so they count again.
void Session::stop_waiting() {
  sticky_ = false;
  waited_for_nothing_ = true;
  for (const std::size_t place : asked_[baseline_].readings) readings_[place].ignored = false;
  refit();
}

/// Half of the way to what the device was seen at meanwhile. The bound is nearer mostly, and noise is small
/// beside it; where it is not, a baseline that must be faster than the bound would be no usual one.
Session::Back Session::back() const {
  std::vector<double> slow;
  for (const std::size_t place : asked_[baseline_].readings) {
    if (!readings_[place].failed && readings_[place].ignored)
      slow.push_back(readings_[place].score);
  }
  const double bound = model_.bound();
  if (slow.empty()) return {bound, bound};
  const double half = (model_.baseline() + middle_of(slow)) / 2.0;
  return {std::min(bound, half - model_.sigma()),
          std::min(half, bound + kFarForNoise * model_.sigma())};
}

bool Session::ignore_slow_baseline() {
  const double from = back().likely;
  for (const std::size_t place : asked_[baseline_].readings) {
    Reading& one = readings_[place];
    if (one.failed || one.ignored || one.score <= from) continue;
    one.ignored = baseline_was_slow_ = true;
  }
  if (baseline_was_slow_) refit();
  return baseline_was_slow_;
}

Result<void> Session::recover() {
  const bool often = asked_[baseline_].readings.size() >= kHeapsFrom;
  const bool in_rows = slow_waits_ > kMostSlowByNoise * waits_ + kLeastSlow;
  if (!stuck_ && often && !in_rows && !baseline_has_two_heaps()) {
    stop_waiting();
    return {};
  }
  if (!last_is_slow()) return {};
  if (stuck_ && laboratory_.reset) return laboratory_.reset();
  sticky_ = false;  // the tests below must not wait for themselves
  Result<void> done;
  int fast = 0;  // one after the other: what is not surely back must be seen twice
  ++waits_;
  for (int tries = 0; tries < kMostRecovery && done && fast < 2; ++tries) {
    const Id id = baseline_;
    done = measure({&id, 1}, "waiting for the device to recover");
    if (!done) break;
    const Reading& one = readings_.back();
    const double score = one.score - model_.offset(last());
    const Back below = back();
    fast = one.failed || score > below.likely ? 0 : score > below.sure ? fast + 1 : 2;
    if (fast > 0) continue;
    ++slow_waits_;
    readings_.back().ignored = true;
  }
  sticky_ = true;
  if (!done) return done;
  refit();
  if (fast > 0) return {};
  call_stuck();
  return fail(ErrorCode::kAllowanceSpent,
              fmt::format("the device did not recover from a wall within {} tests of the baseline "
                          "(symptom S9); reset it and ask again",
                          kMostRecovery));
}

/// Asked again is what the test before it may have slowed, as that may have been a wall. So is a slow test
/// after which the device was back at once, as it is after no wall: noise or a stall made it slow. Some walls
/// may leave it fast, so what is slow each time counts.
Result<void> Session::recover_from(Id id) {
  const std::size_t place = last();
  if (!last_is_slow()) return {};
  const bool from_rest =
      place == 0 || readings_[place - 1].of_baseline || is_clear(place - 1, kAtRest);
  const std::size_t slow_before = slow_waits_;
  if (auto done = recover(); !done) return done;
  const bool at_once = slow_waits_ == slow_before;
  const bool counts = from_rest && !at_once;
  if (!sticky_ || counts || id == baseline_ || tests_of(id) > kMostByChance) return {};
  ignore({&place, 1});
  return measure({&id, 1}, "was it slow by chance?");
}

}  // namespace greynic::causal
