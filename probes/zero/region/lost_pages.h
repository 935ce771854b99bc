#pragma once

/// Keeps a program alive when a file that it has mapped shrinks. The kernel raises SIGBUS at the
/// first touch of a page that is no longer there; the handler here puts a page of zeros in its
/// place and notes it, so the touch succeeds and whoever reads or writes the mapping can tell
/// afterwards. A SIGBUS anywhere else goes to the handler that was there before.

#include <cstddef>
#include <span>

#include "greynic/core/result.h"

namespace greynic::zero {

class PageGuard {
 public:
  /// Guards a mapping until this goes, which must be before it is unmapped. kTooBig when more
  /// mappings are guarded than there is room for.
  [[nodiscard]] static Result<PageGuard> over(std::span<std::byte> mapping);
  PageGuard(PageGuard&& other) noexcept;
  PageGuard& operator=(PageGuard&& other) noexcept;
  ~PageGuard();

  /// A page was not there when it was touched. Once true it stays so.
  [[nodiscard]] bool lost() const;

 private:
  explicit PageGuard(std::size_t place) : place_(place) {}
  std::size_t place_;
};

}  // namespace greynic::zero
