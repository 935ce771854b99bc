#pragma once

/// What the laws read off a configuration, as plain numbers.

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "greynic/core/configuration.h"
#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"

namespace greynic::model {

struct Setting {
  Operation operation = Operation::kSend;
  double bytes = 64;  ///< payload of one message
  double mtu = 1024;  ///< payload of one packet
  double qps = 1;
  double depth = 128;  ///< outstanding messages of one QP
  double threads = 1;
  double batch = 1;                  ///< work requests handed over by one doorbell
  bool dedicated_doorbells = false;  ///< one register for each thread instead of the driver's 16
  double inline_bytes = 0;           ///< messages up to this size ride inside the work request
  std::array<double, 4> masks{};     ///< indexed by Hop
  double mr_pages = 1;               ///< 4 KiB pages of all regions together
  double vxlan_contexts = 1;
  double flow_setup_rate = 0;  ///< new flows a second
  bool reliable = true;        ///< RC: answers every message

  /// Requests when all send queues are full.
  [[nodiscard]] double in_flight() const { return qps * depth; }
  /// Packets of one message; an empty message still takes one.
  [[nodiscard]] double packets() const;
  /// Bytes of wire time that one message takes: payload, padding, headers of all layers, gaps.
  [[nodiscard]] double wire_bytes() const;
};

/// Factors that Setting reads.
[[nodiscard]] const std::vector<std::string>& setting_factors();

/// Factors not set in `configuration` come from `assumed`, then from the factor table. kBadInput
/// for values no law can take.
[[nodiscard]] Result<Setting> read_setting(const Configuration& configuration,
                                           const Configuration& assumed);

}  // namespace greynic::model
