#pragma once

/// A file mapped into memory, unmapped when it goes. Its bytes may be touched whatever becomes of
/// the file: lost() tells when it has shrunk, and then they are worth nothing.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "greynic/core/result.h"
#include "region/lost_pages.h"

namespace greynic::zero {

class MappedFile {
 public:
  /// A new file of `bytes` zeros that replaces `path` when reveal() is called. Its room on the disk
  /// is reserved: writing to it never finds the disk full.
  [[nodiscard]] static Result<MappedFile> create(const std::string& path, std::uint64_t bytes);
  /// Memory that no other process finds.
  [[nodiscard]] static Result<MappedFile> unnamed(std::uint64_t bytes);
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Gives a created file its final name, so that readers see only finished regions.
  [[nodiscard]] Result<void> reveal();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// The file is shorter than what is mapped of it, or was when a byte was touched.
  [[nodiscard]] bool lost() const;

 private:
  MappedFile() = default;
  [[nodiscard]] static Result<MappedFile> map(const std::string& path, int file, std::size_t bytes,
                                              int protection);
  int file_ = -1;
  std::string path_;
  std::string temporary_;  // empty once revealed, and for opened files
  std::span<std::byte> bytes_;
  std::optional<PageGuard> guard_;
};

}  // namespace greynic::zero
