#pragma once

#include <vector>

namespace greynic::causal {

/// Two heaps of scores are far apart, by what each scatters. The halves of one heap are not: they lie
/// 2.7 noises apart.
[[nodiscard]] bool are_two_heaps(const std::vector<double>& fast, const std::vector<double>& slow);

}  // namespace greynic::causal
