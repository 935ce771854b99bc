#include "greynic/files/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

namespace greynic::files {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0666;  ///< what the umask leaves of it
constexpr int kMostLinks = 40;  ///< as the kernel follows

/// The one of our own descriptors that a path such as /dev/stdout or /proc/self/fd/3 names.
std::optional<int> descriptor_named(fs::path path) {
  std::error_code error;
  const fs::path ours = fs::canonical("/proc/self/fd", error);
  if (error) return std::nullopt;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (error) return std::nullopt;
    if (folder == ours) {
      const std::string name = path.filename().string();
      int number = -1;
      const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
      const bool whole = wrong == std::errc() && end == name.data() + name.size();
      return whole ? std::optional(number) : std::nullopt;
    }
    const fs::path next = fs::read_symlink(path, error);
    if (error) return std::nullopt;
    path = folder / next;  // an absolute path replaces the folder
  }
  return std::nullopt;
}

/// The path under /proc at which an open file can be linked and looked up.
std::string open_file(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// Nobody can guess it, so nobody can wait for it with a link.
Result<std::string> random_name(const fs::path& folder) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return fail(ErrorCode::kIo, "the system gives no random numbers");
  }
  return (folder / fmt::format(".greynic-{:016x}.tmp", number)).string();
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

tl::unexpected<Error> OutputFile::refused(std::string_view what) const {
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}: there is no such folder; make it, or name another file",
                              name_, what));
    case EISDIR:
      return fail(ErrorCode::kBadInput, name_ + ": is a folder; name a file in it");
    case ELOOP:
    case ENAMETOOLONG:
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}: {}; name another file", name_, what, std::strerror(errno)));
    default:
      return fail(ErrorCode::kIo, fmt::format("{}: {}: {}", name_, what, std::strerror(errno)));
  }
}

Result<OutputFile> OutputFile::open(const fs::path& path) {
  OutputFile file;
  file.name_ = path.string();
  if (const auto ours = descriptor_named(path)) {
    std::fflush(stdout);  // what was printed before comes before
    file.descriptor_ = ::fcntl(*ours, F_DUPFD_CLOEXEC, 3);
    if (file.descriptor_ < 0) return file.refused("cannot be written");
    return file;
  }
  struct stat status {};
  int existing = -1;
  if (::lstat(path.c_str(), &status) == 0) {
    // Opening it asks the kernel whether this user may write it, and whether its link is to be
    // trusted. A link that leads nowhere yet makes the file that it names.
    const int create = S_ISLNK(status.st_mode) ? O_CREAT : 0;
    existing = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | create, kMode);
    if (existing < 0) return file.refused("cannot be written");
    if (::fstat(existing, &status) != 0 || !S_ISREG(status.st_mode)) {
      file.descriptor_ = existing;
      return file;
    }
    std::error_code error;
    file.target_ = fs::read_symlink(open_file(existing), error).string();
  } else if (errno == ENOENT) {
    file.target_ = file.name_;
  }
  auto made =
      file.target_.empty() ? Result<void>(file.refused("cannot be written")) : file.make(existing);
  if (existing >= 0) ::close(existing);
  if (!made) return pass_on(made);
  return file;
}

Result<void> OutputFile::make(int existing) {
  const fs::path folder =
      fs::path(target_).has_parent_path() ? fs::path(target_).parent_path() : fs::path(".");
  descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode);
  if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    auto name = random_name(folder);
    if (!name) return pass_on(name);
    descriptor_ = ::open(name->c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode);
    if (descriptor_ >= 0) temporary_ = std::move(*name);
  }
  if (descriptor_ < 0) return refused("cannot be created");
  struct stat status {};
  if (existing >= 0 && ::fstat(existing, &status) == 0) {
    // Who owns it and who may read it stays, as far as that is ours to say.
    (void)!::fchown(descriptor_, status.st_uid, status.st_gid);
    (void)!::fchmod(descriptor_, status.st_mode & 07777);
  }
  return {};
}

Result<void> OutputFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return refused("cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> OutputFile::finish() {
  if (!written_through()) {
    if (::fsync(descriptor_) != 0) return refused("cannot be written");
    if (temporary_.empty()) {
      auto name = random_name(fs::path(target_).parent_path());
      if (!name) return pass_on(name);
      if (::linkat(AT_FDCWD, open_file(descriptor_).c_str(), AT_FDCWD, name->c_str(),
                   AT_SYMLINK_FOLLOW) != 0) {
        return refused("cannot be named");
      }
      temporary_ = std::move(*name);
    }
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return refused("cannot be replaced");
    temporary_.clear();
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) return refused("cannot be written");
  return {};
}

Result<void> write_text(const fs::path& path, std::string_view text) {
  auto file = OutputFile::open(path);
  if (!file) return pass_on(file);
  if (auto written = file->write(text); !written) return written;
  return file->finish();
}

Result<void> not_an_input(const std::string& output, std::span<const std::string> inputs) {
  struct stat written {};
  if (::stat(output.c_str(), &written) != 0 || !S_ISREG(written.st_mode)) return {};
  for (const std::string& input : inputs) {
    struct stat read {};
    if (::stat(input.c_str(), &read) != 0 || read.st_dev != written.st_dev ||
        read.st_ino != written.st_ino) {
      continue;
    }
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: is what this command reads ({}); name another file to write",
                            output, input));
  }
  return {};
}

}  // namespace greynic::files
