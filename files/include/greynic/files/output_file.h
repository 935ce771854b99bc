#pragma once

/// The one door for files that greynic writes. A regular file is written under no name at all, or
/// a random one, in the folder of its target, and takes its name when it is whole: readers see the
/// old file or the new one, and a process that is killed leaves the old one. What is no regular
/// file (a device, a pipe, one of our own descriptors such as /dev/stdout) is written through, as a
/// shell would. Through a symlink the file that it names is replaced, and the link stays.
///
/// Not promised: other hard links of a replaced file keep what it was.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::files {

class OutputFile {
 public:
  /// kBadInput when there can be no such file (no folder, a folder, links in a circle), kIo when
  /// the system refuses.
  [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  ///< without finish(): what was there stays, unless it is written through

  /// Appends.
  [[nodiscard]] Result<void> write(std::string_view text);
  /// Syncs, and gives the file its name.
  [[nodiscard]] Result<void> finish();

  /// Readable and writable; stays with this object.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// What is written can be seen at once and cannot be taken back.
  [[nodiscard]] bool written_through() const { return target_.empty(); }

 private:
  OutputFile() = default;
  Result<void> make(int existing);
  [[nodiscard]] tl::unexpected<Error> refused(std::string_view what) const;

  std::string name_;       ///< as given, for messages
  std::string target_;     ///< what it is called in the end; empty when written through
  std::string temporary_;  ///< what it is called until then; empty when it has no name yet
  int descriptor_ = -1;
};

/// Replaces a file by this text, or writes the text through.
[[nodiscard]] Result<void> write_text(const std::filesystem::path& path, std::string_view text);

/// kBadInput when `output` is one of the files that are read.
[[nodiscard]] Result<void> not_an_input(const std::string& output,
                                        std::span<const std::string> inputs);

}  // namespace greynic::files
