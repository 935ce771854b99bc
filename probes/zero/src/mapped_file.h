#pragma once

/// A file mapped into memory, unmapped when it goes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "greynic/core/result.h"

namespace greynic::zero {

class MappedFile {
 public:
  /// A new file of `bytes` zeros that replaces `path` when reveal() is called.
  [[nodiscard]] static Result<MappedFile> create(const std::string& path, std::uint64_t bytes);
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Gives a created file its final name, so that readers see only finished regions.
  [[nodiscard]] Result<void> reveal();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, std::string temporary, std::span<std::byte> bytes);
  std::string path_;
  std::string temporary_;  // empty once revealed, and for opened files
  std::span<std::byte> bytes_;
};

}  // namespace greynic::zero
