#pragma once

/// A campaign that is read and compiled once and then asked many times for whole configurations.
///
/// A test names the few settings that it is about; complete() fills in the rest from the baseline:
///
///     campaign   transport in {RC, UD}, message_bytes in {64, 4096}; a datagram has at most an MTU
///     baseline   transport=RC, message_bytes=65536
///     asked      qp_count=64        answer   qp_count=64, transport=RC, message_bytes=65536
///     asked      transport=UD       answer   transport=UD, message_bytes=4096
///
/// The first answer keeps 65536, though it is no level of the campaign: the baseline stays what it
/// is. In the second the baseline's size is not allowed, so the nearest allowed level takes its
/// place. An answer depends on the campaign, the baseline and the question alone, not on earlier
/// questions.
///
/// Files are read by create() only. A value that is asked for the first time and is no level makes
/// the clauses anew, from what was read; every other question goes to the same solver.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/result.h"

namespace greynic::testgen {

struct Topology;

class CompiledCampaign {
 public:
  /// Errors: kBadInput names the file and the place in it; kTooBig names the constraint.
  [[nodiscard]] static Result<CompiledCampaign> create(const Campaign& campaign);
  /// The same for a topology that was read already; null: the campaign has none.
  [[nodiscard]] static Result<CompiledCampaign> create(const Campaign& campaign,
                                                       std::shared_ptr<const Topology> topology);
  CompiledCampaign(CompiledCampaign&&) noexcept;
  CompiledCampaign& operator=(CompiledCampaign&&) noexcept;
  ~CompiledCampaign();

  /// The configuration that sets what `part` sets, leaves the rest as near to the baseline as the
  /// constraints allow, and breaks no rule; `what` names it in messages. Values need not be levels
  /// of the campaign. Factors whose condition does not hold are left out. kInfeasible names the
  /// rules.
  [[nodiscard]] Result<Configuration> complete(const Configuration& part, const std::string& what);

  /// Whether a configuration that sets every factor breaks no rule. One question to the solver and
  /// no words about why: for callers that ask thousands of times.
  [[nodiscard]] bool allows(const Configuration& whole);

  /// Completes the campaign's baseline, stays near to that from now on, and gives it back.
  [[nodiscard]] Result<Configuration> complete_baseline();

 private:
  struct Compiled;

  CompiledCampaign(const Campaign& campaign, std::shared_ptr<const Topology> topology);
  [[nodiscard]] Result<void> compile_for(const Configuration& part);
  [[nodiscard]] std::vector<int> by_preference(std::uint32_t parameter) const;

  Campaign campaign_;  ///< the baseline's values are among its levels
  std::shared_ptr<const Topology> topology_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace greynic::testgen
