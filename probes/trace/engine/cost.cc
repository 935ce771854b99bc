#include "engine/cost.h"

#include <algorithm>

namespace greynic::trace {
namespace {

constexpr std::chrono::milliseconds kWindow{50};
constexpr std::chrono::milliseconds kPause{950};
/// Beyond it the cost is that of packets which are not followed, so more of them save nothing.
constexpr std::uint32_t kMostOneIn = 1 << 12;

}  // namespace

std::pair<std::uint64_t, std::uint64_t> Cost::read(const bpf::Object& object, const Links& links) {
  std::pair<std::uint64_t, std::uint64_t> sum;
  for (const auto& [program, link] : links) {
    const auto statistics = object.statistics(program);
    if (!statistics) continue;
    sum.first += statistics->runs;
    sum.second += statistics->run_time_ns;
  }
  return sum;
}

void Cost::tend(const bpf::Object& object, const Links& links) {
  const auto now = Clock::now();
  if (links.empty()) {
    counting_.reset();
    return;
  }
  if (!counting_) {
    if (window_ns_ > 0 && now - ended_ < kPause) return;
    std::tie(runs_before_, ns_before_) = read(object, links);
    counting_ = bpf::count_run_time();
    began_ = now;
    return;
  }
  if (now - began_ < kWindow) return;
  const auto [runs, ns] = read(object, links);
  counting_.reset();
  ended_ = now;
  const double length = std::chrono::duration<double, std::nano>(now - began_).count();
  const double cpus = static_cast<double>(bpf::possible_cpus());
  last_share_ = static_cast<double>(ns - ns_before_) / length / cpus;
  runs_ += runs - runs_before_;
  ns_ += ns - ns_before_;
  window_ns_ += length;
}

double Cost::share() const {
  if (window_ns_ == 0) return 0;
  return static_cast<double>(ns_) / window_ns_ / static_cast<double>(bpf::possible_cpus());
}

std::optional<double> Cost::event_ns() const {
  if (runs_ == 0) return std::nullopt;
  return static_cast<double>(ns_) / static_cast<double>(runs_);
}

std::optional<std::uint32_t> Cost::wanted_one_in(std::optional<double> budget) {
  if (!budget || !last_share_) return std::nullopt;
  const double share = *last_share_;
  last_share_.reset();
  std::uint32_t wanted = one_in_;
  // As many steps of two as the cost is above the budget, were it all in packets that are followed. The
  // way back is one step: twice the sampling costs at most twice as much, so it cannot overshoot.
  for (double left = share; left > *budget && wanted < kMostOneIn; left /= 2) wanted *= 2;
  if (share < *budget / 3 && one_in_ > 1) wanted = one_in_ / 2;
  if (wanted == one_in_) return std::nullopt;
  return one_in_ = wanted;
}

}  // namespace greynic::trace
