#pragma once

/// `greynic broker run -- COMMAND`: the TCP connections of an unmodified program go over a broker.
/// A library that is loaded before the program's own puts local sockets in the place of TCP
/// sockets; this process is the relay between those and connections of the broker.
///
/// A port that the program listens at is a port of the broker; a program elsewhere reaches it by
/// the address of that host. Bytes are copied twice more than with greynic_broker.h. Not carried:
/// UDP, urgent data, programs that are linked statically, set-uid, or call the kernel themselves.

#include <map>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::broker {

struct RunOptions {
  std::string socket;  ///< of the broker
  /// Whose broker listens at another place than the usual port of the address that the program
  /// names: from address to ADDRESS:PORT. "*" is all addresses.
  std::map<std::string, std::string> via;
  std::vector<std::string> words;
  /// At the same time, at most. Beyond 1,000 each has smaller rings.
  int connections = 1000;
};

/// Runs the command to its end; its exit code, or 128 and the signal that ended it. Errors:
/// kMissing (no broker, no such program), kBadInput (more connections than descriptors), kIo.
[[nodiscard]] Result<int> run_over_broker(const RunOptions& options);

}  // namespace greynic::broker
