#include "greynic/campaign/laboratory.h"

#include <algorithm>
#include <sstream>

namespace greynic::campaign {
namespace {

// A document of one configuration name a line, kept with the run.
constexpr const char* kOrdered = "ordered";

}  // namespace

Result<std::set<std::string>> Laboratory::ordered(const results::RunStore& store) {
  auto text = store.kept(kOrdered);
  if (!text) return pass_on(text);
  std::set<std::string> names;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}

Result<Laboratory> Laboratory::create(target::Target& device, results::RunStore& store,
                                      RunOptions options) {
  auto keys = store.keys();
  if (!keys) return pass_on(keys);
  Laboratory laboratory(device, store, std::move(options));
  auto names = ordered(store);
  if (!names) return pass_on(names);
  laboratory.ordered_ = std::move(*names);
  for (const auto& [configuration, repeat] : *keys) {
    int& repeats = laboratory.repeats_[configuration];
    repeats = std::max(repeats, repeat + 1);
  }
  return laboratory;
}

Result<std::vector<Observation>> Laboratory::measure(const Configuration& configuration,
                                                     int count) {
  int& repeats = repeats_[configuration.name()];
  if (repeats == 0 && ordered_.insert(configuration.name()).second) {
    std::string text;
    for (const std::string& name : ordered_) text += name + "\n";
    if (auto kept = store_->keep(kOrdered, text); !kept) return pass_on(kept);
  }
  std::vector<Observation> observations;
  RunOptions options = options_;
  options.repeats = repeats + count;
  options.progress = [&](const Progress& progress) {
    if (progress.latest != nullptr) observations.push_back(*progress.latest);
  };
  auto summary = run(*device_, {&configuration, 1}, *store_, options);
  if (!summary) return pass_on(summary);
  if (!summary->complete) {
    return fail(ErrorCode::kInterrupted, "stopped; what was measured is stored with the run");
  }
  repeats += count;
  return observations;
}

}  // namespace greynic::campaign
