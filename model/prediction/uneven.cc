#include "greynic/model/model.h"

namespace greynic::model {

Result<Prediction> Model::predict_uneven(Configuration configuration, Hop hop,
                                         const MaskShares& shares) const {
  double mean = 0;
  for (const auto& [masks, share] : shares) mean += masks * share;
  configuration.set(mask_factor(hop), mean);
  return predict(configuration);
}

}  // namespace greynic::model
