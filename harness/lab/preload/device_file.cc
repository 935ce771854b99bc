// Programs that look for the file of a device, and do not open it (UCX), find one.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace {

/// It need only exist, and be readable and writable.
const char* device_file(const char* path) {
  static constexpr const char* kFile = "/dev/infiniband/uverbs0";
  return path && std::strcmp(path, kFile) == 0 ? "/dev/null" : path;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int stat(const char* path, struct stat* found) {
  return fstatat(AT_FDCWD, device_file(path), found, 0);
}

__attribute__((visibility("default"))) int access(const char* path, int mode) {
  return faccessat(AT_FDCWD, device_file(path), mode, 0);
}

}  // extern "C"
