#pragma once

/// PCI Express, as far as a NIC feels it: effective bandwidth by TLP accounting, the time a
/// transfer takes, and reads that are bounded in number. Source of the closed form: the pcie-bench
/// model (SIGCOMM 2018), docs/twin/validation.md item 14.

#include <cmath>

namespace greynic::twin {

struct PcieLink {
  int generation = 4;
  int lanes = 16;
  int max_payload_bytes = 256;
  int max_read_request_bytes = 512;

  /// Raw rate after 128b/130b coding, Gbit/s.
  [[nodiscard]] double raw_gbps() const {
    const double gigatransfers = 8.0 * (1 << (generation - 3));
    return gigatransfers * 128.0 / 130.0 * lanes;
  }
  /// Rate left for transaction-layer packets: acknowledgements and credit updates of 8 bytes travel
  /// once in so many bytes, and SKIP ordered sets take 4 bytes of 1538.
  [[nodiscard]] double tlp_gbps() const {
    const double bytes_between_acks = lanes > 8 ? 168.0 : 203.0;
    return raw_gbps() * (1.0 - 16.0 / bytes_between_acks - 4.0 / 1538.0);
  }
  /// Bytes on the link for a DMA write (device to memory) of `payload` bytes.
  [[nodiscard]] double write_link_bytes(double payload) const {
    return payload + 24.0 * std::ceil(payload / max_payload_bytes);
  }
  /// Bytes on the link towards the device for the completions of a DMA read of `payload` bytes.
  [[nodiscard]] double read_link_bytes(double payload) const {
    return payload + 20.0 * std::ceil(payload / max_payload_bytes);
  }
  /// Goodput of back-to-back transfers of `payload` bytes, Gbit/s.
  [[nodiscard]] double write_gbps(double payload) const {
    return tlp_gbps() * payload / write_link_bytes(payload);
  }
  [[nodiscard]] double read_gbps(double payload) const {
    return tlp_gbps() * payload / read_link_bytes(payload);
  }
  /// Requests for a DMA read of `payload` bytes; each takes 24 bytes of the other direction.
  [[nodiscard]] double read_requests(double payload) const {
    return std::ceil(payload / max_read_request_bytes);
  }
  [[nodiscard]] double request_ns(double payload) const {
    return 24.0 * read_requests(payload) * 8.0 / tlp_gbps();
  }
  [[nodiscard]] double write_ns(double payload) const {
    return payload > 0 ? write_link_bytes(payload) * 8.0 / tlp_gbps() : 0.0;
  }
  [[nodiscard]] double read_ns(double payload) const {
    return payload > 0 ? read_link_bytes(payload) * 8.0 / tlp_gbps() : 0.0;
  }
};

}  // namespace greynic::twin
