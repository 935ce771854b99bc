#include "greynic/os/network_namespace.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace greynic::os {

Result<NetworkNamespace> NetworkNamespace::create() {
  // A helper thread enters the new namespace and leaves its descriptor; this thread stays outside.
  int descriptor = -1;
  int error = 0;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      error = errno;
      return;
    }
    descriptor = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) error = errno;
  }).join();
  if (descriptor < 0) {
    return fail(ErrorCode::kMissing,
                fmt::format("cannot make a network namespace ({}); run as root "
                            "or with CAP_SYS_ADMIN",
                            std::strerror(error)));
  }
  return NetworkNamespace(descriptor);
}

Result<NetworkNamespace> NetworkNamespace::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) return NetworkNamespace(descriptor);
  return fail(ErrorCode::kMissing, fmt::format("cannot open the network namespace {}: {}", path,
                                               std::strerror(errno)));
}

Result<void> NetworkNamespace::inside(const std::function<void()>& work) const {
  int error = 0;
  std::thread([&] {
    if (setns(descriptor_, CLONE_NEWNET) != 0) {
      error = errno;
    } else {
      work();
    }
  }).join();
  if (error == 0) return {};
  return fail(ErrorCode::kMissing,
              fmt::format("cannot enter a network namespace: {}", std::strerror(error)));
}

NetworkNamespace::NetworkNamespace(NetworkNamespace&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

NetworkNamespace& NetworkNamespace::operator=(NetworkNamespace&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

NetworkNamespace::~NetworkNamespace() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace greynic::os
