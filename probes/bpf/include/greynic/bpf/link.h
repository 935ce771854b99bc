#pragma once

/// A program that is attached to a hook. The kernel holds the attachment for as long as the
/// descriptor is open: it ends with this object, and with the process however that ends.

#include <cstdint>
#include <functional>
#include <memory>

namespace greynic::bpf {

class Link {
 public:
  Link() = default;
  /// Owns a descriptor.
  explicit Link(int descriptor);
  /// Owns something that `release` gives back.
  Link(int descriptor, std::function<void()> release);
  Link(Link&& other) noexcept;
  Link& operator=(Link&& other) noexcept;
  ~Link();
  /// -1 when the kernel has no link object for this kind of attachment.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::function<void()> release_;
};

/// While one lives, the kernel counts runs and run time of all programs (some 25 ns a run).
/// An invalid one (no right to it) makes every run time 0.
[[nodiscard]] Link count_run_time();

/// What the kernel counts about a program.
struct RunStatistics {
  std::uint64_t runs = 0;         ///< while count_run_time() lives
  std::uint64_t run_time_ns = 0;  ///< the same
  /// Events that the program did not see, since it was running on that CPU already. Always counted.
  std::uint64_t missed = 0;
};

}  // namespace greynic::bpf
