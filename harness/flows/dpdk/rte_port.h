#pragma once

/// A port that DPDK drives, from start to close.

#include <cstdint>
#include <memory>
#include <string>

#include "greynic/core/result.h"

namespace greynic::flows {

class RtePort {
 public:
  /// A device as DPDK names it, configured and not yet started: its flow engine can be set up only
  /// before. One a process, for DPDK can be started only once. kMissing with DPDK's own words.
  [[nodiscard]] static Result<std::unique_ptr<RtePort>> open(const std::string& device);
  ~RtePort();
  RtePort(const RtePort&) = delete;
  RtePort& operator=(const RtePort&) = delete;

  [[nodiscard]] Result<void> start();
  [[nodiscard]] std::uint16_t number() const { return number_; }
  /// Of DPDK's driver, "net_tap".
  [[nodiscard]] std::string driver_name() const;

 private:
  explicit RtePort(std::uint16_t number) : number_(number) {}
  std::uint16_t number_;
};

}  // namespace greynic::flows
