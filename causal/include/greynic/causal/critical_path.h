#pragma once

/// Which stage between host and virtual switch holds a wall: by interventions, and by the device's
/// own counters.
///
/// Each setting acts at one stage. A stage is healed (its settings at the baseline's levels, all
/// others as in the wall), or acts alone (the other way round); and the stages are made as in the
/// wall one after the other, along the path, to see where the metric breaks. A stage that brings
/// most of the way back when healed holds the wall. Several do when a cause has settings in several;
/// none does when the wall has causes in several.
///
/// Counters are compared for each packet. They agree or they do not: both are told.
///
/// Example. A wall of 40 masks at the server and of 64 QPs, of which only the masks matter:
///
///     stage          healed      alone   up to here
///     caches         1.0 times   99 %    99 %
///     server decap   3.1 times   32 %    32 %        holds the wall; rx_steering_pipe_hops 2 -> 80
///
/// Not promised: a factor or a counter that greynic does not know belongs to no stage.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/causal/sensitivity.h"

namespace greynic::causal {

/// In the order of the path.
enum class Stage : std::uint8_t {
  kRequest,  ///< what is asked: operation, size, direction
  kHost,
  kPcie,
  kCaches,  ///< of QP contexts, translations, WQEs
  kClientEncap,
  kServerDecap,
  kServerEncap,
  kClientDecap,
  kWire,
  kVirtualSwitch,
};
inline constexpr int kStages = 10;
[[nodiscard]] std::string_view name_of(Stage stage);  ///< "server decap"
[[nodiscard]] std::optional<Stage> stage_of_factor(std::string_view factor);
/// Of counters that rise where their stage is in trouble.
[[nodiscard]] std::optional<Stage> stage_of_counter(std::string_view counter);

struct MovedCounter {
  std::string name;
  double baseline = 0.0;  ///< for each packet; for each test, where packets are not counted
  double wall = 0.0;
};

struct StageOnPath {
  Stage stage = Stage::kHost;
  std::vector<std::string> settings;   ///< that the wall sets otherwise
  std::optional<Estimate> healed;      ///< the metric over the wall's
  std::optional<Estimate> alone;       ///< the metric over the baseline's
  std::optional<Estimate> up_to_here;  ///< the same, with all stages before it as in the wall too
  bool holds = false;
  std::vector<MovedCounter> counters;  ///< that rose, most first
};

struct CriticalPath {
  Configuration wall;
  std::vector<StageOnPath> stages;     ///< with settings or with counters that rose
  std::optional<Stage> by_counters;    ///< whose counter rose most
  std::vector<std::string> elsewhere;  ///< settings of no known stage
  std::string symptom;                 ///< "S6", as ScalaCN has them; empty: none of them
  std::string symptom_text;
  std::size_t tests = 0;
};

}  // namespace greynic::causal
