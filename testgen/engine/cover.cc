#include "greynic/testgen/cover.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "engine/cover_attempt.h"
#include "engine/cover_forecast.h"
#include "engine/cover_task.h"
#include "engine/engine_bits.h"
#include "engine/engine_values.h"
#include "engine/open_tuples.h"
#include "validity/validity.h"

namespace greynic::testgen {
namespace {

/// Independent ways to an array that are tried without a deadline; the best counts.
constexpr std::size_t kAttempts = 2;
/// Of CoverEstimate: as measured on the machines that docs/testgen/engine.md names.
constexpr double kStepsPerSecond = 1e9;

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
    for (const auto* list :
         {&space.parameters[p].level_costs, &space.parameters[p].level_weights}) {
      if (!list->empty() && list->size() != space.parameters[p].level_count) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("parameter #{} has {} levels but {} costs or weights", p,
                                space.parameters[p].level_count, list->size()));
      }
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
  for (const SubModel& group : space.groups) {
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
      : task_{space, options, ValueIndex(space.parameters), CoverTask::now(options), {}, {}, {},
              {},    {}},
        validity_(space, task_.index) {}

  Result<Cover> run() {
    if (!validity_.possible()) return no_row();
    if (auto made = make_layers(); !made) return pass_on(made);
    if (auto found = find_compatible(); !found) return pass_on(found);
    for (const Row& row : task_.space.already) task_.already.push_back(values_of(row));
    for (const Row& row : task_.space.seeds) {
      task_.seeds.push_back(values_of(row));
      if (!validity_.satisfied(task_.seeds.back())) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("seed {} breaks a constraint", task_.seeds.size()));
      }
    }
    const auto best = attempt();
    if (!best->laid_out()) return tables_too_late(best->seconds_to_lay_out());
    return finish(*best);
  }

 private:
  tl::unexpected<Error> no_row() const {
    std::string text;
    for (const std::size_t i : Validity::unsatisfiable_core(task_.space, task_.index)) {
      text += fmt::format("{}clause {} (", text.empty() ? "" : ", ", i + 1);
      for (std::size_t k = 0; k < task_.space.clauses[i].size(); ++k) {
        text += (k ? " or " : "") + describe(task_.space.clauses[i][k]);
      }
      text += ")";
    }
    return fail(ErrorCode::kInfeasible, "no row is valid: these contradict each other: " + text);
  }

  std::vector<Value> values_of(const Row& row) const {
    std::vector<Value> values(row.size());
    for (std::uint32_t p = 0; p < row.size(); ++p) values[p] = task_.index.value(p, row[p]);
    return values;
  }

  /// For each value, which others propagation still allows beside it.
  Result<void> find_compatible() {
    const std::size_t words = task_.index.words();
    task_.compatible.assign(task_.index.values() * words, 0);
    Words& wanted = task_.wanted;
    wanted.assign(words, 0);
    for (std::uint32_t p = 0; p < task_.index.parameters(); ++p) {
      if (!task_.space.parameters[p].covered) continue;
      for (Value v = task_.index.first(p); v < task_.index.first(p) + task_.index.level_count(p);
           ++v) {
        if (task_.late()) return too_late(0.0);
        if (static_cast<int>(task_.index.level(v)) == task_.space.parameters[p].absent_level)
          continue;
        if (validity_.free(p) || validity_.feasible(std::array{v})) set_bit(wanted.data(), v);
      }
    }
    std::vector<Value> listed;
    for_each_bit(wanted.data(), words,
                 [&](std::size_t v) { listed.push_back(static_cast<Value>(v)); });
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (task_.late())
        return too_late(static_cast<double>(i) / static_cast<double>(listed.size()));
      const Value v = listed[i];
      Word* mine = &task_.compatible[v * words];
      std::copy(wanted.begin(), wanted.end(), mine);
      const std::uint32_t p = task_.index.parameter(v);
      if (!validity_.free(p)) {
        validity_.restart();
        (void)validity_.assume(std::array{v});
        for_each_bit(wanted.data(), words, [&](std::size_t w) {
          if (!validity_.allowed(static_cast<Value>(w))) clear_bit(mine, w);
        });
      }
      for (Value w = task_.index.first(p); w < task_.index.first(p) + task_.index.level_count(p);
           ++w) {
        if (w != v) clear_bit(mine, w);
      }
    }
    validity_.restart();
    // Propagation is not always symmetric; what it refutes one way is refuted.
    for (const Value v : listed) {
      for (const Value w : listed) {
        if (w >= v) break;
        if (!test_bit(&task_.compatible[v * words], w)) clear_bit(&task_.compatible[w * words], v);
        if (!test_bit(&task_.compatible[w * words], v)) clear_bit(&task_.compatible[v * words], w);
      }
    }
    return {};
  }

  /// The deadline came before the first row could be begun.
  tl::unexpected<Error> too_late(double share) const {
    const double needed = share > 0 ? task_.seconds() / share : 0.0;
    return fail(ErrorCode::kTooBig,
                fmt::format("the deadline of {:.3g} s came before the first row, while sorting out "
                            "which of {:.3g} tuples are feasible{}; allow more, lower the strength "
                            "or group it",
                            task_.options.deadline_seconds, estimate_.tuples,
                            needed > 0 ? fmt::format(" (this takes about {:.2g} s)", needed) : ""));
  }

  tl::unexpected<Error> tables_too_late(double needed) const {
    return fail(ErrorCode::kTooBig,
                fmt::format("the {:.3g} tuples of {} parameters take {:.3g} GiB, which alone are "
                            "laid out in about {:.2g} s, after the deadline of {:.3g} s; allow "
                            "more, lower the strength or group it",
                            estimate_.tuples, estimate_.parameters, estimate_.bytes / 0x1p30,
                            needed, task_.options.deadline_seconds));
  }

  Result<void> make_layers() {
    std::vector<std::uint32_t> covered;
    for (std::uint32_t p = 0; p < task_.index.parameters(); ++p) {
      if (task_.space.parameters[p].covered) covered.push_back(p);
    }
    std::vector<Layer> wanted = {{task_.options.strength, covered}};
    for (const SubModel& group : task_.space.groups) {
      auto parameters = group.parameters;
      std::sort(parameters.begin(), parameters.end());
      parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
      std::erase_if(parameters,
                    [&](std::uint32_t p) { return !task_.space.parameters[p].covered; });
      if (group.strength > task_.options.strength) {
        wanted.push_back({group.strength, std::move(parameters)});
      }
    }
    for (Layer& layer : wanted) {
      layer.strength = std::min(layer.strength, static_cast<int>(layer.parameters.size()));
    }
    std::erase_if(wanted, [](const Layer& layer) { return layer.strength == 0; });
    estimate(wanted, covered.size());
    if (task_.options.announce) task_.options.announce(estimate_);
    const double most = task_.options.memory_bytes > 0
                            ? static_cast<double>(task_.options.memory_bytes)
                            : affordable_bytes();
    if (estimate_.bytes > most) {
      return fail(ErrorCode::kTooBig,
                  fmt::format("the {:.3g} tuples of {} parameters with {} levels in all take about "
                              "{:.3g} GiB, over the limit of {:.3g} GiB (8, or what is free if "
                              "that is less); lower the strength, use fewer threads or group it",
                              estimate_.tuples, covered.size(), task_.index.values(),
                              estimate_.bytes / 0x1p30, most / 0x1p30));
    }
    for (const Layer& layer : wanted) {
      // Tables that fit have far fewer tuples than the 2^53 that a double counts exactly.
      tuples_ += static_cast<std::uint64_t>(tuples_of(task_.space, layer));
    }
    task_.layers = std::move(wanted);
    return {};
  }

  void estimate(const std::vector<Layer>& wanted, std::size_t parameters) {
    const int threads = std::max(1, task_.options.threads);
    for (const Layer& layer : wanted) {
      estimate_.bytes += threads * table_bytes(task_.index, layer);
      estimate_.tuples += tuples_of(task_.space, layer);
      estimate_.strength = std::max(estimate_.strength, layer.strength);
    }
    estimate_.parameters = parameters;
    const Forecast foretold = forecast(task_.space, task_.index, wanted);
    // Rows that were run before are taken for as good as those that are to be made.
    estimate_.rows = std::max(1.0, foretold.rows - static_cast<double>(task_.space.already.size()));
    estimate_.deadline_seconds = task_.options.deadline_seconds;
    estimate_.steps = foretold.steps * kAttempts;
    estimate_.seconds =
        estimate_.steps / kStepsPerSecond / std::min(static_cast<double>(kAttempts), threads * 1.0);
  }

  /// Tuples that hold two values which are never together, until they are enough or the time for
  /// going through all tuples is over.
  void list_incompatible(Cover& cover, const std::vector<std::uint32_t>& parameters,
                         int strength) const {
    constexpr std::uint64_t kMostSteps = 1'000'000'000;
    constexpr std::uint64_t kBetweenQuestions = 1 << 14;
    std::uint64_t steps = 0;
    bool going_on = true;
    Tuple tuple;
    const auto extend = [&](const auto& self, std::size_t from, bool refuted) -> void {
      if (++steps % kBetweenQuestions == 0) going_on = steps < kMostSteps && !task_.late();
      going_on = going_on && cover.infeasible.size() < task_.options.most_listed;
      if (!going_on) return;
      if (tuple.size() == static_cast<std::size_t>(strength)) {
        if (refuted) cover.infeasible.push_back(tuple);
        return;
      }
      const std::size_t missing = static_cast<std::size_t>(strength) - tuple.size();
      for (std::size_t i = from; i + missing <= parameters.size(); ++i) {
        const std::uint32_t p = parameters[i];
        for (std::uint16_t l = 0; l < task_.space.parameters[p].level_count; ++l) {
          if (static_cast<int>(l) == task_.space.parameters[p].absent_level) continue;
          const Value v = task_.index.value(p, l);
          bool bad = refuted || !test_bit(&task_.compatible[v * task_.index.words()], v);
          for (const auto& [q, m] : tuple) {
            bad = bad ||
                  !test_bit(&task_.compatible[v * task_.index.words()], task_.index.value(q, m));
          }
          tuple.emplace_back(p, l);
          self(self, i + 1, bad);
          tuple.pop_back();
        }
      }
    };
    extend(extend, 0, false);
  }

  /// Runs the attempts on as many threads as asked; without a deadline the answer does not depend
  /// on how many.
  std::unique_ptr<CoverAttempt> attempt() {
    const auto threads = static_cast<std::size_t>(std::max(1, task_.options.threads));
    const bool timed = task_.options.deadline_seconds > 0;
    const std::size_t count = timed ? threads : kAttempts;
    const bool costs = std::any_of(task_.space.parameters.begin(), task_.space.parameters.end(),
                                   [](const Parameter& p) { return !p.level_costs.empty(); });
    const bool algebra = CoverAttempt::has_algebraic_start(task_, validity_);
    std::vector<std::unique_ptr<CoverAttempt>> attempts(count);
    SharedBest shared;
    std::atomic<std::size_t> next = 0;
    std::atomic<std::size_t> settled = count;  // the first attempt that met the lower bound
    const auto work = [&] {
      for (std::size_t i = next++; i < count; i = next++) {
        if (settled < i) continue;
        const bool frugal = costs && (i % 2 == 1 || count == 1);
        auto mine = std::make_unique<CoverAttempt>(task_, task_.options.seed * kAttempts + i,
                                                   algebra && i == 0 && !frugal, i == 0, frugal);
        if (mine->laid_out()) mine->run(shared);
        if (!costs && mine->full() && mine->rows().size() <= mine->bound().rows) {
          std::size_t before = settled;
          while (i < before && !settled.compare_exchange_weak(before, i)) {
          }
        }
        steps_.fetch_add(mine->steps());
        attempts[i] = std::move(mine);
      }
    };
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    std::unique_ptr<CoverAttempt> best;
    for (std::size_t i = 0; i < count && i <= settled; ++i) {
      if (!best || better(*attempts[i], *best)) best = std::move(attempts[i]);
    }
    return best;
  }

  double cost(const CoverAttempt& attempt) const {
    double sum = 0;
    for (const ValueRow& row : attempt.rows()) {
      for (std::uint32_t p = 0; p < row.size(); ++p) {
        const auto& costs = task_.space.parameters[p].level_costs;
        if (!costs.empty()) sum += costs[task_.index.level(row[p])];
      }
    }
    return sum;
  }

  /// A full array before one that the deadline cut, then less cost, then fewer rows.
  bool better(const CoverAttempt& a, const CoverAttempt& b) const {
    if (a.laid_out() != b.laid_out()) return a.laid_out();
    if (a.full() != b.full()) return a.full();
    if (!a.full() && a.covered() != b.covered()) return a.covered() > b.covered();
    if (cost(a) != cost(b)) return cost(a) < cost(b);
    return a.rows().size() < b.rows().size();
  }

  Cover finish(const CoverAttempt& attempt) const {
    Cover cover;
    for (const auto& values : attempt.rows()) {
      Row row(values.size());
      for (std::uint32_t p = 0; p < row.size(); ++p) row[p] = task_.index.level(values[p]);
      cover.rows.push_back(std::move(row));
    }
    cover.tuples_covered = attempt.covered();
    cover.full = attempt.full();
    cover.deadline_reached = task_.late();
    cover.lower_bound = attempt.bound().rows;
    cover.lower_bound_reason = attempt.bound().reason;
    cover.tuples_infeasible = tuples_ - attempt.tuples() + attempt.infeasible().size();
    if (task_.options.list_infeasible) {
      // First those that only search found: few, and the most surprising.
      for (const auto& values : attempt.infeasible()) {
        if (cover.infeasible.size() == task_.options.most_listed) break;
        Tuple tuple;
        for (const Value v : values)
          tuple.emplace_back(task_.index.parameter(v), task_.index.level(v));
        cover.infeasible.push_back(std::move(tuple));
      }
      for (const Layer& layer : task_.layers) {
        list_incompatible(cover, layer.parameters, layer.strength);
      }
    }
    cover.steps = steps_;
    cover.seconds = task_.seconds();
    return cover;
  }

  CoverTask task_;
  Validity validity_;
  CoverEstimate estimate_;
  std::uint64_t tuples_ = 0;  ///< feasible or not
  std::atomic<double> steps_ = 0.0;
};

}  // namespace

Result<Cover> cover(const Space& space, const CoverOptions& options) {
  if (auto ok = check(space, options); !ok) return pass_on(ok);
  return Engine(space, options).run();
}

}  // namespace greynic::testgen
