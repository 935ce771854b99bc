#pragma once

/// Statistics that the driver of a network interface counts: what `ethtool -S` prints.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace greynic::os {

class EthtoolStats {
 public:
  /// Without names when the interface is not there or its driver has none.
  explicit EthtoolStats(const std::string& interface);
  EthtoolStats(EthtoolStats&&) noexcept;
  EthtoolStats& operator=(EthtoolStats&&) noexcept;
  ~EthtoolStats();

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// In the order of the names; empty when the driver says other ones now, or no more.
  [[nodiscard]] std::span<const std::uint64_t> read();

 private:
  [[nodiscard]] bool ask(void* request);
  std::string interface_;
  int socket_ = -1;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> answer_;  ///< a head of one word, then the values
};

}  // namespace greynic::os
