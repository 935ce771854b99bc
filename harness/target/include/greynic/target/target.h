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
#include "greynic/core/flow_rule.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

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
  bool keeps_layout = false;      ///< what apply installed outlives the process
};

/// Where a layout is installed: which mask sequence it replaces.
struct Placement {
  Hop hop = Hop::kServerDecap;
};

/// What a layout for a device may look like.
struct LayoutRoom {
  std::uint32_t last_table = 0xfffffffe;
  bool cuts_pay = true;  ///< small tables behind jumps are searched faster than one long one
};

/// A rule that a device holds, and what went through it since it was installed.
struct CountedRule {
  FlowRule rule;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
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

  /// Installs a layout as one transaction: all of it or, with an error, nothing. The traffic, when
  /// given, is what later measurements send through it. kUnsupported where there are no rules.
  [[nodiscard]] virtual Result<void> apply(const Layout& layout, const Traffic* traffic,
                                           const Placement& placement);
  /// Checks that apply would be accepted, and changes nothing.
  [[nodiscard]] virtual Result<void> check(const Layout& layout, const Placement& placement);
  /// Whether this traffic can be sent through the device's rules, asked before any work is done on
  /// them. kUnsupported names the fields that stand against it, kTooBig the number. Yes for devices
  /// that have it sent by others.
  [[nodiscard]] virtual Result<void> check_traffic(const Traffic& traffic) const;
  /// What the optimizer may use of the device; everything, unless a device says otherwise.
  [[nodiscard]] virtual LayoutRoom layout_room() const;
  /// The rules as the device wants them written, before anything else is done with them: with the
  /// headers named that they take for granted, say. Most devices take rules as they are.
  [[nodiscard]] virtual RuleSet spell_out(RuleSet rules) const;
  /// An equivalent layout in the form that this device searches fastest; most devices take a layout
  /// as it is. Open vSwitch, which makes its own masks from what rules look at, does not.
  [[nodiscard]] virtual Layout adapt(const Layout& layout) const;
  /// Returns to the rules that were there before the first apply.
  [[nodiscard]] virtual Result<void> roll_back();
  /// The rules that the device holds, whoever installed them, with its own counters. kUnsupported
  /// where rules cannot be read.
  [[nodiscard]] virtual Result<std::vector<CountedRule>> rules();
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
