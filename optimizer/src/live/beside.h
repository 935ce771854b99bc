#pragma once

/// Full layouts in a second thread, beside the steps. It keeps the rules by what it is told of each
/// step, so that no step ever waits for it, nor copies more than its own rule. When a full layout is
/// asked for, it makes one of the rules as they are by then, takes the steps on it that came meanwhile,
/// and hands it over when none is left. Where such a step is too much for it, it begins anew.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/live/step.h"

namespace greynic::optimizer::live {

/// A State that did not come by steps alone.
struct FullLayout {
  State state;
  double tried = 0.0;   ///< matchers, when it was laid out
  double growth = 1.0;  ///< rules of the layout for each rule then
};

/// The rules in their order, as a set, with a packet for each.
struct InOrder {
  RuleSet rules;
  Traffic traffic;
};
[[nodiscard]] InOrder in_order(const std::vector<KeptRule>& rules, const std::string& source);

/// Lays the rules out by optimize().
[[nodiscard]] Result<FullLayout> full_layout(const std::vector<KeptRule>& rules,
                                             const std::string& source,
                                             const OptimizeOptions& search);

class Beside {
 public:
  /// `most`: index nodes and cubes that a step may look at.
  Beside(std::vector<KeptRule> rules, std::string source, OptimizeOptions search,
         std::uint64_t most);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  /// Of each step, whether a full layout is under way or not. Gives what is ready by now, with this
  /// step not taken on it.
  std::optional<Result<FullLayout>> tell(Told told);
  void drop(State state);  ///< takes time, so the thread does it
  void ask();              ///< for a full layout, unless one is under way
  [[nodiscard]] std::optional<Result<FullLayout>> wait();  ///< none, when none was asked for

 private:
  static constexpr std::size_t kMostWaiting = 4096;  ///< steps that it is not woken for

  void work();
  [[nodiscard]] std::vector<Told> take_told();
  void make();

  OptimizeOptions search_;
  std::string source_;
  std::uint64_t most_;
  std::vector<KeptRule> rules_;  ///< the thread's
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ready_;
  std::vector<Told> told_;
  std::vector<State> dropped_;
  std::optional<Result<FullLayout>> made_;
  bool asked_ = false;  ///< until made_ is taken
  bool end_ = false;
  std::thread thread_;
};

}  // namespace greynic::optimizer::live
