#pragma once

/// Programs that greynic runs: short ones whose output is wanted, and daemons that live as long as
/// their owner. Daemons die with greynic (PR_SET_PDEATHSIG), so a crash leaves none behind.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/os/network_namespace.h"

namespace greynic::os {

struct Command {
  std::vector<std::string> words;                  ///< program first; looked up in PATH and sbin
  std::map<std::string, std::string> environment;  ///< added to ours
  std::string input;                               ///< text for its standard input
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// Runs to the end and gives standard output. kMissing when the program is not there, kRefused with
/// the last lines of its standard error when it exits with anything but 0, kIo on timeout.
[[nodiscard]] Result<std::string> run(const Command& command);

/// Full path of a program in PATH or the system's sbin folders; empty when it is not there.
[[nodiscard]] std::string find_program(const std::string& name);

/// A program that runs until it is stopped or this object goes.
class Daemon {
 public:
  Daemon() = default;
  /// Starts the program inside the namespace; what it says goes to `log_path`.
  [[nodiscard]] static Result<Daemon> start(const Command& command, const std::string& log_path,
                                            const NetworkNamespace& place);
  Daemon(Daemon&& other) noexcept;
  Daemon& operator=(Daemon&& other) noexcept;
  ~Daemon();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();
  /// Asks it to end, and kills it after two seconds.
  void stop();

 private:
  explicit Daemon(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

}  // namespace greynic::os
