#pragma once

/// Which settings a wall cannot do without, by tests of the wall with some of its settings healed: all sets of
/// such settings that the tests leave, with their chances.
///
/// A test is clear if it heals one of them, and a wall if it heals none. Settings that no test has told apart are
/// of one kind, and sets are counted by kinds, so that many millions of sets are few.
///
/// Example. Of a to f, the wall was clear with {a, b} healed and with {c, d} healed, a wall with {d, e} healed.
///
///     kinds        {a, b}, {c}, {d}, {e}, {f}
///     sets         {a, c}, {b, c}, {a, b, c}, and each of them with f

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "greynic/statistics/random.h"
#include "src/settings.h"

namespace greynic::causal {

inline constexpr std::size_t kMostNeeded = 5;  ///< settings of a set

/// The wall without some settings, and the log odds that it still is one.
struct HealedTest {
  Set healed;
  double evidence = 0.0;
};

struct NeededSet {
  std::array<std::uint8_t, kMostNeeded> members = {};
  std::uint8_t count = 0;  ///< none where no setting is needed by all causes
  double chance = 0.0;
  [[nodiscard]] Set settings() const;
};

class NeededSets {
 public:
  explicit NeededSets(const Set& wall);
  /// From nothing but these tests.
  void learn(std::span<const HealedTest> tests, statistics::Random& random);
  /// The likeliest first. All of them where they are few, else as many as kMostDrawn drawn by their chances; none
  /// where the tests contradict each set.
  [[nodiscard]] const std::vector<NeededSet>& likely() const { return likely_; }
  /// Log odds that tests speak against the likeliest: one that is surely wrong shows that a wall has other causes, too.
  [[nodiscard]] double against() const { return against_; }

 private:
  using Hits = std::uint64_t;  ///< tests, by place
  struct Kind {
    Hits hits = 0;
    std::vector<std::uint8_t> members;
  };
  struct Chosen {
    std::array<std::uint8_t, kMostNeeded> kinds = {};
    std::uint8_t count = 0;
    double weight = 0.0;  ///< logarithm; of all sets of these kinds
    double lost = 0.0;
  };
  void make_kinds(std::span<const HealedTest> tests);
  void visit(Chosen& chosen, Hits hit, Hits missed, Set barred);
  void add_others(Chosen& chosen, Hits hit, Hits missed, const Set& barred, std::size_t from);
  void keep(Chosen chosen, double lost);
  [[nodiscard]] double lost(Hits hit, Hits missed) const;
  [[nodiscard]] bool counts();
  void spread(const Chosen& chosen, double chance);
  void draw(const Chosen& chosen, double chance, statistics::Random& random);
  void make_likely(statistics::Random& random);

  Set wall_;
  std::vector<double> evidence_;
  Hits clear_ = 0;  ///< tests that speak against a wall,
  Hits faint_ = 0;  ///< and those that hardly do
  std::vector<Kind> kinds_;
  std::vector<Chosen> chosen_;
  std::vector<NeededSet> likely_;
  double against_ = 0.0;
  std::size_t most_count_ = kMostNeeded;
  std::size_t visited_ = 0;
};

}  // namespace greynic::causal
