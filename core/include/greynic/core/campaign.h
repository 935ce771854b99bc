#pragma once

/// A campaign: what is varied, what is allowed, what is measured and what counts as a wall. Plain
/// data, as the campaign file says it; files/campaign_file.h reads it, testgen turns it into a
/// plan.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/match_field.h"

namespace greynic {

struct Factor {
  std::string name;
  FactorType type = FactorType::kNumeric;
  std::vector<FactorValue> levels;  ///< at least one, distinct, in the order given
  std::vector<double> weights;      ///< empty, or one for each level: how often to prefer it
  std::vector<double> costs;        ///< empty, or seconds each level adds to a test
  std::string only_if;              ///< condition under which the factor exists; empty: always
};

/// How the bits of a field are chosen: each on its own (a factor a bit), a prefix (quarters of the
/// width), or the whole field or nothing.
enum class MaskBits : std::uint8_t { kEach, kPrefix, kWhole };

/// A mask whose fields and bits are varied; core/mask_group.h makes factors of it.
struct MaskGroup {
  std::string name;
  std::vector<MatchField> fields;
  MaskBits bits = MaskBits::kEach;
  Hop hop = Hop::kServerDecap;  ///< whose rules it is among
};

enum class DesignKind : std::uint8_t { kFull, kCovering, kRandom, kPoints, kModel };

struct StrengthGroup {
  std::vector<std::string> factors;
  int strength = 2;
};

struct Design {
  DesignKind kind = DesignKind::kCovering;
  int strength = 2;                   ///< kCovering: 2 to 6
  std::vector<StrengthGroup> groups;  ///< kCovering: higher strength among some factors
  std::uint64_t count = 0;            ///< kRandom: configurations; kModel: budget
  std::vector<Configuration> points;  ///< kPoints
  std::string law;                    ///< kModel: "pipeline"
};

/// A configuration is a wall when its metric is worse than stated. Exactly one bound is set.
struct WallRule {
  std::string metric = "bandwidth_gbps";
  std::optional<double> below_baseline_by;  ///< share of the baseline, 0..1
  std::optional<double> above_baseline_by;  ///< share of the baseline, > 0
  std::optional<double> below;              ///< absolute, in the metric's unit
  std::optional<double> above;
};

struct MeasurePlan {
  int repeats = 3;
  std::chrono::nanoseconds duration = std::chrono::seconds(1);  ///< of one repeat
  std::vector<std::string> metrics;  ///< empty: all that the target gives
};

struct Campaign {
  int version = 1;
  std::string name;
  std::vector<Factor> factors;
  /// Their factors stand in `factors`, after the campaign's own.
  std::vector<MaskGroup> masks;
  bool mask_order = false;               ///< the order in which the masks are tried is varied too
  std::vector<std::string> constraints;  ///< language: docs/formats/campaign.md
  std::vector<Configuration>
      forbidden;                     ///< partial: no configuration may contain all levels of one
  std::vector<Configuration> seeds;  ///< partial or whole: must be in the plan
  std::string topology;              ///< path as written in the file; empty: none
  Design design;
  Configuration baseline;
  WallRule wall;
  MeasurePlan measure;
  std::string source;  ///< path of the file, for messages and relative paths
  std::string text;    ///< the file, word for word, to be kept with a run

  [[nodiscard]] const Factor* find(std::string_view factor) const;
};

}  // namespace greynic
