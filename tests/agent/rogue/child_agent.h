#pragma once

/// An agent on the device in memory in a process of its own, as `greynic agent` runs it. On request it
/// measures itself as any caller would.

#include <string>

#include "child_process.h"

namespace greynic::agent {

class ChildAgent : public ChildProcess {
 public:
  explicit ChildAgent(const std::string& certificates = "")
      : ChildProcess("/proc/self/exe", {"agent", "--serve", certificates}) {}

  /// Whether an honest caller is measured; the reason goes to `reason` when not.
  bool measures(std::string& reason) { return measures_at("", reason); }
  /// With the agent at another address, if one is given.
  bool measures_at(const std::string& address, std::string& reason) {
    reason = answer_to(address);
    return reason.starts_with("measured");
  }
};

/// What the child runs: for main() of the suite when its first argument is --serve.
int serve_as_child(const std::string& certificates);

}  // namespace greynic::agent
