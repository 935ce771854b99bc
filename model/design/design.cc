#include "greynic/model/design.h"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

#include "pipeline/fit.h"
#include "pipeline/model.h"

namespace greynic::model {
namespace {

using pipeline::kParameterCount;
using Vector = Eigen::Matrix<double, kParameterCount, 1>;
using Square = Eigen::Matrix<double, kParameterCount, kParameterCount, Eigen::RowMajor>;

/// Scatter of a measurement about the law where no fit has told it, as a share.
constexpr double kScatter = 0.02;

/// One guess at the device: the law's values, what is known of them, and how each candidate's
/// outputs depend on them.
struct Guess {
  Square covariance;
  Eigen::MatrixXd gradients;  ///< parameters x (candidates * outputs), over the scatter
  Eigen::VectorXd unknown;    ///< variance of each output in units of its scatter
};

Guess guess_at(const pipeline::Values& values, const Square& covariance,
               std::span<const Setting> settings, const std::array<double, kOutputCount>& scatter) {
  Guess guess;
  guess.covariance = covariance;
  guess.gradients.setZero(kParameterCount, static_cast<Eigen::Index>(settings.size()) * 2);
  pipeline::LawAt law(values);
  pipeline::Values gradient;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
      if (output == pipeline::kLogBandwidth && settings[i].bytes <= 0.0) continue;
      law.at(output, settings[i], gradient);
      guess.gradients.col(static_cast<Eigen::Index>(2 * i) + output) =
          Eigen::Map<const Vector>(gradient.data()) / scatter[static_cast<std::size_t>(output)];
    }
  }
  guess.unknown =
      (guess.gradients.array() * (covariance * guess.gradients).array()).colwise().sum();
  return guess;
}

/// What measuring one output at column `c` tells: the covariance shrinks along it.
void learn(Guess& guess, Eigen::Index c) {
  const Vector along = guess.covariance * guess.gradients.col(c);
  const double before = 1.0 + guess.unknown[c];
  const Eigen::RowVectorXd shared = along.transpose() * guess.gradients;
  guess.unknown.array() -= shared.transpose().array().square() / before;
  guess.unknown = guess.unknown.cwiseMax(0.0);
  guess.covariance.noalias() -= along * along.transpose() / before;
}

std::vector<std::size_t> choose(std::vector<Guess>& guesses, std::size_t candidates,
                                std::size_t budget) {
  std::vector<std::size_t> chosen;
  std::vector<bool> taken(candidates, false);
  while (chosen.size() < std::min(budget, candidates)) {
    std::size_t best = candidates;
    double best_gain = -1.0;
    for (std::size_t i = 0; i < candidates; ++i) {
      if (taken[i]) continue;
      double gain = 0.0;  // growth of log det, the correlation of both outputs left aside
      for (const Guess& guess : guesses) {
        gain += std::log1p(guess.unknown[static_cast<Eigen::Index>(2 * i)]) +
                std::log1p(guess.unknown[static_cast<Eigen::Index>(2 * i) + 1]);
      }
      if (gain > best_gain) {
        best_gain = gain;
        best = i;
      }
    }
    taken[best] = true;
    chosen.push_back(best);
    for (Guess& guess : guesses) {
      learn(guess, static_cast<Eigen::Index>(2 * best));
      learn(guess, static_cast<Eigen::Index>(2 * best) + 1);
    }
  }
  return chosen;
}

Square prior_covariance() {
  const auto precision = pipeline::prior_precision(pipeline::table_priors());
  return Eigen::Map<const Square>(precision.data()).ldlt().solve(Square::Identity());
}

/// Values at the priors' means, then draws about them.
std::vector<pipeline::Values> draws_of(const DesignOptions& options) {
  std::vector<pipeline::Values> result = {pipeline::typical()};
  std::mt19937_64 random(options.seed);
  std::normal_distribution<double> normal;
  while (static_cast<int>(result.size()) < options.draws) {
    pipeline::Values values{};
    for (int j = 0; j < kParameterCount; ++j) {
      const pipeline::Prior& prior = pipeline::parameters()[j].prior;
      // Half the deviation: the ends of wide priors are devices that nobody builds.
      values[j] = prior.mean + 0.5 * prior.deviation * normal(random) +
                  (prior.relative_to ? values[*prior.relative_to] : 0.0);
      const auto parameter = static_cast<pipeline::Parameter>(j);
      values[j] =
          std::clamp(values[j], pipeline::fitted(parameter, pipeline::parameters()[j].lower),
                     pipeline::fitted(parameter, pipeline::parameters()[j].upper));
    }
    values[pipeline::kLoopPackets] = std::log(pipeline::kOpenLoopPackets);
    result.push_back(values);
  }
  result.front()[pipeline::kLoopPackets] = std::log(pipeline::kOpenLoopPackets);
  return result;
}

}  // namespace

Result<std::vector<Configuration>> choose_settings(std::string_view law,
                                                   std::span<const Configuration> candidates,
                                                   std::uint64_t budget,
                                                   const DesignOptions& options) {
  if (law != "pipeline") {
    return fail(ErrorCode::kBadInput,
                fmt::format("designs follow the law 'pipeline'; '{}' has none", law));
  }
  const PipelineState* known = nullptr;
  if (options.model != nullptr) {
    const auto* fitted = dynamic_cast<const PipelineModel*>(options.model);
    if (fitted == nullptr) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("the model's law is '{}'; a design needs one of the law 'pipeline'",
                              options.model->law()));
    }
    known = &fitted->state();
  }
  std::vector<Setting> settings;
  for (const Configuration& candidate : candidates) {
    auto setting = read_setting(candidate, known != nullptr ? known->assumed[0] : Configuration());
    if (!setting) return setting.error().while_doing("designing with " + candidate.name());
    settings.push_back(*setting);
  }
  std::vector<Guess> guesses;
  if (known != nullptr) {
    std::array<double, kOutputCount> scatter{};
    for (std::size_t o = 0; o < kOutputCount; ++o) {
      scatter[o] = std::max(kScatter, std::hypot(known->noise[o].scatter, known->noise[o].run));
    }
    guesses.push_back(guess_at(known->values, Eigen::Map<const Square>(known->covariance.data()),
                               settings, scatter));
  } else {
    const Square covariance = prior_covariance();
    for (const pipeline::Values& values : draws_of(options)) {
      guesses.push_back(guess_at(values, covariance, settings, {kScatter, kScatter}));
    }
  }
  std::vector<Configuration> result;
  for (const std::size_t i : choose(guesses, candidates.size(), budget)) {
    result.push_back(candidates[i]);
  }
  return result;
}

}  // namespace greynic::model
