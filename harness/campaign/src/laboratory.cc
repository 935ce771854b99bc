#include "greynic/campaign/laboratory.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greynic::campaign {
namespace {

// The document kept with the run: an array of configuration names.
constexpr const char* kOrdered = "ordered";

}  // namespace

Result<std::set<std::string>> Laboratory::ordered(const results::RunStore& store) {
  auto text = store.kept(kOrdered);
  if (!text) return pass_on(text);
  if (text->empty()) return std::set<std::string>();
  try {
    return nlohmann::json::parse(*text).get<std::set<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kBadInput,
                std::string("the run's list of ordered tests cannot be read: ") + error.what());
  }
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
    const std::string text = nlohmann::json(ordered_).dump();
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
