#include "pipeline/doorbells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

namespace greynic::model {
namespace {

constexpr int kRegisters = 16;
constexpr int kExclusive = 4;
constexpr int kShared = kRegisters - kExclusive;
constexpr int kMostThreads = 256;  // beyond it more threads change nothing that could be told

std::vector<PostingClass> classes_of(int threads, int qps) {
  // posts[r][t]: QPs of thread t at register r. The pattern repeats; a few periods hold its shares.
  std::array<std::vector<int>, kRegisters> posts;
  for (auto& row : posts) row.assign(static_cast<std::size_t>(threads), 0);
  const int period = std::lcm(kShared, threads);
  const int walked = std::min(qps, kExclusive + 4 * period);
  for (int qp = 0; qp < walked; ++qp) {
    const int r = qp < kExclusive ? qp : kExclusive + (qp - kExclusive) % kShared;
    ++posts[static_cast<std::size_t>(r)][static_cast<std::size_t>(qp % threads)];
  }
  std::array<double, kRegisters> users{};
  for (std::size_t r = 0; r < kRegisters; ++r) {
    users[r] = static_cast<double>(
        std::count_if(posts[r].begin(), posts[r].end(), [](int n) { return n > 0; }));
  }
  std::vector<double> all(static_cast<std::size_t>(threads), 0.0);
  for (const auto& row : posts) {
    for (std::size_t t = 0; t < all.size(); ++t) all[t] += row[t];
  }
  // Posts at each register for one post of every thread, as if all were equally fast.
  std::array<double, kRegisters> load{};
  for (std::size_t r = 0; r < kRegisters; ++r) {
    for (std::size_t t = 0; t < all.size(); ++t) load[r] += posts[r][t] / all[t];
  }
  std::map<std::pair<double, double>, double> counts;
  for (std::size_t t = 0; t < all.size(); ++t) {
    // The register that the thread waits for most decides.
    std::pair<double, double> worst{0.0, 1.0};
    for (std::size_t r = 0; r < kRegisters; ++r) {
      if (posts[r][t] == 0 || users[r] < 2.0) continue;
      worst = std::max(worst, {load[r], users[r]});
    }
    ++counts[worst];
  }
  std::vector<PostingClass> result;
  for (const auto& [key, count] : counts) result.push_back({count, key.second, key.first});
  return result;
}

}  // namespace

std::span<const PostingClass> posting_classes(double threads, double qps, bool dedicated) {
  struct Memo {
    std::tuple<int, int> key{-1, -1};
    std::vector<PostingClass> classes;
  };
  thread_local Memo memo;
  thread_local PostingClass alone;
  const double active = std::min(threads, qps);
  if (dedicated || active <= 1.0 || qps <= kRegisters) {
    alone = {active, 1.0, 0.0};
    return {&alone, 1};
  }
  const int thread_number = static_cast<int>(std::min<double>(std::ceil(active), kMostThreads));
  const int most_qps = kExclusive + 4 * std::lcm(kShared, thread_number);
  const int qp_number = static_cast<int>(std::min<double>(std::ceil(qps), most_qps));
  if (memo.key != std::tuple(thread_number, qp_number)) {
    memo.classes = classes_of(thread_number, qp_number);
    memo.key = {thread_number, qp_number};
  }
  return memo.classes;
}

}  // namespace greynic::model
