#pragma once

/// An agent on the device in memory in a process of its own, as `greynic agent` runs it, so that it
/// can be asked to end. On request it measures itself as any caller would.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace greynic::agent {

class ChildAgent {
 public:
  explicit ChildAgent(const std::string& certificates = "");
  ~ChildAgent();
  ChildAgent(const ChildAgent&) = delete;
  ChildAgent& operator=(const ChildAgent&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether an honest caller is measured; the reason goes to `reason` when not.
  bool measures(std::string& reason) { return measures_at("", reason); }
  /// With the agent at another address, if one is given.
  bool measures_at(const std::string& address, std::string& reason);
  /// The most memory that it ever had, by the kernel's record.
  [[nodiscard]] std::size_t peak_bytes() const;
  /// Sends SIGTERM: how long the end took, and the wait status.
  std::chrono::milliseconds end(int& status);

 private:
  pid_t pid_ = -1;
  int asks_ = -1;
  FILE* answers_ = nullptr;
  std::string address_;
};

/// What the child runs: for main() of the suite when its first argument is --serve.
int serve_as_child(const std::string& certificates);

}  // namespace greynic::agent
