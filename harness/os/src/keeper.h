#pragma once

/// A process between greynic and a shell command, which ends all that the command started: also
/// what has left the command's group or session, and also when greynic dies by SIGKILL.
///
/// The keeper adopts what loses its parent (PR_SET_CHILD_SUBREAPER), so nothing escapes by starting
/// a child and ending. It learns of greynic's end by a pipe, not by PR_SET_PDEATHSIG, which follows
/// the thread that forked. The shell dies with its keeper.

#include <sys/types.h>

#include <string>

#include "greynic/core/result.h"

namespace greynic::os {

struct Keeper {
  pid_t pid = -1;
  int life = -1;     ///< when its last copy is closed, the keeper ends all and exits
  int verdict = -1;  ///< the shell's wait status (an int) comes here when the shell ends
};

/// Starts `/bin/sh -c command` with these descriptors as its standard input and output.
[[nodiscard]] Result<Keeper> start_kept(const std::string& command, int input, int output);

/// How long the keeper waits between SIGTERM and SIGKILL.
inline constexpr int kKeeperPatienceMs = 2000;

}  // namespace greynic::os
