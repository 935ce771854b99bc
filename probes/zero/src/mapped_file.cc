#include "mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace greynic::zero {
namespace {

/// A file descriptor that closes itself; the mapping outlives it.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

tl::unexpected<Error> refused(const std::string& path, const char* what, ErrorCode code) {
  return fail(code, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

MappedFile::MappedFile(std::string path, std::string temporary, std::span<std::byte> bytes)
    : path_(std::move(path)), temporary_(std::move(temporary)), bytes_(bytes) {}

Result<MappedFile> MappedFile::create(const std::string& path, std::uint64_t bytes) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const Descriptor file{::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.fd < 0) return refused(path, "cannot be created", ErrorCode::kIo);
  void* memory = MAP_FAILED;
  if (::ftruncate(file.fd, static_cast<off_t>(bytes)) == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  }
  if (memory == MAP_FAILED) {
    auto error = refused(path, "cannot be mapped", ErrorCode::kIo);
    ::unlink(temporary.c_str());
    return error;
  }
  return MappedFile(path, temporary, {static_cast<std::byte*>(memory), bytes});
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return refused(path, "cannot be opened", ErrorCode::kBadInput);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return refused(path, "cannot be read", ErrorCode::kBadInput);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0) return fail(ErrorCode::kBadInput, path + ": is empty, so it is no region");
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd, 0);
  if (memory == MAP_FAILED) return refused(path, "cannot be mapped", ErrorCode::kBadInput);
  return MappedFile(path, {}, {static_cast<std::byte*>(memory), bytes});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> MappedFile::reveal() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return refused(path_, "cannot be replaced", ErrorCode::kIo);
  }
  temporary_.clear();
  return {};
}

}  // namespace greynic::zero
