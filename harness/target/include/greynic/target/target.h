#pragma once

/// The one interface of every device under test: take configurations, give observations. What a
/// device refuses is an Outcome inside the Observation; an error is returned only when the target
/// itself cannot go on (device gone, exec: command cannot be started, the user interrupted).
///
/// Targets are named "kind:place?option=value&option=value" and may be joined by '+':
/// "verbs:mlx5_0?peer=host:port+flows:tc:enp1s0f0" drives verbs traffic through those rules.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "greynic/target/rule_holder.h"

namespace greynic::target {

/// A parsed target name. For "twin:cx6?defects=S1,S6": kind "twin", place "cx6", one option.
struct Spec {
  std::string text;
  std::string kind;
  std::string place;
  std::map<std::string, std::string> options;
};

/// Splits at '+' into parts and each part into kind, place and options. kBadInput says the form.
[[nodiscard]] Result<std::vector<Spec>> parse_specs(std::string_view text);

struct MeasureRequest {
  Configuration configuration;
  int repeat = 0;  ///< 0-based; part of the observation's identity
  std::chrono::nanoseconds duration = std::chrono::seconds(1);
  std::uint64_t seed = 0;  ///< of this request; same seed, same answer on a twin
  /// Counters are read so often while traffic runs (Observation::counter_samples); 0: they are not.
  std::chrono::nanoseconds sample_every{0};
};

/// Called once for each request, in any order, never from two threads at once. `index` is that of
/// the request. Return false to stop early: requests not yet begun are then dropped.
using ObservationSink = std::function<bool(std::size_t index, Observation observation)>;

/// What a target is and what it can do; `greynic devices TARGET` prints it.
struct Info {
  std::string name;                      ///< as given on the command line
  std::string description;               ///< one line for people
  std::vector<std::string> factors;      ///< factor names it honours; empty: any
  std::map<std::string, double> limits;  ///< largest value for numeric factors
  std::map<std::string, std::vector<std::string>>
      categories;                                  ///< levels it offers of categorical ones
  std::map<std::string, std::string> environment;  ///< host, NIC, firmware, driver
  std::vector<std::vector<std::string>>
      facts;                      ///< rows for people: name, value, unit, grade, source
  double seconds_per_test = 0.0;  ///< beyond the measured duration; 0: unknown
  bool virtual_time = false;      ///< durations cost no wall time
  bool keeps_layout = false;      ///< installed rules outlive the process
};

class Target {
 public:
  virtual ~Target() = default;
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  [[nodiscard]] virtual Info info() const = 0;

  /// Measures every request. Blocks; uses what parallelism the target has.
  [[nodiscard]] virtual Result<void> measure(std::span<const MeasureRequest> requests,
                                             const ObservationSink& sink) = 0;

  /// The rules that the traffic passes; no_rules() where there are none.
  [[nodiscard]] virtual RuleHolder& rules() { return no_rules(); }
};

/// Measures one request: the convenience over Target::measure.
[[nodiscard]] Result<Observation> measure_one(Target& target, const MeasureRequest& request);

/// One entry of `greynic devices`: something that could be a target here, or why it cannot.
struct Candidate {
  std::string spec;  ///< "twin:cx6", "verbs:rxe0"
  bool available = false;
  std::string what;     ///< one line
  std::string why_not;  ///< empty when available
  std::string remedy;   ///< what to do about it
};

/// A kind of target: how it opens and what it finds on this machine.
struct Kind {
  std::string name;  ///< "twin"
  std::function<Result<std::unique_ptr<Target>>(const Spec&)> open;
  std::function<std::vector<Candidate>()> probe;
};

/// The registry is a plain list: the program registers the kinds it was built with at start-up.
void register_kind(Kind kind);
[[nodiscard]] std::span<const Kind> kinds();

/// Opens "kind:place?options", or several joined by '+' where one drives traffic and the others
/// hold rules. kBadInput for an unknown kind (lists those there are), kMissing with the remedy.
[[nodiscard]] Result<std::unique_ptr<Target>> open(std::string_view text);

}  // namespace greynic::target
