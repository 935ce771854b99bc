// Advice on sharing QPs, held against the twin: random traffic matrices, of which each is run with
// a QP for each connection and over brokers, whatever the advice says. Virtual time; nothing is
// asserted.
//
// The hosts have no overlay, so models are of `twin:RNIC?overlay=off` where the RNIC has an eSwitch.
//
// usage: advice_bench RNIC MODEL.json,MODEL.json one_way|any|CONNECTIONS.json [matrices] [seed]
// one_way: payload leaves some hosts and comes to others, in messages of 4 KiB and more; any:
// messages of 64 B and more, both verbs, every host may ask and be asked; a file: the one matrix in it.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "greynic/statistics/random.h"
#include "matrix_programs.h"

namespace greynic::sharing {
namespace {

/// Between one and three kinds of connections between two to four hosts.
Matrix random_matrix(statistics::Random& random, bool one_way) {
  constexpr std::uint32_t kMostOfHost = 1800;
  Matrix matrix;
  matrix.threads = 1U << random.below(3);
  const std::uint32_t hosts = 2 + random.below(3), kinds = 1 + random.below(3);
  const std::uint32_t askers = 1 + random.below(hosts - 1);
  const Operation operation = random.below(2) == 0 ? Operation::kRead : Operation::kWrite;
  for (std::uint32_t k = 0; k < kinds; ++k) {
    Demand demand;
    const std::uint32_t from = random.below(one_way ? askers : hosts);
    const std::uint32_t to = one_way ? askers + random.below(hosts - askers)
                                     : (from + 1 + random.below(hosts - 1)) % hosts;
    demand.from = fmt::format("h{}", from);
    demand.to = fmt::format("h{}", to);
    const double most = std::log2(kMostOfHost / kinds);
    demand.connections = static_cast<std::uint32_t>(std::exp2(2 + (most - 2) * random.uniform()));
    demand.operation = operation;
    if (!one_way) demand.operation = random.below(2) == 0 ? Operation::kRead : Operation::kWrite;
    demand.message_bytes = one_way ? 4096U << random.below(5) : 64U << random.below(11);
    demand.outstanding = 1U << random.below(3);
    matrix.demands.push_back(demand);
  }
  return matrix;
}

struct Tally {
  std::vector<double> errors;  ///< of gains that were predicted of what was advised
  std::vector<double> shared_errors;
  int sure = 0, sure_within = 0, sure_shared = 0;
  int shared = 0, within = 0, inside = 0, worse = 0, missed = 0, count = 0;
};

void try_one(int index, const model::Model& model, const std::string& rnic, const Matrix& matrix,
             Tally& tally) {
  const auto advice = advise(model, matrix);
  if (!advice) {
    fmt::print("{}: {}\n", index, advice.error().message);
    return;
  }
  const double own = own_qps_gbps(matrix, rnic, false);
  const double shared = shared_gbps(matrix, rnic, advice->setting);
  double advised = own;
  if (advice->choice == Choice::kShare) advised = shared;
  if (advice->choice == Choice::kOwnDoorbells) advised = own_qps_gbps(matrix, rnic, true);
  const double gain = advised / own, if_shared = shared / own;
  const double error = advice->gain.value / gain - 1;
  ++tally.count;
  tally.errors.push_back(std::abs(error));
  tally.shared_errors.push_back(std::abs(advice->if_shared.value / if_shared - 1));
  tally.shared += advice->choice == Choice::kShare;
  tally.within += std::abs(error) <= 0.1;
  if (!advice->unsure) {
    ++tally.sure;
    tally.sure_within += std::abs(error) <= 0.1;
    tally.sure_shared += advice->choice == Choice::kShare;
  }
  tally.inside += gain >= advice->gain.low && gain <= advice->gain.high;
  tally.worse += gain < 0.99;
  tally.missed += advice->choice != Choice::kShare && if_shared > 1.1;
  fmt::print(
      "{:3}  {:5}  q {}+{}  {:7} B  gain {:6.3f} ({:.3f}..{:.3f}), measured {:6.3f}, error "
      "{:+6.1f} %;"
      " if shared {:6.3f}, measured {:6.3f}  ",
      index, advice->choice == Choice::kShare ? "share" : "own", advice->setting.latency_qps,
      advice->setting.bulk_qps, advice->setting.in_flight_bytes, advice->gain.value,
      advice->gain.low, advice->gain.high, gain, 100 * error, advice->if_shared.value, if_shared);
  double own_predicted = 0;
  for (const Reached& one : advice->demands) own_predicted += one.own_gbps;
  fmt::print("own {:.2f} predicted {:.2f}; shared {:.2f} predicted {:.2f}; t{}:", own,
             own_predicted, shared, advice->if_shared.value * own_predicted, matrix.threads);
  for (const Demand& demand : matrix.demands) {
    fmt::print(" {}>{} {}x{} {} {}B", demand.from, demand.to, demand.connections,
               demand.outstanding, to_string(demand.operation), demand.message_bytes);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace greynic::sharing

int main(int argc, char** argv) {
  using namespace greynic;
  if (argc < 4) return 2;
  std::vector<std::unique_ptr<model::Model>> models;
  std::istringstream paths(argv[2]);
  for (std::string path; std::getline(paths, path, ',');) {
    auto model = model::load(path);
    if (!model) {
      fmt::print(stderr, "{}\n", model.error().message);
      return 2;
    }
    models.push_back(std::move(*model));
  }
  const auto model = sharing::nearest_of(std::move(models));
  const std::string kind = argv[3];
  const bool drawn = kind == "one_way" || kind == "any";
  const int count = !drawn ? 1 : argc > 4 ? std::atoi(argv[4]) : 50;
  statistics::Random random(argc > 5 ? static_cast<std::uint64_t>(std::atoi(argv[5])) : 1);
  sharing::Tally tally;
  for (int i = 0; i < count; ++i) {
    const auto matrix =
        drawn ? Result<sharing::Matrix>(sharing::random_matrix(random, kind == "one_way"))
              : sharing::read_matrix(kind);
    if (!matrix) {
      fmt::print(stderr, "{}\n", matrix.error().message);
      return 2;
    }
    sharing::try_one(i, *model, argv[1], *matrix, tally);
  }
  const auto worst = [](const std::vector<double>& list) {
    return list.empty() ? 0 : 100 * *std::max_element(list.begin(), list.end());
  };
  fmt::print(
      "{} matrices, {} advised to share; gain within 10 % in {} (worst {:.1f} %), in its "
      "interval in {}; sure of {}, of which it shares {}, and within 10 % in {}; worse than not "
      "sharing by over 1 %: {}; not advised although it gains "
      "over 10 %: {}; worst error of sharing {:.1f} %\n",
      tally.count, tally.shared, tally.within, worst(tally.errors), tally.inside, tally.sure,
      tally.sure_shared, tally.sure_within, tally.worse, tally.missed, worst(tally.shared_errors));
}
