#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine_bits.h"
#include "engine_values.h"
#include "greynic/testgen/space.h"
#include "local_search.h"
#include "lower_bound.h"
#include "open_tuples.h"
#include "row_builder.h"
#include "validity.h"

namespace greynic::testgen {
namespace {

using Clock = std::chrono::steady_clock;

/// Without a deadline the local search goes on until this much work brought no smaller array. More
/// work buys little: ten times as much takes off less than one row in a hundred
/// (docs/testgen/engine.md).
constexpr std::uint64_t kPatience = 20'000;
constexpr std::uint64_t kPatiencePerCell = 60;
/// Parameters tried as the first one in a lower bound above pairs.
constexpr std::size_t kBreadth = 4;
constexpr std::size_t kThoroughBreadth = 64;

std::string describe(const Literal& l) {
  return fmt::format("parameter #{}{}{}", l.parameter, l.positive ? " = " : " != ", l.level);
}

Result<void> check_row(const Space& space, const Row& row, std::string_view what,
                       std::size_t number) {
  if (row.size() != space.parameters.size()) {
    return fail(ErrorCode::kBadInput, fmt::format("{} {} has {} levels for {} parameters", what,
                                                  number, row.size(), space.parameters.size()));
  }
  for (std::size_t p = 0; p < row.size(); ++p) {
    if (row[p] >= space.parameters[p].level_count) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{} {}: parameter #{} has {} levels, not one numbered {}", what,
                              number, p, space.parameters[p].level_count, row[p]));
    }
  }
  return {};
}

Result<void> check(const Space& space, const CoverOptions& options) {
  if (options.strength < 1 || options.strength > 6) {
    return fail(ErrorCode::kBadInput,
                fmt::format("strength {} is outside 1 to 6", options.strength));
  }
  for (std::size_t p = 0; p < space.parameters.size(); ++p) {
    if (space.parameters[p].level_count == 0) {
      return fail(ErrorCode::kBadInput, fmt::format("parameter #{} has no level", p));
    }
  }
  for (const Clause& clause : space.clauses) {
    for (const Literal& l : clause) {
      if (l.parameter >= space.parameters.size() ||
          l.level >= space.parameters[l.parameter].level_count) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("a clause speaks of {}, which is not there", describe(l)));
      }
    }
  }
  for (const StrengthGroup& group : space.groups) {
    if (group.strength < 1 || group.strength > 6) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("a group asks for strength {}, outside 1 to 6", group.strength));
    }
    for (const std::uint32_t p : group.parameters) {
      if (p >= space.parameters.size()) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("a group names parameter #{} of {}", p, space.parameters.size()));
      }
    }
  }
  for (std::size_t i = 0; i < space.seeds.size(); ++i) {
    if (auto ok = check_row(space, space.seeds[i], "seed", i + 1); !ok) return ok;
  }
  for (std::size_t i = 0; i < space.already.size(); ++i) {
    if (auto ok = check_row(space, space.already[i], "earlier row", i + 1); !ok) return ok;
  }
  return {};
}

/// Everything that one call works on.
class Engine {
 public:
  Engine(const Space& space, const CoverOptions& options)
      : space_(space),
        options_(options),
        start_(Clock::now()),
        index_(space.parameters),
        validity_(space, index_),
        random_(options.seed) {}

  Result<Cover> run() {
    if (!validity_.possible()) return no_row();
    find_compatible();
    if (auto made = make_layers(); !made) return pass_on(made);
    for (const Row& row : space_.already) cover_row(values_of(row));
    for (std::size_t i = 0; i < space_.seeds.size(); ++i) {
      const auto row = values_of(space_.seeds[i]);
      if (!validity_.satisfied(row)) {
        return fail(ErrorCode::kBadInput, fmt::format("seed {} breaks a constraint", i + 1));
      }
      cover_row(row);
      rows_.push_back(row);
    }
    greedy();
    improve();
    return finish();
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  tl::unexpected<Error> no_row() const {
    std::string text;
    for (const std::size_t i : Validity::unsatisfiable_core(space_, index_)) {
      text += fmt::format("{}clause {} (", text.empty() ? "" : ", ", i + 1);
      for (std::size_t k = 0; k < space_.clauses[i].size(); ++k) {
        text += (k ? " or " : "") + describe(space_.clauses[i][k]);
      }
      text += ")";
    }
    return fail(ErrorCode::kInfeasible, "no row is valid: these contradict each other: " + text);
  }

  std::vector<Value> values_of(const Row& row) const {
    std::vector<Value> values(row.size());
    for (std::uint32_t p = 0; p < row.size(); ++p) values[p] = index_.value(p, row[p]);
    return values;
  }

  /// For each value, which others propagation still allows beside it.
  void find_compatible() {
    const std::size_t words = index_.words();
    compatible_.assign(index_.values() * words, 0);
    Words wanted(words, 0);
    for (std::uint32_t p = 0; p < index_.parameters(); ++p) {
      if (!space_.parameters[p].covered) continue;
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        if (static_cast<int>(index_.level(v)) == space_.parameters[p].absent_level) continue;
        if (validity_.free(p) || validity_.feasible(std::array{v})) set_bit(wanted.data(), v);
      }
    }
    for (Value v = 0; v < index_.values(); ++v) {
      if (!test_bit(wanted.data(), v)) continue;
      Word* mine = &compatible_[v * words];
      std::copy(wanted.begin(), wanted.end(), mine);
      const std::uint32_t p = index_.parameter(v);
      if (!validity_.free(p)) {
        validity_.restart();
        (void)validity_.assume(std::array{v});
        for_each_bit(wanted.data(), words, [&](std::size_t w) {
          if (!validity_.allowed(static_cast<Value>(w))) clear_bit(mine, w);
        });
      }
      for (Value w = index_.first(p); w < index_.first(p) + index_.level_count(p); ++w) {
        if (w != v) clear_bit(mine, w);
      }
    }
    validity_.restart();
    // Propagation is not always symmetric; what it refutes one way is refuted.
    for (Value v = 0; v < index_.values(); ++v) {
      for (Value w = 0; w < v; ++w) {
        if (!test_bit(&compatible_[v * words], w)) clear_bit(&compatible_[w * words], v);
        if (!test_bit(&compatible_[w * words], v)) clear_bit(&compatible_[v * words], w);
      }
    }
  }

  Result<void> make_layers() {
    std::vector<std::uint32_t> covered;
    for (std::uint32_t p = 0; p < index_.parameters(); ++p) {
      if (space_.parameters[p].covered) covered.push_back(p);
    }
    std::vector<std::pair<int, std::vector<std::uint32_t>>> wanted;
    wanted.emplace_back(options_.strength, covered);
    for (const StrengthGroup& group : space_.groups) {
      auto parameters = group.parameters;
      std::sort(parameters.begin(), parameters.end());
      parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
      std::erase_if(parameters, [&](std::uint32_t p) { return !space_.parameters[p].covered; });
      if (group.strength > options_.strength) wanted.emplace_back(group.strength, parameters);
    }
    double bytes = 0;
    for (auto& [strength, parameters] : wanted) {
      strength = std::min(strength, static_cast<int>(parameters.size()));
      if (strength > 0)
        bytes += 2 * PrefixBits::bytes_needed(index_, static_cast<std::size_t>(strength - 1));
    }
    if (bytes > static_cast<double>(options_.memory_bytes)) {
      return fail(
          ErrorCode::kTooBig,
          fmt::format("the open tuples of {} parameters with {} levels in all take about {:.3g} "
                      "GiB, over the limit of {:.3g} GiB; lower the strength or group it",
                      covered.size(), index_.values(), bytes / 0x1p30,
                      static_cast<double>(options_.memory_bytes) / 0x1p30));
    }
    for (auto& [strength, parameters] : wanted) {
      if (strength == 0) continue;
      layers_.emplace_back(index_, strength, parameters, compatible_);
      infeasible_count_ += tuples_among(parameters, strength) - layers_.back().open();
      layer_shapes_.push_back({strength, std::move(parameters)});
    }
    return {};
  }

  /// How many tuples there are, absent levels apart: the elementary symmetric polynomial.
  std::uint64_t tuples_among(const std::vector<std::uint32_t>& parameters, int strength) const {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(strength) + 1, 0);
    sums[0] = 1;
    for (const std::uint32_t p : parameters) {
      const std::uint64_t levels =
          space_.parameters[p].level_count - (space_.parameters[p].absent_level >= 0 ? 1U : 0U);
      for (std::size_t i = sums.size(); --i > 0;) sums[i] += sums[i - 1] * levels;
    }
    return sums.back();
  }

  /// Every tuple that holds two values which are never together.
  void list_incompatible(Cover& cover, const std::vector<std::uint32_t>& parameters,
                         int strength) const {
    Tuple tuple;
    const auto extend = [&](const auto& self, std::size_t from, bool refuted) -> void {
      if (tuple.size() == static_cast<std::size_t>(strength)) {
        if (refuted) cover.infeasible.push_back(tuple);
        return;
      }
      const std::size_t missing = static_cast<std::size_t>(strength) - tuple.size();
      for (std::size_t i = from; i + missing <= parameters.size(); ++i) {
        const std::uint32_t p = parameters[i];
        for (std::uint16_t l = 0; l < space_.parameters[p].level_count; ++l) {
          if (static_cast<int>(l) == space_.parameters[p].absent_level) continue;
          const Value v = index_.value(p, l);
          bool bad = refuted || !test_bit(&compatible_[v * index_.words()], v);
          for (const auto& [q, m] : tuple) {
            bad = bad || !test_bit(&compatible_[v * index_.words()], index_.value(q, m));
          }
          tuple.emplace_back(p, l);
          self(self, i + 1, bad);
          tuple.pop_back();
        }
      }
    };
    extend(extend, 0, false);
  }

  void cover_row(const std::vector<Value>& row) {
    for (OpenTuples& layer : layers_) covered_ += layer.cover(row);
  }

  void greedy() {
    RowBuilder builder(space_, index_, validity_, layers_);
    for (OpenTuples& layer : layers_) {
      while (layer.open() > 0) {
        const auto tuple = layer.any_open(static_cast<std::uint32_t>(random_.next()));
        auto row = builder.build(tuple, random_);
        if (row.empty()) {
          layer.remove(tuple);
          infeasible_.push_back(tuple);
          validity_.forbid(tuple);
          continue;
        }
        cover_row(row);
        rows_.push_back(std::move(row));
      }
    }
  }

  void improve() {
    Words wanted(index_.words(), 0);
    for (Value v = 0; v < index_.values(); ++v) {
      if (test_bit(&compatible_[v * index_.words()], v)) set_bit(wanted.data(), v);
    }
    std::vector<std::vector<Value>> all;
    for (const Row& row : space_.already) all.push_back(values_of(row));
    all.insert(all.end(), rows_.begin(), rows_.end());
    const auto given = static_cast<std::ptrdiff_t>(space_.already.size());
    const std::vector<std::vector<Value>> already(all.begin(), all.begin() + given);
    for (const Layer& layer : layer_shapes_) {
      LowerBound bound = lower_bound(index_, layer, wanted, rows_, already,
                                     options_.report_lower_bound ? kThoroughBreadth : kBreadth);
      if (bound.rows > bound_.rows) bound_ = std::move(bound);
    }
    layers_.clear();  // all closed; the search needs the room
    const RowRules rules(space_, index_);
    LocalSearch search(index_, layer_shapes_, wanted, rules, validity_, std::move(all),
                       space_.already.size() + space_.seeds.size(), options_.seed);
    const std::uint64_t patience =
        kPatience + kPatiencePerCell * rows_.size() * index_.parameters();
    std::size_t fewest = search.best().size();
    std::uint64_t found_at = 0;
    search.run(space_.already.size() + bound_.rows, [&] {
      if (options_.deadline_seconds > 0) return seconds() > options_.deadline_seconds;
      if (search.best().size() < fewest) {
        fewest = search.best().size();
        found_at = search.work();
      }
      return search.work() - found_at > patience;
    });
    rows_.assign(search.best().begin() + static_cast<std::ptrdiff_t>(space_.already.size()),
                 search.best().end());
  }

  Cover finish() {
    Cover cover;
    for (const auto& values : rows_) {
      Row row(values.size());
      for (std::uint32_t p = 0; p < row.size(); ++p) row[p] = index_.level(values[p]);
      cover.rows.push_back(std::move(row));
    }
    cover.tuples_covered = covered_;
    cover.lower_bound = bound_.rows;
    cover.lower_bound_reason = bound_.reason;
    cover.tuples_infeasible = infeasible_count_ + infeasible_.size();
    if (options_.list_infeasible) {
      for (std::size_t i = 0; i < layer_shapes_.size(); ++i) {
        list_incompatible(cover, layer_shapes_[i].parameters, layer_shapes_[i].strength);
      }
      for (const auto& values : infeasible_) {
        Tuple tuple;
        for (const Value v : values) tuple.emplace_back(index_.parameter(v), index_.level(v));
        cover.infeasible.push_back(std::move(tuple));
      }
    }
    cover.seconds = seconds();
    return cover;
  }

  const Space& space_;
  const CoverOptions& options_;
  Clock::time_point start_;
  ValueIndex index_;
  Validity validity_;
  Random random_;
  Words compatible_;
  std::vector<OpenTuples> layers_;
  std::vector<std::vector<Value>> rows_;
  std::vector<std::vector<Value>> infeasible_;
  std::vector<Layer> layer_shapes_;
  std::uint64_t infeasible_count_ = 0;  ///< refuted before the first row
  std::uint64_t covered_ = 0;
  LowerBound bound_;
};

}  // namespace

Result<Cover> cover(const Space& space, const CoverOptions& options) {
  if (auto ok = check(space, options); !ok) return pass_on(ok);
  return Engine(space, options).run();
}

}  // namespace greynic::testgen
