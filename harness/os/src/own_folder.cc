#include "greynic/os/own_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace greynic::os {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRoot = "/tmp";
constexpr const char* kOwner = "/owner";

/// The lock of a folder's owner file; negative when it is somebody else's, or there is no file.
int try_lock(const std::string& folder, int flags) {
  const int file = open((folder + kOwner).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  close(file);
  return -1;
}

void remove_abandoned(const std::string& prefix) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    // Without an owner file it may be one that is being made just now.
    const int lock = try_lock(entry.path().string(), 0);
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
    close(lock);
  }
}

}  // namespace

Result<OwnFolder> OwnFolder::create(const std::string& prefix) {
  remove_abandoned(prefix);
  std::string path = fmt::format("{}/{}XXXXXX", kRoot, prefix);
  if (mkdtemp(path.data()) == nullptr) {
    return fail(ErrorCode::kIo, fmt::format("cannot make a folder in {}", kRoot));
  }
  const int lock = try_lock(path, O_CREAT);
  if (lock < 0) return fail(ErrorCode::kIo, fmt::format("cannot write in {}", path));
  return OwnFolder(std::move(path), lock);
}

OwnFolder::OwnFolder(OwnFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

OwnFolder& OwnFolder::operator=(OwnFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

OwnFolder::~OwnFolder() {
  if (lock_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace greynic::os
