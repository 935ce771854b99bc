#include "lease.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <utility>

#include "greynic/series/store.h"

namespace greynic::series {
namespace {

/// The open file still is the one of that name.
bool is_named(int file, const std::string& path) {
  struct stat own {
  }, named{};
  return ::fstat(file, &own) == 0 && ::stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

std::chrono::milliseconds age_of(int file) {
  struct stat status {};
  timespec now{};
  if (::fstat(file, &status) != 0) return std::chrono::milliseconds(0);
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec - status.st_mtim.tv_sec) +
         std::chrono::milliseconds((now.tv_nsec - status.st_mtim.tv_nsec) / 1000000);
}

/// A new, locked file in the place of one whose holder stands still; -1: another was quicker.
int replace(const std::string& path) {
  // A name that nobody can put a link at before us; a writer removes what ends with .new.
  const std::string own = fmt::format("{}.{:08x}.new", path, std::random_device{}());
  const int file = ::open(own.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return -1;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && std::rename(own.c_str(), path.c_str()) == 0) {
    // Two that replace at once: the last name wins, and the other sees it now.
    timespec pause{0, 50000000};
    ::nanosleep(&pause, nullptr);
    if (is_named(file, path)) return file;
  }
  ::unlink(own.c_str());
  ::close(file);
  return -1;
}

}  // namespace

Result<Lease> Lease::take(const std::string& directory, std::chrono::milliseconds length) {
  const std::string path = directory + "/lease";
  for (int attempt = 0; attempt < 8; ++attempt) {
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
      return fail(ErrorCode::kIo,
                  fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const bool stands_still = age_of(file) > length;
      ::close(file);
      file = stands_still ? replace(path) : -1;
      if (file < 0) {
        return fail(ErrorCode::kIo,
                    fmt::format("{}: another collector writes this store; give a directory of its "
                                "own, or --standby to wait for it",
                                directory));
      }
    }
    if (is_named(file, path)) {
      Lease lease(path, file);
      (void)lease.renew();
      return lease;
    }
    ::close(file);  // replaced between open and lock
  }
  return fail(ErrorCode::kIo, path + ": changes hands all the time");
}

Lease::Lease(Lease&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

Lease::~Lease() {
  if (file_ >= 0) ::close(file_);
}

bool Lease::renew() const { return is_named(file_, path_) && ::futimens(file_, nullptr) == 0; }

Result<bool> wait_for_lease(const std::string& directory, std::chrono::milliseconds length,
                            const std::function<bool()>& stop) {
  while (!stop()) {
    const auto lease = Lease::take(directory, length);
    if (lease) return true;
    if (::access(directory.c_str(), W_OK) != 0) return pass_on(lease);
    const timespec pause{0,
                         std::min<long>(250, static_cast<long>(length.count() / 4) + 1) * 1000000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace greynic::series
