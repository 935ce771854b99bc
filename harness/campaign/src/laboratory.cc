#include "greynic/campaign/laboratory.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"

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

/// A configuration that is measured here first is none of the run's plan.
Result<void> Laboratory::remember(const Configuration& configuration) {
  if (repeats_[configuration.name()] > 0) return {};
  if (!ordered_.insert(configuration.name()).second) return {};
  return store_->keep(kOrdered, files::json_text(ordered_));
}

Result<std::vector<Observation>> Laboratory::measure(const Configuration& configuration,
                                                     int count) {
  const std::vector<Configuration> wanted(static_cast<std::size_t>(count), configuration);
  return measure(wanted);
}

Result<void> Laboratory::complete(std::span<const Configuration> wanted, int repeats) {
  std::vector<Configuration> missing;
  for (const Configuration& one : wanted) {
    const int there = repeats_[one.name()];
    if (there < repeats)
      missing.insert(missing.end(), static_cast<std::size_t>(repeats - there), one);
  }
  const auto measured = measure(missing);
  return measured ? Result<void>() : pass_on(measured);
}

Result<std::vector<Observation>> Laboratory::measure(std::span<const Configuration> wanted) {
  // The target takes a plan and one number of repeats, so those with as many stored go together.
  std::map<int, std::vector<Configuration>> by_repeats;
  std::map<std::pair<std::string, int>, std::size_t> places;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (auto kept = remember(wanted[i]); !kept) return pass_on(kept);
    const int repeat = repeats_[wanted[i].name()]++;
    by_repeats[repeat].push_back(wanted[i]);
    places[{wanted[i].name(), repeat}] = i;
  }
  std::vector<Observation> observations(wanted.size());
  for (const auto& [repeat, configurations] : by_repeats) {
    RunOptions options = options_;
    options.repeats = repeat + 1;
    options.progress = [&](const Progress& progress) {
      if (progress.latest == nullptr) return;
      if (options_.progress) options_.progress(progress);
      const auto place = places.find({progress.latest->asked.name(), progress.latest->repeat});
      if (place != places.end()) observations[place->second] = *progress.latest;
    };
    auto summary = run(*device_, configurations, *store_, options);
    if (!summary) return pass_on(summary);
    if (!summary->complete) {
      return fail(ErrorCode::kInterrupted, "stopped; what was measured is stored with the run");
    }
  }
  return observations;
}

}  // namespace greynic::campaign
