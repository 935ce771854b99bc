#include "greynic/model/model.h"

namespace greynic::model {

Result<AlikeMasks> Model::masks_alike(const Configuration& /*configuration*/, Hop /*hop*/,
                                      const MaskShares& shares) const {
  double mean = 0;
  for (const auto& [masks, share] : shares) mean += masks * share;
  return AlikeMasks{mean, mean};
}

Result<Prediction> Model::predict_uneven(const Configuration& configuration, Hop hop,
                                         const MaskShares& shares) const {
  const auto alike = masks_alike(configuration, hop, shares);
  if (!alike) return pass_on(alike);
  Configuration even = configuration;
  even.set(mask_factor(hop), alike->for_rate);
  auto prediction = predict(even);
  if (!prediction || alike->for_rate == alike->for_latency) return prediction;
  even.set(mask_factor(hop), alike->for_latency);
  auto latencies = predict(even);
  if (!latencies) return latencies;
  for (const auto& [name, value] : latencies->measures) {
    if (name.starts_with("latency")) prediction->measures[name] = value;
  }
  if (latencies->distance > prediction->distance) {
    latencies->measures = std::move(prediction->measures);
    return latencies;
  }
  return prediction;
}

}  // namespace greynic::model
