#pragma once

/// Who may write a store: whoever holds the lock on the file `lease` in its directory. The kernel
/// gives the lock back when its holder ends, however it ends. A holder that lives but stands still
/// does not renew the file's time; another may then put a file of its own in its place.

#include <chrono>
#include <string>

#include "greynic/core/result.h"

namespace greynic::series {

class Lease {
 public:
  /// kIo when another has it, and has renewed it within `length`.
  [[nodiscard]] static Result<Lease> take(const std::string& directory,
                                          std::chrono::milliseconds length);
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();
  /// False: another has taken it over.
  [[nodiscard]] bool renew() const;

 private:
  Lease(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_;
};

}  // namespace greynic::series
