#include "replay.h"

#include <fmt/core.h>

namespace greynic::causal {

Result<std::vector<Observation>> Replay::measure(std::span<const Configuration> wanted) {
  std::vector<Observation> all;
  std::vector<Configuration> fresh;
  for (const Configuration& configuration : wanted) {
    auto held = held_.find(configuration.name());
    if (held != held_.end() && !held->second.empty()) {
      all.push_back(held->second.front());
      held->second.erase(held->second.begin());
    } else {
      fresh.push_back(configuration);
    }
  }
  if (fresh.empty()) return all;
  if (ordered_ + fresh.size() > options_.most_tests) {
    return fail(ErrorCode::kAllowanceSpent,
                fmt::format("the allowance of {} tests is spent; raise it with --most-tests",
                            options_.most_tests));
  }
  auto made = laboratory_.measure(fresh);
  if (!made) return pass_on(made);
  ordered_ += made->size();
  all.insert(all.end(), made->begin(), made->end());
  return all;
}

}  // namespace greynic::causal
