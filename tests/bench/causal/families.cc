#include "planted.h"

namespace greynic::bench {
namespace {

void add_healers_and_slopes(std::vector<Family>& all) {
  all.push_back(
      {.name = "healers", .most_factors = 96, .most_order = 2, .numbers = true, .healed = true});
  all.push_back({.name = "noisy_healers",
                 .most_factors = 96,
                 .most_order = 2,
                 .numbers = true,
                 .noise = {0.15, 0.30},
                 .least_drop = 0.25,
                 .healed = true});
  // As many settings as a program has that somebody tunes.
  all.push_back({.name = "few_healers",
                 .least_factors = 5,
                 .most_factors = 9,
                 .most_order = 2,
                 .numbers = true,
                 .healed = true});
  all.push_back({.name = "few_hidden",
                 .least_factors = 5,
                 .most_factors = 9,
                 .most_order = 2,
                 .numbers = true,
                 .hidden = true});
  all.push_back(
      {.name = "hidden", .most_factors = 96, .most_order = 2, .numbers = true, .hidden = true});
  all.push_back({.name = "slopes",
                 .most_factors = 40,
                 .most_order = 2,
                 .numbers = true,
                 .noise = {0.15},
                 .least_drop = 0.7,
                 .most_drop = 0.9,
                 .slopes = true});
  all.push_back({.name = "healed_and_hidden",
                 .most_factors = 96,
                 .most_order = 2,
                 .numbers = true,
                 .healed = true,
                 .hidden = true});
}

/// Walls that a covering plan has to meet first.
void add_planned(std::vector<Family>& all) {
  const Family planned{.name = "planned",
                       .least_factors = 10,
                       .most_factors = 14,
                       .most_order = 3,
                       .least_causes = 2,
                       .most_causes = 3,
                       .noise = {0.01, 0.05, 0.15},
                       .least_drop = 0.25,
                       .most_stalls = 0.05,
                       .planned = true};
  all.push_back(planned);
  all.push_back(planned);
  all.back().name = "planned_quiet";
  all.back().noise = {0.002, 0.01};
  all.back().most_stalls = 0.0;
  all.push_back(planned);
  all.back().name = "planned_sticky";
  all.back().noise = {0.01, 0.05};
  all.back().sticky = 3;
  all.push_back(planned);
  all.back().name = "planned_slow";
  all.back().least_causes = 1;
  all.back().sticky = 1;
  all.back().most_sticky = 12;
  all.push_back(planned);
  all.back().name = "planned_alarm";
  all.back().noise = {0.01, 0.03, 0.05};
  all.back().false_alarm = true;
}

}  // namespace

std::vector<Family> families() {
  std::vector<Family> all;
  all.push_back({.name = "clean"});
  all.push_back({.name = "four_of_192",
                 .least_factors = 192,
                 .most_factors = 192,
                 .least_order = 4,
                 .most_order = 4});
  all.push_back(
      {.name = "levels", .most_factors = 96, .most_order = 3, .numbers = true, .intervals = 0.35});
  all.push_back({.name = "masked",
                 .most_factors = 96,
                 .most_order = 3,
                 .least_causes = 2,
                 .most_causes = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .overlap = true});
  all.push_back({.name = "noise",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .noise = {0.15, 0.30},
                 .least_drop = 0.25,
                 .most_stalls = 0.05,
                 .most_timeouts = 0.05});
  all.push_back({.name = "three",
                 .least_factors = 96,
                 .most_factors = 96,
                 .least_order = 3,
                 .most_order = 3,
                 .least_causes = 3,
                 .most_causes = 3,
                 .noise = {0.30},
                 .least_drop = 0.3});
  all.push_back({.name = "emergent",
                 .most_factors = 96,
                 .least_order = 2,
                 .most_order = 3,
                 .emergent = true});
  all.push_back({.name = "weak",
                 .most_factors = 96,
                 .most_order = 3,
                 .noise = {0.15},
                 .least_drop = 0.12,
                 .most_drop = 0.2});
  all.push_back({.name = "constraints",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.2,
                 .most_forbidden = 40});
  all.push_back({.name = "decoys",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.2,
                 .most_forbidden = 20,
                 .most_decoys = 5});
  all.push_back({.name = "troubled",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.2,
                 .noise = {0.03, 0.15},
                 .least_drop = 0.25,
                 .most_decoys = 5,
                 .troubled = 0.3});
  all.push_back({.name = "false_alarm", .most_factors = 96, .noise = {0.03}, .false_alarm = true});
  all.push_back({.name = "sums",
                 .most_factors = 96,
                 .least_order = 1,
                 .most_order = 2,
                 .numbers = true,
                 .sum = true});
  all.push_back({.name = "drift", .most_factors = 96, .most_order = 3, .drift = 0.1});
  all.push_back({.name = "sticky", .most_factors = 96, .most_order = 3, .sticky = 3});
  all.push_back({.name = "absolute",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .absolute = true});
  add_healers_and_slopes(all);
  add_planned(all);
  return all;
}

}  // namespace greynic::bench
