#pragma once

/// What a law says of one RNIC, taken apart into the stations that a message passes: a thread, the
/// QP's context, the port, the wire, and the port and the context on the other side. A law of rates
/// knows one kind of traffic between two hosts. Stations are of one host each, so that any traffic
/// between any hosts can be put together from them (network.h).

#include <cstdint>

#include "greynic/sharing/sharing.h"

namespace greynic::sharing {

/// Contexts of QPs on the chip. A law that knows no wall has none: `fetch_ns` is 0.
struct Contexts {
  double entries = 0;
  double fetch_ns = 0;  ///< a sender fetches one in this time, one after another
};
[[nodiscard]] Result<Contexts> contexts_of(const model::Model& model);

/// What one message of a demand takes.
struct Times {
  double wire_ns = 0;    ///< payload and headers
  double header_ns = 0;  ///< of one packet
  double unit_ns = 0;    ///< in the units that hand its packets to the wire, if only one did
  double trip_ns = 0;    ///< there and back on an idle network, beside all that
  std::uint32_t packets = 1;
  std::uint32_t turns = 1;  ///< of a QP at a unit: four packets each

  [[nodiscard]] std::uint32_t packets_of_turn() const { return (packets + turns - 1) / turns; }
};
[[nodiscard]] Result<Times> times_of(const model::Model& model, const Demand& demand);

/// What all messages of a host pass.
struct Rnic {
  Contexts contexts;
  std::uint32_t units = 2;  ///< that hand packets to the wire, each those of its own QPs
  double packet_ns =
      1e9;  ///< a unit takes no longer for one; known where one QP does not fill the line
  double request_fetch_ns = 0;  ///< until it knows of a request that did not come with its doorbell
};
[[nodiscard]] Result<Rnic> rnic_of(const model::Model& model);

/// What a thread takes to post and to poll one message, while `threads` of a host serve `qps`.
[[nodiscard]] Result<double> posting_ns(const model::Model& model, Operation operation, double qps,
                                        double threads, bool own_doorbells);

/// The law's prediction for a demand whose connections are QPs.
[[nodiscard]] Result<model::Prediction> ask(const model::Model& model, const Demand& demand,
                                            double qps, double depth, double threads,
                                            bool own_doorbells);

}  // namespace greynic::sharing
