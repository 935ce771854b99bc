#pragma once

/// A folder in /tmp that is gone when its owner is: at the latest when greynic starts the next
/// time, because a process that was killed removes nothing.

#include <string>

#include "greynic/core/result.h"

namespace greynic::os {

class OwnFolder {
 public:
  /// "/tmp/<prefix>XXXXXX", after folders of this prefix whose owners have died were removed.
  /// Short, because socket paths end after 107 bytes.
  [[nodiscard]] static Result<OwnFolder> create(const std::string& prefix);
  OwnFolder(OwnFolder&& other) noexcept;
  OwnFolder& operator=(OwnFolder&& other) noexcept;
  ~OwnFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  OwnFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_ = -1;  ///< of the file "owner" inside, which the kernel lets go when we die
};

}  // namespace greynic::os
