#pragma once

/// Decides questions about a model straight from its constraints, for checking arrays and for
/// saying why something cannot be: its own encoding to CaDiCaL, with nothing of `compile` in it.
/// Every expression gets two variables, "is true" and "is false", so Kleene's logic is encoded as
/// it is written down; comparisons are encoded by listing their values.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/testgen/cover_model.h"

namespace CaDiCaL {
class Solver;
}

namespace greynic::testgen {

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
  };

  /// Can these settings be extended to a valid row? kUndecided only when a comparison of very many
  /// values kept the search from ending.
  [[nodiscard]] Feasibility feasible(const std::vector<Setting>& settings);

  /// A minimal set of constraints that forbids the settings, as text; explaining oracles only. Of
  /// the model's extension it is what breaks in rows that fit the rest, one cause after another
  /// until no row is left. Empty when the settings are feasible, or the causes are too many.
  [[nodiscard]] std::vector<std::string> conflict(const std::vector<Setting>& settings);

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
  bool refine();
  std::optional<int> refine_by_extension(const std::vector<int>& row);
  std::vector<int> answer() const;

  const CoverModel& model_;
  bool explaining_;
  std::unique_ptr<CaDiCaL::Solver> solver_;
  int next_variable_ = 1;
  int always_ = 0;
  bool too_big_ = false;  ///< set while encoding when a comparison was left out
  std::vector<std::vector<int>> level_variable_;  ///< the last of a conditional parameter: absent
  std::vector<Rule> rules_;
  std::map<std::string, int> breaches_;  ///< of the extension: selector by text
  bool extending_ = false;               ///< answers are checked against the extension, too
  std::vector<std::size_t> lazy_;        ///< rules that answers are checked against
};

/// For people: "'a -> b' (line 3); 'c != 2' (line 9)". `levels` has a level or -1 (any) for each
/// parameter and must not be extendable to a valid row.
[[nodiscard]] std::string describe_conflict(const CoverModel& model,
                                            const std::vector<int>& levels);

}  // namespace greynic::testgen
