#include <ceres/jet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "greynic/model/least_squares.h"
#include "sized.h"

// Data, starts and certified values: NIST/ITL StRD, public domain, tests/model/nist/*.dat.

namespace greynic::model {
namespace {

using Jet = ceres::Jet<double, 9>;

struct Problem {
  std::vector<std::vector<double>> starts{2};
  std::vector<double> certified;
  std::vector<double> y;
  std::vector<std::vector<double>> x;
};

std::vector<double> numbers_in(std::string text) {
  for (char& c : text) {
    if (c == '=' || c == ',') c = ' ';
  }
  std::istringstream stream(text);
  std::vector<double> numbers;
  std::string word;
  while (stream >> word) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end != word.c_str() && *end == '\0') numbers.push_back(value);
  }
  return numbers;
}

Problem read_problem(const std::string& name) {
  std::ifstream file(std::string(GREYNIC_SOURCE_DIR) + "/tests/model/nist/" + name + ".dat");
  Problem problem;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const bool parameter = number > 40 && number < 60 && line.find('b') != std::string::npos &&
                           line.find('=') != std::string::npos;
    const auto values = numbers_in(parameter ? line.substr(line.find('=') + 1) : line);
    if (parameter && values.size() >= 4) {
      problem.starts[0].push_back(values[0]);
      problem.starts[1].push_back(values[1]);
      problem.certified.push_back(values[2]);
    } else if (number > 60 && values.size() >= 2) {
      problem.y.push_back(values[0]);
      problem.x.push_back({values.begin() + 1, values.end()});
    }
  }
  return problem;
}

using Function = std::function<Jet(const Jet* b, const std::vector<double>& x)>;

struct Named {
  const char* name;
  Function f;
};

template <typename T>
T square(const T& x) {
  return x * x;
}

Jet rational(const Jet* b, double x) {
  return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1.0 + x * (b[4] + x * (b[5] + x * b[6])));
}

const std::vector<Named>& problems() {
  using V = std::vector<double>;
  constexpr double kPi = 3.141592653589793238462643383279;
  const auto misra1a = [](const Jet* b, const V& x) { return b[0] * (1.0 - exp(-b[1] * x[0])); };
  const auto gauss = [](const Jet* b, const V& x) {
    return b[0] * exp(-b[1] * x[0]) + b[2] * exp(-square((x[0] - b[3]) / b[4])) +
           b[5] * exp(-square((x[0] - b[6]) / b[7]));
  };
  const auto lanczos = [](const Jet* b, const V& x) {
    return b[0] * exp(-b[1] * x[0]) + b[2] * exp(-b[3] * x[0]) + b[4] * exp(-b[5] * x[0]);
  };
  const auto chwirut = [](const Jet* b, const V& x) {
    return exp(-b[0] * x[0]) / (b[1] + b[2] * x[0]);
  };
  const auto cubic = [](const Jet* b, const V& x) { return rational(b, x[0]); };
  static const std::vector<Named> all = {
      {"Misra1a", misra1a},
      {"Chwirut2", chwirut},
      {"Chwirut1", chwirut},
      {"Lanczos3", lanczos},
      {"Gauss1", gauss},
      {"Gauss2", gauss},
      {"DanWood", [](const Jet* b, const V& x) { return b[0] * exp(b[1] * std::log(x[0])); }},
      {"Misra1b", [](const Jet* b,
                     const V& x) { return b[0] * (1.0 - 1.0 / square(1.0 + b[1] * x[0] / 2.0)); }},
      {"Kirby2",
       [](const Jet* b, const V& x) {
         return (b[0] + x[0] * (b[1] + x[0] * b[2])) / (1.0 + x[0] * (b[3] + x[0] * b[4]));
       }},
      {"Hahn1", cubic},
      {"Nelson", [](const Jet* b, const V& x) { return b[0] - b[1] * x[0] * exp(-b[2] * x[1]); }},
      {"MGH17",
       [](const Jet* b, const V& x) {
         return b[0] + b[1] * exp(-x[0] * b[3]) + b[2] * exp(-x[0] * b[4]);
       }},
      {"Lanczos1", lanczos},
      {"Lanczos2", lanczos},
      {"Gauss3", gauss},
      {"Misra1c",
       [](const Jet* b, const V& x) { return b[0] * (1.0 - 1.0 / sqrt(1.0 + 2.0 * b[1] * x[0])); }},
      {"Misra1d",
       [](const Jet* b, const V& x) { return b[0] * b[1] * x[0] / (1.0 + b[1] * x[0]); }},
      {"Roszman1", [](const Jet* b,
                      const V& x) { return b[0] - b[1] * x[0] - atan2(b[2], x[0] - b[3]) / kPi; }},
      {"ENSO",
       [](const Jet* b, const V& x) {
         const double w = 2.0 * kPi * x[0];
         return b[0] + b[1] * std::cos(w / 12.0) + b[2] * std::sin(w / 12.0) +
                b[4] * cos(w / b[3]) + b[5] * sin(w / b[3]) + b[7] * cos(w / b[6]) +
                b[8] * sin(w / b[6]);
       }},
      {"MGH09",
       [](const Jet* b, const V& x) {
         return b[0] * (x[0] * x[0] + x[0] * b[1]) / (x[0] * x[0] + x[0] * b[2] + b[3]);
       }},
      {"Thurber", cubic},
      {"BoxBOD", misra1a},
      {"Rat42", [](const Jet* b, const V& x) { return b[0] / (1.0 + exp(b[1] - b[2] * x[0])); }},
      {"MGH10", [](const Jet* b, const V& x) { return b[0] * exp(b[1] / (x[0] + b[2])); }},
      {"Eckerle4",
       [](const Jet* b, const V& x) {
         return b[0] / b[1] * exp(-0.5 * square((x[0] - b[2]) / b[1]));
       }},
      {"Rat43", [](const Jet* b,
                   const V& x) { return b[0] / exp(log(1.0 + exp(b[1] - b[2] * x[0])) / b[3]); }},
      {"Bennett5", [](const Jet* b, const V& x) { return b[0] * exp(-log(b[1] + x[0]) / b[2]); }},
  };
  return all;
}

/// Digits in which the worst parameter agrees with the certified one.
double digits(const std::vector<double>& found, const std::vector<double>& certified) {
  double least = 99.0;
  for (std::size_t j = 0; j < certified.size(); ++j) {
    const double error = std::abs(found[j] - certified[j]) / std::abs(certified[j]);
    least = std::min(least, -std::log10(std::max(error, 1e-11)));
  }
  return least;
}

// Claim:  the solver meets the certified parameters of all 27 problems to 4 digits from both
//         starts.
// Oracle: NIST's certified values, computed there in 128-bit arithmetic.
// Method: exact derivatives, no bounds, no problem-specific setting.
TEST(LeastSquares, MeetsTheCertifiedNistProblems) {
  int passed = 0;
  ASSERT_EQ(problems().size(), 27U);
  int tried = 0;
  for (const Named& named : problems()) {
    const Problem data = read_problem(named.name);
    ASSERT_FALSE(data.y.empty()) << named.name;
    // A sanitizer looks for what small ones show too.
    if (data.y.size() > sized(1000U, 15U)) continue;
    ++tried;
    const bool log_response = std::string(named.name) == "Nelson";
    LeastSquaresProblem problem;
    problem.residual_count = data.y.size();
    problem.residuals = [&](std::span<const double> p, std::span<double> r,
                            std::span<double> jacobian) {
      std::vector<Jet> b;
      for (std::size_t j = 0; j < p.size(); ++j) b.emplace_back(p[j], static_cast<int>(j));
      for (std::size_t i = 0; i < data.y.size(); ++i) {
        const Jet value = named.f(b.data(), data.x[i]);
        r[i] = value.a - (log_response ? std::log(data.y[i]) : data.y[i]);
        if (jacobian.empty()) continue;
        for (std::size_t j = 0; j < p.size(); ++j) {
          jacobian[i * p.size() + j] = value.v[static_cast<int>(j)];
        }
      }
      return true;
    };
    LeastSquaresOptions options;
    options.thorough = true;
    options.max_iterations = 5000;
    options.tolerance = 1e-15;
    for (int start = 0; start < 2; ++start) {
      const auto fit = minimize(problem, data.starts[static_cast<std::size_t>(start)], options);
      const double met = fit ? digits(fit->parameters, data.certified) : 0.0;
      if (met >= 4.0) ++passed;
      if (met < 4.0) fmt::print("{} from start {}: {:.1f} digits\n", named.name, start + 1, met);
    }
  }
  fmt::print("NIST StRD nonlinear: {} of {} runs meet 4 digits\n", passed, 2 * tried);
  EXPECT_EQ(passed, 2 * tried);
  EXPECT_EQ(tried, sized(27, 9));
}

// Claim:  of two parameter sets that fit alike a thorough run gives the one nearer its start.
// Oracle: a bell of width 2 is the same bell with width -2; the start's sign says which is meant.
TEST(LeastSquares, KeepsToItsStartAmongTwins) {
  LeastSquaresProblem bell;
  bell.residual_count = 21;
  bell.residuals = [](std::span<const double> p, std::span<double> r, std::span<double> jacobian) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      const double x = 0.3 * static_cast<double>(i);
      const double value = std::exp(-square(x / p[0]));
      r[i] = value - std::exp(-square(x / 2.0));
      if (!jacobian.empty()) jacobian[i] = value * 2.0 * x * x / (p[0] * p[0] * p[0]);
    }
    return true;
  };
  LeastSquaresOptions options;
  options.thorough = true;
  for (const double start : {-8.0, -1.0, 0.4, 8.0}) {
    const auto fit = minimize(bell, std::vector<double>{start}, options);
    ASSERT_TRUE(fit) << start << ": " << fit.error().message;
    EXPECT_NEAR(fit->parameters[0], std::copysign(2.0, start), 1e-6) << start;
  }
}

}  // namespace
}  // namespace greynic::model
