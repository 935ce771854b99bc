#pragma once

/// Network namespaces: interfaces, switches and rules of greynic's own that nobody else sees.

#include <functional>
#include <string>

#include "greynic/core/result.h"

namespace greynic::os {

/// A network namespace without a process in it: what is opened there is seen by nobody else.
class NetworkNamespace {
 public:
  /// kMissing when neither root nor user namespaces allow it.
  [[nodiscard]] static Result<NetworkNamespace> create();
  /// One that is there: "/run/netns/lab", "/proc/17/ns/net". kMissing when there is none.
  [[nodiscard]] static Result<NetworkNamespace> open(const std::string& path);
  NetworkNamespace(NetworkNamespace&& other) noexcept;
  NetworkNamespace& operator=(NetworkNamespace&& other) noexcept;
  ~NetworkNamespace();
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Runs `work` on a thread inside; sockets that it opens stay there for good.
  [[nodiscard]] Result<void> inside(const std::function<void()>& work) const;

 private:
  explicit NetworkNamespace(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace greynic::os
