#include "pipeline/grid.h"

#include <algorithm>

namespace greynic::model {

namespace {

using Copy = void (*)(Setting&, const Setting&);

template <Hop hop>
void copy_masks(Setting& to, const Setting& from) {
  to.masks[static_cast<int>(hop)] = from.masks[static_cast<int>(hop)];
}

/// How a factor acts on a setting; null when not on its own, or when the law does not read it.
Copy copy_of(std::string_view factor) {
  if (factor == "operation") return [](Setting& a, const Setting& b) { a.operation = b.operation; };
  if (factor == "message_bytes") return [](Setting& a, const Setting& b) { a.bytes = b.bytes; };
  if (factor == "mtu_bytes") return [](Setting& a, const Setting& b) { a.mtu = b.mtu; };
  if (factor == "qp_count") return [](Setting& a, const Setting& b) { a.qps = b.qps; };
  if (factor == "send_queue_depth") return [](Setting& a, const Setting& b) { a.depth = b.depth; };
  if (factor == "thread_count") return [](Setting& a, const Setting& b) { a.threads = b.threads; };
  if (factor == "post_batch") return [](Setting& a, const Setting& b) { a.batch = b.batch; };
  if (factor == "doorbell_sharing") {
    return [](Setting& a, const Setting& b) { a.dedicated_doorbells = b.dedicated_doorbells; };
  }
  if (factor == "inline_bytes") {
    return [](Setting& a, const Setting& b) { a.inline_bytes = b.inline_bytes; };
  }
  if (factor == "vxlan_contexts") {
    return [](Setting& a, const Setting& b) { a.vxlan_contexts = b.vxlan_contexts; };
  }
  if (factor == "flow_setup_rate") {
    return [](Setting& a, const Setting& b) { a.flow_setup_rate = b.flow_setup_rate; };
  }
  if (factor == "transport") return [](Setting& a, const Setting& b) { a.reliable = b.reliable; };
  if (factor == "client_encap_masks") return copy_masks<Hop::kClientEncap>;
  if (factor == "server_decap_masks") return copy_masks<Hop::kServerDecap>;
  if (factor == "server_encap_masks") return copy_masks<Hop::kServerEncap>;
  if (factor == "client_decap_masks") return copy_masks<Hop::kClientDecap>;
  return nullptr;
}

bool is_read(const std::string& factor) {
  const auto& names = setting_factors();
  return std::find(names.begin(), names.end(), factor) != names.end();
}

}  // namespace

Result<std::optional<PipelineGrid>> PipelineGrid::prepare(const PipelineState& state,
                                                          const std::vector<GridAxis>& axes) {
  PipelineGrid grid;
  grid.state_ = &state;
  grid.beyond_ = BeyondFactors(state.domain);
  Domain others = state.domain;
  for (const GridAxis& axis : axes) {
    others.numeric.erase(axis.factor);
    others.categories.erase(axis.factor);
    Axis prepared;
    prepared.copy = copy_of(axis.factor);
    if (prepared.copy == nullptr && is_read(axis.factor)) return std::optional<PipelineGrid>();
    if (prepared.copy == nullptr) prepared.copy = [](Setting&, const Setting&) {};
    for (const FactorValue& level : axis.levels) {
      const Configuration alone{{axis.factor, level}};
      for (int o = 0; o < kOutputCount; ++o) {
        auto setting = read_setting(alone, state.assumed[static_cast<std::size_t>(o)]);
        if (!setting) return setting.error().while_doing("predicting a grid");
        prepared.levels[static_cast<std::size_t>(o)].push_back(*setting);
      }
      prepared.distance.push_back(state.domain.distance_along(axis.factor, level));
    }
    grid.axes_.push_back(std::move(prepared));
  }
  for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
    if (!state.fitted[output]) continue;
    auto setting = read_setting({}, state.assumed[output]);
    if (!setting) return pass_on(setting);
    grid.base_[output] = *setting;
    grid.base_distance_ =
        std::max(grid.base_distance_, others.outside({}, state.assumed[output]).distance);
  }
  return std::optional<PipelineGrid>(std::move(grid));
}

Setting PipelineGrid::setting_of(std::size_t cell, int output, double& distance) const {
  Setting setting = base_[static_cast<std::size_t>(output)];
  distance = base_distance_;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const Axis& axis = axes_[a];
    const std::size_t level = cell % axis.distance.size();
    cell /= axis.distance.size();
    axis.copy(setting, axis.levels[static_cast<std::size_t>(output)][level]);
    distance = std::max(distance, axis.distance[level]);
  }
  distance = std::max(distance, beyond_->distance(setting));
  return setting;
}

void PipelineGrid::predict(std::size_t first, std::size_t last, GridPrediction& grid) const {
  pipeline::LawAt law(state_->values);
  for (GridColumn& column : grid.columns) {
    const auto output =
        column.measure == kOutputNames[0] ? pipeline::kLogBandwidth : pipeline::kLogLatency;
    for (std::size_t cell = first; cell < last; ++cell) {
      double distance = 0.0;
      const Setting setting = setting_of(cell, output, distance);
      grid.distance[cell] = std::max(grid.distance[cell], distance);
      if (output == pipeline::kLogBandwidth && setting.bytes <= 0.0) continue;
      const PredictedMeasure measure = predict_measure(*state_, law, output, setting, distance);
      column.value[cell] = measure.value;
      column.low[cell] = measure.low;
      column.high[cell] = measure.high;
    }
  }
}

}  // namespace greynic::model
