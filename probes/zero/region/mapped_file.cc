#include "region/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace greynic::zero {
namespace {

/// A file descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

tl::unexpected<Error> refused(const std::string& path, std::string_view what, int error,
                              ErrorCode code = ErrorCode::kIo) {
  return fail(code, fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

}  // namespace

Result<MappedFile> MappedFile::map(const std::string& path, int file, std::size_t bytes,
                                   int protection) {
  void* const memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return refused(path, "cannot be mapped", errno);
  MappedFile mapped;
  mapped.path_ = path;
  mapped.bytes_ = {static_cast<std::byte*>(memory), bytes};
  mapped.file_ = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  auto guard = PageGuard::over(mapped.bytes_);
  if (!guard) return guard.error().while_doing(path);
  mapped.guard_ = std::move(*guard);
  return mapped;
}

bool MappedFile::lost() const {
  // Within a page the kernel raises nothing: what was cut off reads as zeros.
  struct stat status {};
  return guard_->lost() || ::fstat(file_, &status) != 0 ||
         static_cast<std::size_t>(status.st_size) < bytes_.size();
}

Result<MappedFile> MappedFile::create(const std::string& path, std::uint64_t bytes) {
  // A name that nobody can guess, never opened through a link.
  std::string temporary = path + ".XXXXXX";
  const Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) return refused(path, "cannot be created", errno);
  int error = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes));
  if (error == 0 && ::fchmod(file.fd, 0644) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return refused(path, fmt::format("{} bytes cannot be reserved", bytes), error);
  }
  auto mapped = map(path, file.fd, bytes, PROT_READ | PROT_WRITE);
  if (mapped) {
    mapped->temporary_ = std::move(temporary);
  } else {
    ::unlink(temporary.c_str());
  }
  return mapped;
}

Result<MappedFile> MappedFile::unnamed(std::uint64_t bytes) {
  const Descriptor file{::memfd_create("greynic.region", MFD_CLOEXEC)};
  if (file.fd < 0 || ::ftruncate(file.fd, static_cast<off_t>(bytes)) != 0) {
    return refused("a region of metrics", "cannot be created", errno);
  }
  return map("a region of metrics", file.fd, bytes, PROT_READ | PROT_WRITE);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // A pipe would wait here for its writer; only files can be mapped.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return refused(path, "cannot be opened", errno, ErrorCode::kBadInput);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) {
    return refused(path, "cannot be read", errno, ErrorCode::kBadInput);
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kBadInput, path + ": is not a file, so it is no region");
  }
  if (bytes == 0) return fail(ErrorCode::kBadInput, path + ": is empty, so it is no region");
  return map(path, file.fd, bytes, PROT_READ);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> MappedFile::reveal() {
  if (temporary_.empty()) return {};
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return refused(path_, "cannot be replaced", errno);
  }
  temporary_.clear();
  return {};
}

}  // namespace greynic::zero
