#pragma once

/// The connections of a matrix as programs on the twin's fabric: with a QP each, and over brokers.

#include <cstdint>

#include "greynic/sharing/sharing.h"
#include "greynic/twin/fabric.h"

namespace greynic::sharing {

/// Goodput of all connections, Gbit/s, once they run steadily.
[[nodiscard]] double own_qps_gbps(const Matrix& matrix, const std::string& rnic,
                                  bool own_doorbells);
/// The same over brokers with this setting.
[[nodiscard]] double shared_gbps(const Matrix& matrix, const std::string& rnic,
                                 const Setting& setting);

}  // namespace greynic::sharing
