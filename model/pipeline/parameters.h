#pragma once

/// The parameters of the pipeline law: one table of names, units, bounds and priors. All are
/// positive and fitted as logarithms, except the per-operation deviations, which are logarithms
/// themselves.

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace greynic::model::pipeline {

enum Parameter : int {
  kLineGbps,          ///< rate of the wire, headers and gaps included
  kPcieGbps,          ///< rate at which payload crosses the host bus
  kPostNs,            ///< time one thread takes to post and poll one message
  kDoorbellNs,        ///< time a doorbell register that threads share takes for one post
  kDoorbellWaitNs,    ///< added by each thread that shares it
  kMessageNs,         ///< time the whole NIC takes for one message
  kSendGapNs,         ///< port time that the receive work request of a SEND takes
  kQpPacketNs,        ///< time one packet takes in the unit that serves its QP
  kQpMaskNs,          ///< added to it by each mask of an encapsulation
  kEncapPackets,      ///< packets that the encapsulation stage walks at once
  kDecapPackets,      ///< packets that the decapsulation stage walks at once
  kQpWindow,          ///< packets of one QP between both stages at once
  kStageBaseUs,       ///< time of a packet in a stage without masks
  kEncapNs,           ///< time one mask of an encapsulation adds to a packet
  kDecapNs,           ///< the same for a decapsulation
  kEncapOfOperation,  ///< log deviation of kEncapNs for SEND, WRITE, READ, ATOMIC
  kDecapOfOperation = kEncapOfOperation + 4,
  kBaseUs = kDecapOfOperation + 4,  ///< latency of an empty message, per operation
  kInlineBytes = kBaseUs + 4,       ///< payload up to this size rides inside the request by default
  kFetchUs,                         ///< added where the payload does not ride inside the request
  kByteNs,                          ///< latency of each byte of the first burst
  kBurstGapUs,                      ///< wait of the second burst for the first, without masks
  kBurstWalk,                       ///< share of the walk of the first burst that it waits, too
  kLoopPackets,  ///< packets of the NIC that may be between sending and word of arrival
  kLoopBaseUs,   ///< time of that loop without masks
  kSharpness,    ///< how abruptly one bottleneck takes over from another
  kQueueBaseUs,  ///< a work request holds its slot so long, without masks
  kQpContexts,   ///< connections whose context stays on the chip
  kQpMissNs,     ///< time that fetching one context takes from the unit that fetches
  kQpStall,      ///< share of its pace that the port loses while contexts are missing
  kQpWaitUs,     ///< latency that a missing context adds
  kPageEntries,  ///< page translations that stay on the chip
  kPageMissNs,
  kPageWaitUs,  ///< latency that a missing translation adds
  kWqeEntries,  ///< outstanding work requests that stay on the chip
  kWqeMissNs,
  kVxlanContexts,  ///< VXLAN contexts that stay on the chip
  kVxlanMissNs,
  kFlowSetupNs,  ///< time the NIC is kept from packets by setting up one flow
  kParameterCount,
};

/// Gaussian knowledge of a fitted (log) value before any data: value - value[relative_to] is `mean`
/// give or take `deviation`.
struct Prior {
  double mean = 0.0;
  double deviation = 1.0;
  std::optional<Parameter> relative_to;
};

struct ParameterInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  bool logarithmic;  ///< shown as exp of the fitted value
  double lower;      ///< of the shown value
  double upper;
  Prior prior;
};

using Values = std::array<double, kParameterCount>;

/// The table, priors from the six published rows where they say something (population.h).
[[nodiscard]] const std::array<ParameterInfo, kParameterCount>& parameters();
[[nodiscard]] std::optional<Parameter> parameter_named(std::string_view name);

/// A loop of so many packets bounds nothing: fits leave the closed loop out where the points do not
/// ask for it.
inline constexpr double kOpenLoopPackets = 1e6;

/// Fitted scale to shown scale and back.
[[nodiscard]] double shown(Parameter parameter, double fitted);
[[nodiscard]] double fitted(Parameter parameter, double shown);

/// Prior means, all of them.
[[nodiscard]] Values typical();

}  // namespace greynic::model::pipeline
