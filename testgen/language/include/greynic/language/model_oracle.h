#pragma once

/// Decides questions about a model straight from its constraints, for checking arrays and for
/// saying why something cannot be: its own encoding to CaDiCaL, with nothing of `compile` in it.
/// Every expression gets two variables, "is true" and "is false", so Kleene's logic is encoded as
/// it is written down; comparisons are encoded by listing their values.

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "greynic/language/cover_model.h"
#include "greynic/language/expression_range.h"

namespace CaDiCaL {
class Solver;
}

namespace greynic::language {

enum class Feasibility : std::uint8_t { kFeasible, kInfeasible, kUndecided };

class ModelOracle {
 public:
  /// An explaining oracle can name constraints; it is slower, since each can be switched off.
  ModelOracle(const CoverModel& model, bool explaining);
  ~ModelOracle();
  ModelOracle(const ModelOracle&) = delete;
  ModelOracle& operator=(const ModelOracle&) = delete;

  struct Setting {
    std::uint32_t parameter = 0;
    int level = 0;  ///< -1: absent
    auto operator<=>(const Setting&) const = default;
  };

  /// Can these settings be extended to a valid row? kUndecided only when a comparison of very many
  /// values kept the search from ending.
  [[nodiscard]] Feasibility feasible(const std::vector<Setting>& settings);

  /// Why settings cannot be.
  struct Conflict {
    /// A minimal set of constraints that forbids them, as text; empty: it was not found.
    std::vector<std::string> rules;
    std::vector<Setting> settings;  ///< those of the settings that the rules forbid already
    bool minimal = true;            ///< false: the time was over before spare rules were left out
    std::size_t rows = 0;           ///< looked at that fit everything else, until it was given up
    /// What such rows break, most frequent first; of a search that was given up.
    std::vector<std::string> broken;
    bool out_of_time = false;
  };

  /// Explaining oracles only. Of the model's extension it is what breaks in rows that fit the rest,
  /// one cause after another until no row is left. `stop` is asked often; after a true what is
  /// known so far is the answer.
  [[nodiscard]] Conflict conflict(const std::vector<Setting>& settings,
                                  const std::function<bool()>& stop = {});

 private:
  /// Solver variables for "is true" and "is false" of one expression.
  struct Rails {
    int is_true = 0;
    int is_false = 0;
  };
  struct Rule {
    std::string text;
    int selector = 0;                  ///< 0: always on
    const Expr* expression = nullptr;  ///< re-evaluated on answers when it was too big to encode
    std::optional<std::uint32_t> condition_of;  ///< the expression says when this parameter exists
  };

  int variable_of(const Setting& setting) const;
  int add_rule(std::string text);
  void clause(std::initializer_list<int> literals);
  void clause(const std::vector<int>& literals);
  int all_of(const std::vector<int>& literals);
  int any_of(const std::vector<int>& literals);
  Rails encode(const Expr& expression);
  std::optional<Rails> encode_compare(const Expr& expression);
  void add_condition(std::uint32_t parameter);
  void add_negative_rule();
  Feasibility solve(std::vector<int>& assumptions);
  void forbid(const Rule& rule, const std::vector<int>& row,
              const std::function<bool(const Truths&)>& broken, std::vector<int> literals);
  bool refine();
  std::optional<int> refine_by_extension(const std::vector<int>& row);
  void leave_out_spare(const std::vector<Setting>& settings, Conflict& out);
  std::vector<int> answer() const;

  const CoverModel& model_;
  bool explaining_;
  std::unique_ptr<CaDiCaL::Solver> solver_;
  int next_variable_ = 1;
  int always_ = 0;
  bool too_big_ = false;  ///< set while encoding when a comparison was left out
  std::vector<std::vector<int>> level_variable_;  ///< the last of a conditional parameter: absent
  std::vector<Rule> rules_;
  std::map<std::string, int> breaches_;      ///< of the extension: selector by text
  bool extending_ = false;                   ///< answers are checked against the extension, too
  std::vector<std::size_t> lazy_;            ///< rules that answers are checked against
  std::set<std::uint32_t> asked_;            ///< parameters that the question at hand is about
  std::function<bool()> stop_;               ///< of the conflict being looked for; may be empty
  std::map<std::string, std::size_t> hits_;  ///< of its walk: rows by what they break
  std::size_t rows_ = 0;                     ///< of its walk
};

/// "p=1, q=absent", for people.
[[nodiscard]] std::string describe(const CoverModel& model,
                                   const std::vector<ModelOracle::Setting>& settings);

/// The rules of a conflict, or why there are none; never empty. For people.
[[nodiscard]] std::string describe(const ModelOracle::Conflict& conflict);

}  // namespace greynic::language
