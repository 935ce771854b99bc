#include "crossover.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace greynic::broker {
namespace {

constexpr std::uint64_t kPages = 32, kTimes = 8;
constexpr int kTries = 9;

std::uint32_t whole_ns(double ns) {
  return static_cast<std::uint32_t>(std::clamp(
      std::round(ns), 0.0, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
}

double median(std::array<double, kTries> values) {
  std::nth_element(values.begin(), values.begin() + kTries / 2, values.end());
  return values[kTries / 2];
}

double ns_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

local::Costs costs_of(std::uint64_t pages, double register_ns, double register_8_ns,
                      double copy_ns) {
  const auto count = static_cast<double>(pages);
  const double page = std::max(0.0, (register_8_ns - register_ns) / (count * (kTimes - 1)));
  // A device that copies faster than a page in a nanosecond does not exist, and 0 means never.
  return {whole_ns(std::max(0.0, register_ns - count * page)), whole_ns(page),
          std::max(1U, whole_ns(copy_ns / count))};
}

Result<local::Costs> measure_costs(Device& device) {
  std::vector<std::byte> from(kPages * kTimes * local::kPage, std::byte{1}), to(from.size());
  const auto registering = [&](std::uint64_t pages) -> Result<double> {
    std::array<double, kTries> ns{};
    for (double& one : ns) {
      const auto begun = std::chrono::steady_clock::now();
      auto memory =
          device.register_memory(std::span(from).first(pages * local::kPage), Access::kRead);
      if (!memory) return pass_on(memory);
      device.deregister(*memory);
      one = ns_since(begun);
    }
    return median(ns);
  };
  const auto few = registering(kPages);
  if (!few) return pass_on(few);
  const auto many = registering(kPages * kTimes);
  if (!many) return pass_on(many);
  // Pages in turn: what is sent has seldom just been in the cache.
  std::array<double, kTries> ns{};
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const std::size_t at = i % kTimes * kPages * local::kPage;
    const auto begun = std::chrono::steady_clock::now();
    std::memcpy(to.data() + at, from.data() + at, kPages * local::kPage);
    ns[i] = ns_since(begun);
  }
  return costs_of(kPages, *few, *many, median(ns));
}

local::Costs costs_for_crossover(std::optional<std::uint64_t> bytes) {
  if (!bytes) return {};
  const std::uint64_t pages = *bytes / local::kPage;
  return {static_cast<std::uint32_t>(
              std::min<std::uint64_t>(pages, std::numeric_limits<std::uint32_t>::max())),
          0, 1};
}

std::optional<std::uint64_t> crossover_bytes(const local::Costs& costs) {
  if (costs.copy_page_ns <= costs.register_page_ns) return std::nullopt;
  const std::uint64_t gain = costs.copy_page_ns - costs.register_page_ns;
  return (costs.register_ns + gain - 1) / gain * local::kPage;
}

}  // namespace greynic::broker
