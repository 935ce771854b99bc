#pragma once

/// A command run by /bin/sh in its own process group, with pipes to its input and from its output.
/// All that it starts ends with it, in whatever group or session that is, also when greynic is
/// killed by SIGKILL.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::os {

class PipedCommand {
 public:
  [[nodiscard]] static Result<PipedCommand> start(const std::string& command);
  PipedCommand(PipedCommand&& other) noexcept;
  PipedCommand& operator=(PipedCommand&& other) noexcept;
  /// Closes its input, gives it a moment to end by itself, then ends all that it started.
  ~PipedCommand();

  /// Both do not block; -1 once closed.
  [[nodiscard]] int input() const { return input_; }
  [[nodiscard]] int output() const { return output_; }

  /// Bytes taken by the pipe; empty when the command no longer reads.
  std::optional<std::size_t> write(std::string_view bytes);
  /// Appends what is there to `buffer`; false when the command has closed its output.
  bool read_into(std::string& buffer);
  void close_input();

  /// Ends it if need be, with all that it left behind, and says how it ended: "exited with status
  /// 3", "was ended by signal 9". The exit status, 128 + signal when a signal ended it, goes to
  /// `status`.
  std::string stop(int& status);

 private:
  PipedCommand() = default;

  pid_t keeper_ = -1;  ///< the process between us and the command, which ends all that it started
  int life_ = -1;      ///< closed: the keeper ends them
  int verdict_ = -1;   ///< how the command ended comes here
  int input_ = -1;
  int output_ = -1;
};

}  // namespace greynic::os
