#pragma once

/// Causes of one setting that another setting of the wall heals, so that the wall does not show them: which
/// pairs of the two no test has excluded, and which sets of settings exclude the rest.
///
/// A clear configuration excludes each pair of which it keeps the first and heals the second. So each setting
/// gets a code, a bit for each test: a bit of the first that the second has not is a test of the pair. Codes
/// of one weight are in no other: six tests with three bits in each code leave a twentieth of all pairs,
/// however many settings there are; ten settings take five tests, seventy take eight, and all pairs are
/// excluded. What was clear anyway on the way to the known causes is counted, and codes are given for the
/// pairs that it leaves.
///
/// Example. Among a to f, whatever heals:
///
///     kept   a b d     a c e     b c f     d e f      a and f: 1100 and 0011

#include "witness_search.h"

namespace greynic::causal {

class HiddenPairs {
 public:
  /// Of so many settings. A setting that is a cause by itself hides none.
  HiddenPairs(std::size_t settings, const std::vector<FoundCause>& causes);
  HiddenPairs(std::size_t settings, std::vector<FoundCause>&&) = delete;  // it refers to them
  /// A clear configuration with some settings as in the wall and some as in the baseline.
  void saw_clear(const Set& kept, const Set& healed);
  /// Of all pairs, those that are not excluded.
  [[nodiscard]] double left() const;
  /// Some other setting may heal what this one causes.
  [[nodiscard]] bool may_be_healed(std::size_t setting) const { return open_[setting].any(); }
  /// As few sets as leave at most this share of all pairs, if all are clear. None holds a known cause.
  [[nodiscard]] std::vector<Set> questions(double most_left) const;

 private:
  [[nodiscard]] std::vector<Set> codes(std::size_t tests) const;
  [[nodiscard]] bool holds_cause(const Set& kept) const;

  std::size_t settings_;
  const std::vector<FoundCause>& causes_;
  std::vector<Set> open_;  ///< of each setting: those that may heal it
  double all_ = 0.0;
};

/// Log odds at which a configuration counts as clear.
inline constexpr double kSurelyClear = -2.0;

/// What all tests so far leave, beside these causes.
[[nodiscard]] HiddenPairs pairs_seen(Settings& settings, const std::vector<FoundCause>& causes);

}  // namespace greynic::causal
