#pragma once

/// Messages of a traffic matrix in a network of stations, event by event in virtual time. Turns,
/// windows, contexts and threads that hold each other up have no closed form; a few milliseconds of
/// them are quickly played through.
///
/// A message passes: a thread of the asking host, in order; its QP, in order; the port, where QPs
/// with something to send have turns, and where the context of a QP must be on the chip before its
/// turn; the wire; the other host's context, and its port. Contexts of both directions share one
/// store on each chip, and are fetched one after another. A READ's request has a turn at the
/// asking port, its payload at the other one.

#include <cstdint>
#include <optional>
#include <vector>

#include "stations.h"

namespace greynic::sharing {

/// How the connections of a matrix are carried. Without a setting each is a QP.
struct Way {
  std::optional<Setting> shared;
  bool own_doorbells = false;
};

/// Goodput of each demand, Gbit/s. Errors: of the model; kTooBig when too much happens in a nanosecond.
[[nodiscard]] Result<std::vector<double>> play(const model::Model& model, const Matrix& matrix,
                                               const Way& way);

}  // namespace greynic::sharing
