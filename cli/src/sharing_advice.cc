#include "sharing_advice.h"

#include <memory>
#include <utility>

#include "greynic/files/output_file.h"
#include "greynic/files/shipped.h"
#include "greynic/model/model.h"
#include "greynic/sharing/sharing.h"
#include "talk.h"

namespace greynic::cli {
namespace {

void print_interval(std::string_view what, const model::PredictedMeasure& gain) {
  print("{:<28} {:.3g} ({:.3g}..{:.3g})\n", what, gain.value, gain.low, gain.high);
}

void print_advice(const sharing::Advice& advice, const sharing::Matrix& matrix) {
  const sharing::Setting& setting = advice.setting;
  if (advice.choice == sharing::Choice::kShare) {
    print("share\n");
    if (setting.bulk_qps > 0) {
      print("{:<28} {} for messages up to {} B, {} for longer ones\n", "QPs to each peer",
            setting.latency_qps, setting.bulk_bytes, setting.bulk_qps);
    } else {
      print("{:<28} {}\n", "QPs to each peer", setting.latency_qps);
    }
    print("{:<28} {} B\n", "under way on each", setting.in_flight_bytes);
  } else {
    print("do not share{}\n", advice.choice == sharing::Choice::kOwnDoorbells
                                  ? ": give each thread a doorbell register of its own"
                                  : "");
    print_interval("sharing would give", advice.if_shared);
  }
  print_interval("goodput over a QP each", advice.gain);
  print("{:<28} {} instead of {}\n", "QPs of the busiest host", advice.advised_qps, advice.own_qps);
  print("\n{:<24} {:>12} {:>14} {:>16}\n", "connections", "", "a QP each", "advised, Gbit/s");
  for (std::size_t i = 0; i < matrix.demands.size(); ++i) {
    const sharing::Demand& demand = matrix.demands[i];
    print("{:<24} {:>12} {:>14.4g} {:>16.4g}\n", demand.from + " to " + demand.to,
          demand.connections, advice.demands[i].own_gbps, advice.demands[i].advised_gbps);
  }
  if (advice.unsure) {
    say("note: the gain may be off by more than a tenth: a host has more QPs than its chip holds, "
        "and "
        "over a tenth of them READ; measure both ways before you rely on it");
  }
  if (advice.extrapolated) {
    say("note: outside of what the model was fitted to; measure the campaign `connections` first");
  }
}

}  // namespace

int advise_sharing(const SharingFlags& flags) {
  if (flags.models.empty()) {
    return tell({ErrorCode::kBadInput,
                 "--connections needs --model: fit one to a run of the campaign `connections`"});
  }
  const auto matrix = sharing::read_matrix(files::shipped_file("examples", flags.connections));
  if (!matrix) return tell(matrix.error());
  std::vector<std::unique_ptr<model::Model>> models;
  for (const std::string& path : flags.models) {
    auto model = model::load(path);
    if (!model) return tell(model.error());
    models.push_back(std::move(*model));
  }
  const auto advice = sharing::advise(*sharing::nearest_of(std::move(models)), *matrix);
  if (!advice) return tell(advice.error().while_doing(flags.connections).value());
  const std::string text = sharing::to_json_text(*advice, *matrix) + "\n";
  if (!flags.out.empty()) {
    if (const auto written = files::write_text(flags.out, text); !written) {
      return tell(written.error());
    }
  }
  if (flags.as_json) {
    put(text);
  } else {
    print_advice(*advice, *matrix);
  }
  return 0;
}

}  // namespace greynic::cli
