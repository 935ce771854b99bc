#pragma once

/// Some devices stay slow for a while after a wall. Whether this one does is seen at the first wall: the
/// baseline is tested right after it. From then on every slow test is followed by tests of the baseline until
/// that is back (Session::recover), so no configuration is judged by what another one left.

#include <string>
#include <vector>

#include "session.h"

namespace greynic::causal {

/// Two heaps of scores are far apart, by what each scatters about its middle; a few stalls in one do not
/// count. The halves of one heap are not: they lie 2.7 noises apart. `many`: several slow ones are believed where
/// they lie hardly farther apart than that; whoever parts scores again and again will see such halves by chance.
[[nodiscard]] bool are_two_heaps(std::vector<double> fast, std::vector<double> slow, bool many);

/// Tests of the baseline right after a wall that were slow. When they are so much slower than the
/// others that noise does not explain it, the device needs time after a wall.
class Stickiness {
 public:
  Stickiness(Session& session, Id wall, std::vector<std::string>& notes)
      : session_(session), wall_(wall), notes_(notes), from_(session.slow_from()) {}
  /// Others than baseline and wall were tested.
  void search_began() { began_ = true; }

  /// The baseline was tested after the wall, just now or in the midst of a batch. While it is slow,
  /// test it again.
  [[nodiscard]] Result<void> look();
  /// What seems the first wall was tested just now, and nothing is waited for yet.
  [[nodiscard]] Result<void> look_after_wall();

 private:
  [[nodiscard]] bool is_slow(std::size_t place) const;
  [[nodiscard]] Result<void> measure(Id id);
  [[nodiscard]] Result<void> wait_while_slow();
  void wait_from_now_on();
  void ignore_after_first_wall();
  [[nodiscard]] bool is_sticky() const;

  Session& session_;
  Id wall_;
  std::vector<std::string>& notes_;
  double from_;  ///< score of what is slow
  std::vector<std::size_t> slow_;
  bool began_ = false;
  bool in_plan_ = false;  ///< looked at once, right after the first wall of a plan
};

}  // namespace greynic::causal
