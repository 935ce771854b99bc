// How much the published curves hang on parameters that nobody published: each parameter of grade D
// (our estimate) of an RNIC model is moved by -50, -20, +20 and +50 %, the others stay, and every
// experiment of `greynic validate` runs again. Printed for each move: how many of the figures
// change by 2 % or more, how many are no longer accepted, and the one that changes most. A
// parameter that changes nothing at 50 % is not tried at 20 %. Counts stay whole numbers.
//
// usage: twin_sensitivity_bench [MODEL] [THREADS] [PARAMETER ...]     default: cx6, 1, all

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "greynic/twin/validation.h"

namespace {

using nlohmann::json;
using namespace greynic::twin;

constexpr double kMoves[] = {0.5, 1.5, 0.8, 1.2};
constexpr double kNotable = 0.02;

/// What one move of one parameter did.
struct Effect {
  std::size_t changed = 0;  ///< figures
  std::size_t lost = 0;     ///< accepted before, and now not
  double most = 0;          ///< change of the figure that changed most, signed
  std::string figure;
  std::string refused;  ///< why the model cannot be so
};

struct Subject {
  std::string parameter;
  std::map<double, Effect> effects;
};

void scale(json& fact, double factor) {
  const auto move = [&](json& value) {
    if (!value.is_number()) return;
    const double moved = value.get<double>() * factor;
    const bool whole = value.is_number_integer() && value.get<double>() >= 2;
    value = whole ? std::round(moved) : moved;
  };
  if (fact.contains("value")) move(fact["value"]);
  if (!fact.contains("by_operation")) return;
  for (auto& [operation, value] : fact["by_operation"].items()) move(value);
}

/// The parameter's value in every profile of the file.
json scaled(json model, const std::string& parameter, double factor) {
  scale(model["parameters"][parameter], factor);
  for (auto& [name, profile] : model["profiles"].items()) {
    json& own = profile.contains("parameters") ? profile["parameters"] : profile;
    if (own.contains(parameter)) scale(own[parameter], factor);
  }
  return model;
}

Effect compare(const std::vector<CheckRow>& before, const std::vector<CheckRow>& after) {
  Effect effect;
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
    // Errors of a fit stand as shares already; other figures change relatively.
    const bool is_share = before[i].published == 0;
    if (is_share && !before[i].unit.empty()) continue;
    const double change = is_share ? after[i].twin - before[i].twin
                                   : (after[i].twin - before[i].twin) / before[i].published;
    if (std::abs(change) >= kNotable) ++effect.changed;
    if (before[i].passed() && !after[i].passed()) ++effect.lost;
    if (std::abs(change) > std::abs(effect.most)) {
      effect.most = change;
      effect.figure = fmt::format("{}: {}", before[i].item, before[i].curve);
    }
  }
  return effect;
}

Effect move(const json& model, const std::string& parameter, double factor,
            const ValidationReport& usual, const std::filesystem::path& folder) {
  const auto path = folder / fmt::format("{}_{}.json", parameter, std::lround(factor * 100));
  std::ofstream(path) << scaled(model, parameter, factor).dump();
  const auto report = validate(path.string());
  if (!report) return {.refused = report.error().message};
  return compare(usual.rows, report->rows);
}

std::string cell(const Subject& subject, double factor) {
  const auto found = subject.effects.find(factor);
  if (found == subject.effects.end()) return "";
  const Effect& effect = found->second;
  if (!effect.refused.empty()) return "cannot be";
  if (effect.changed == 0) return "none";
  return fmt::format("{} ({} lost)", effect.changed, effect.lost);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string id = argc > 1 ? argv[1] : "cx6";
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::max(1, std::atoi(argv[2]))) : 1;
  const std::string file = fmt::format("{}/configs/rnics/{}.json", GREYNIC_SOURCE_DIR, id);
  std::ifstream in(file);
  const json model = json::parse(in, nullptr, false);
  const auto usual = validate(file);
  if (model.is_discarded() || !usual) {
    fmt::print(stderr, "twin_sensitivity_bench: cannot read {}\n", file);
    return 2;
  }
  std::vector<Subject> subjects;
  for (const auto& [name, fact] : model["parameters"].items()) {
    const bool wanted = argc <= 3 || std::find(argv + 3, argv + argc, name) != argv + argc;
    if (wanted && fact.value("grade", json()) == "D") subjects.push_back({name, {}});
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "sensitivity-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return 3;
  const std::filesystem::path folder = pattern;

  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < subjects.size(); i = next++) {
      Subject& subject = subjects[i];
      bool matters = false;
      for (const double factor : kMoves) {
        if (std::abs(factor - 1) < 0.4 && !matters) continue;
        const Effect effect = move(model, subject.parameter, factor, *usual, folder);
        matters = matters || effect.changed > 0;
        subject.effects.emplace(factor, effect);
      }
      fmt::print(stderr, "{} of {}: {}\n", i + 1, subjects.size(), subject.parameter);
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 0; i < threads; ++i) pool.emplace_back(work);
  }
  std::filesystem::remove_all(folder);

  fmt::print("{}: {} figures, {} parameters of grade D\n\n", usual->model, usual->rows.size(),
             subjects.size());
  fmt::print("| parameter | -50 % | -20 % | +20 % | +50 % | changes most |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  std::string idle;
  for (const Subject& subject : subjects) {
    const Effect* most = nullptr;
    double at = 0;
    for (const auto& [factor, effect] : subject.effects) {
      if (most == nullptr || std::abs(effect.most) > std::abs(most->most)) {
        most = &effect;
        at = factor;
      }
    }
    if (most == nullptr || std::abs(most->most) < kNotable) {
      idle += (idle.empty() ? "" : ", ") + subject.parameter;
      continue;
    }
    fmt::print("| `{}` | {} | {} | {} | {} | {} by {:+.0f} % at {:+.0f} % |\n", subject.parameter,
               cell(subject, 0.5), cell(subject, 0.8), cell(subject, 1.2), cell(subject, 1.5),
               most->figure, most->most * 100, (at - 1) * 100);
  }
  fmt::print("\nNothing changes by {:.0f} % or more with: {}\n", kNotable * 100, idle);
  return 0;
}
