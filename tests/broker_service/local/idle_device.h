#pragma once

/// A device that takes memory and receives, and posts nothing.

#include <span>

#include "greynic/broker/device.h"

namespace greynic::broker {

class IdleDevice : public Device {
 public:
  bool has_immediate() const override { return true; }
  std::uint32_t mtu_bytes() const override { return 4096; }
  Result<Memory> register_memory(std::span<std::byte> memory, Access) override {
    return Memory{reinterpret_cast<std::uint64_t>(memory.data()), 1, 1};
  }
  void deregister(const Memory&) override {}
  Result<QpNumber> create_qp(Transport, std::uint32_t, std::uint32_t) override { return ++last_; }
  QpAddress address_of(QpNumber) const override { return {}; }
  Result<void> connect(QpNumber, const QpAddress&) override { return {}; }
  void to_error(QpNumber) override {}
  void destroy(QpNumber) override {}
  std::size_t post(QpNumber, std::span<const Work>) override { return 0; }
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece>,
                            QpNumber) override {
    return ids.size();
  }

 private:
  QpNumber last_ = 0;
};

}  // namespace greynic::broker
