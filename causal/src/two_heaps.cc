#include "two_heaps.h"

#include <algorithm>
#include <cmath>

namespace greynic::causal {
namespace {

constexpr double kNoiseAtWorst = 0.15;  // until the baseline was tested often
constexpr double kSurelySlow = 5.0;     // standard errors
constexpr double kApart = 4.0;          // noises

}  // namespace

bool are_two_heaps(const std::vector<double>& fast, const std::vector<double>& slow) {
  if (slow.empty()) return false;
  double scatter = 2.0 * kNoiseAtWorst * kNoiseAtWorst;
  double mean[2] = {0.0, 0.0};
  for (const int heap : {0, 1}) {
    const std::vector<double>& scores = heap == 0 ? fast : slow;
    const double count = std::max(1.0, static_cast<double>(scores.size()));
    for (const double score : scores) mean[heap] += score / count;
    for (const double score : scores) scatter += (score - mean[heap]) * (score - mean[heap]);
  }
  const double of_fast = static_cast<double>(fast.size());
  const double of_slow = static_cast<double>(slow.size());
  const double noise = std::sqrt(scatter / (of_fast + of_slow));
  const double error = noise * std::sqrt(1.0 / std::max(of_fast, 1.0) + 1.0 / of_slow);
  return mean[1] - mean[0] > std::max(kSurelySlow * error, kApart * noise);
}

}  // namespace greynic::causal
