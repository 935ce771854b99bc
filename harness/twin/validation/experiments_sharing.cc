#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "validation/experiments.h"

/// SMART's figures 3 and 4: threads that share QPs and doorbell registers, and too many requests
/// under way. ConnectX-6, InfiniBand (no overlay), 8-byte operations, rounds of `depth` requests.

namespace greynic::twin {
namespace {

constexpr std::array<std::uint32_t, 13> kThreads = {1,  8,  16, 24, 32, 40, 48,
                                                    56, 64, 72, 80, 88, 96};
constexpr std::array<double, 13> kSharedRead = {1.9,   0.581, 0.439, 0.396, 0.342, 0.296, 0.268,
                                                0.264, 0.264, 0.249, 0.253, 0.24,  0.255};
constexpr std::array<double, 13> kSharedWrite = {1.8,   0.558, 0.43,  0.395, 0.349, 0.314, 0.269,
                                                 0.257, 0.266, 0.253, 0.263, 0.255, 0.252};
constexpr std::array<double, 13> kPerQpRead = {1.92, 14.8, 29,   39,   39.1, 32.3, 29.4,
                                               23.3, 23,   21.4, 20.8, 20,   19.2};
constexpr std::array<double, 13> kPerQpWrite = {1.82, 14,   27.2, 35.9, 37.4, 30.9, 29.2,
                                                23.3, 23.6, 21.5, 20.4, 19.7, 19.1};
constexpr std::array<double, 13> kOwnRead = {1.81, 14.5, 28.7, 42.1, 55.2, 64.3, 75.4,
                                             84.6, 90.3, 99.4, 105,  110,  111};
constexpr std::array<double, 13> kOwnWrite = {1.7,  13.9, 27.3, 39.1, 50.3, 59.9, 68.8,
                                              73.6, 78.4, 81.1, 84.4, 89.1, 90.6};

constexpr std::array<std::uint32_t, 5> kManyThreads = {48, 60, 72, 84, 96};
constexpr std::array<std::uint32_t, 6> kDepths = {1, 4, 8, 16, 24, 32};
using Grid = std::array<std::array<double, 6>, 5>;
constexpr Grid kRead = {{{18.5, 48.7, 75.5, 102.5, 111.1, 104.0},
                         {22.3, 58.2, 89.2, 111.0, 105.0, 85.7},
                         {25.8, 66.9, 98.6, 107.1, 96.1, 73.2},
                         {29.5, 74.3, 108.4, 92.2, 86.4, 62.4},
                         {33.0, 81.6, 111.0, 78.1, 77.0, 55.2}}};
constexpr Grid kWrite = {{{17.4, 45.9, 68.6, 85.8, 84.2, 69.9},
                          {21.1, 53.1, 75.8, 92.7, 66.2, 65.1},
                          {24.1, 59.3, 81.6, 67.0, 64.1, 63.6},
                          {27.2, 64.7, 86.3, 64.5, 63.4, 62.9},
                          {30.2, 71.2, 89.5, 62.8, 63.0, 63.1}}};

HostLoad smart(Operation operation, std::uint32_t threads, std::uint32_t depth,
               Doorbells doorbells) {
  HostLoad w;
  w.operation = operation;
  w.overlay = false;
  w.message_bytes = {8};
  w.thread_count = threads;
  w.qp_count = doorbells == Doorbells::kSharedQp ? 1 : threads;
  w.send_depth = depth;
  w.doorbells = doorbells;
  w.posting = Posting::kRound;
  w.mr_bytes = 1ULL << 30;
  w.page_bytes = 1ULL << 21;
  w.inline_bytes = 0;
  return w;
}

/// Requests outstanding where a row has fallen by a tenth from its best cell: the middle
/// (geometric) of the two cells between which that happens, mean of the rows that do fall.
double knee_of(const Grid& grid) {
  double sum = 0;
  int rows = 0;
  for (std::size_t t = 0; t < grid.size(); ++t) {
    const auto& row = grid[t];
    auto at = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const double best = row[at];
    while (at + 1 < row.size() && row[at + 1] >= 0.9 * best) ++at;
    if (at + 1 == row.size()) continue;
    sum += kManyThreads[t] * std::sqrt(static_cast<double>(kDepths[at]) * kDepths[at + 1]);
    ++rows;
  }
  return rows > 0 ? sum / rows : 0;
}

}  // namespace

void doorbell_sharing(Bench& bench, Operation operation) {
  const bool read = operation == Operation::kRead;
  struct Layout {
    const char* name;
    Doorbells doorbells;
    const std::array<double, 13>& published;
  };
  const std::array<Layout, 3> layouts = {
      {{"shared QP", Doorbells::kSharedQp, read ? kSharedRead : kSharedWrite},
       {"default doorbells", Doorbells::kDriverDefault, read ? kPerQpRead : kPerQpWrite},
       {"own doorbells", Doorbells::kOwn, read ? kOwnRead : kOwnWrite}}};
  std::vector<Series> lines;
  std::map<std::string, std::array<double, 13>> seen;
  double worst = 0;
  for (const Layout& layout : layouts) {
    Series published{std::string("published, ") + layout.name, true, {}};
    Series twin{std::string("twin, ") + layout.name, false, {}};
    for (std::size_t i = 0; i < kThreads.size(); ++i) {
      const double mops = bench.rate(smart(operation, kThreads[i], 8, layout.doorbells), 120000)
                              .messages_per_second *
                          1e-6;
      seen[layout.name][i] = mops;
      worst = std::max(worst, std::abs(mops / layout.published[i] - 1));
      published.points.emplace_back(kThreads[i], layout.published[i]);
      twin.points.emplace_back(kThreads[i], mops);
    }
    lines.push_back(std::move(published));
    lines.push_back(std::move(twin));
  }
  const auto& shared = seen["shared QP"];
  const auto& usual = seen["default doorbells"];
  const auto& own = seen["own doorbells"];
  const std::string name(to_string(operation));
  bench.accept(8, name + ", shared QP, one thread", "Mops", layouts[0].published[0], shared[0], 1.6,
               2);
  bench.accept(8, name + ", shared QP, 48 threads", "Mops", layouts[0].published[6], shared[6], 0.2,
               0.35);
  const auto peak = std::max_element(usual.begin(), usual.end());
  const auto peak_threads =
      static_cast<double>(kThreads[static_cast<std::size_t>(peak - usual.begin())]);
  bench.accept(8, name + ", default doorbells, peak", "Mops", read ? 39.1 : 37.4, *peak,
               read ? 35 : 33, read ? 43 : 42);
  bench.accept(8, name + ", default doorbells, peak at", "threads", 28, peak_threads, 24, 32);
  bench.accept(8, name + ", default doorbells, 96 threads", "Mops", layouts[1].published[12],
               usual[12], 16, 22);
  bench.accept(8, name + ", own doorbells, 96 threads", "Mops", layouts[2].published[12], own[12],
               read ? 105 : 85, read ? 115 : 96);
  double rises = 1e9;
  for (std::size_t i = 1; i < own.size(); ++i) rises = std::min(rises, own[i] / own[i - 1]);
  if (read)
    bench.accept(8, name + ", own doorbells, least rise per step", "", 1.01, rises, 0.97, 9);
  bench.accept(8, name + ", worst of 39 points", "", 0, worst, 0, 0.20);
  bench.explains(39);
  bench.picture({"item08_" + name, "8-byte " + name + ", depth 8: QP and doorbell sharing",
                 "threads", "Mops", false, true, lines});
}

void outstanding_requests(Bench& bench, Operation operation) {
  const bool read = operation == Operation::kRead;
  const Grid& published = read ? kRead : kWrite;
  Grid seen{};
  std::vector<Series> lines;
  double best = 0;
  for (std::size_t t = 0; t < kManyThreads.size(); ++t) {
    Series theirs{fmt::format("published, {} threads", kManyThreads[t]), true, {}};
    Series ours{fmt::format("twin, {} threads", kManyThreads[t]), false, {}};
    for (std::size_t d = 0; d < kDepths.size(); ++d) {
      const BandwidthResult result =
          bench.rate(smart(operation, kManyThreads[t], kDepths[d], Doorbells::kOwn), 200000);
      seen[t][d] = result.messages_per_second * 1e-6;
      theirs.points.emplace_back(kDepths[d], published[t][d]);
      ours.points.emplace_back(kDepths[d], seen[t][d]);
    }
    const auto top = std::max_element(seen[t].begin(), seen[t].end());
    best = std::max(best, *top);
    lines.push_back(std::move(theirs));
    lines.push_back(std::move(ours));
  }
  const std::string name(to_string(operation));
  if (read) bench.accept(9, "READ, highest", "Mops", 111.1, best, 105, 115);
  bench.accept(9, name + ", 96 threads, depth 32 over 8", "", published[4][5] / published[4][2],
               seen[4][5] / seen[4][2], read ? 0.40 : 0.65, read ? 0.60 : 0.75);
  bench.accept(9, name + ", knee over outstanding requests", "requests", knee_of(published),
               knee_of(seen), 700, 1300);
  if (!read) {
    for (const std::size_t row : {3U, 4U}) {
      const auto [low, high] = std::minmax({seen[row][3], seen[row][4], seen[row][5]});
      bench.accept(9, fmt::format("WRITE, {} threads, spread of depth 16 to 32", kManyThreads[row]),
                   "", 0.02, high / low - 1, 0, 0.05);
    }
  }
  bench.explains(30);
  bench.picture({"item09_" + name, "8-byte " + name + ", own doorbells: outstanding requests",
                 "depth", "Mops", false, false, lines});
}

}  // namespace greynic::twin
