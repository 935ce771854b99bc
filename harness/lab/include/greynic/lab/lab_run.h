#pragma once

/// Runs programs that know nothing of greynic on virtual RNICs: a library loaded into them takes
/// the place of libibverbs and librdmacm, and moves their bytes through shared memory, in real
/// threads and real time, or in the time of the twin. docs/lab_run.md: what runs and what does not.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::lab {

/// The virtual RNIC that programs see as `twin0`.
struct Device {
  std::string model = "ConnectX-6";
  std::uint32_t part = 0;  ///< PCI device id, which programs know models by
  std::uint32_t link_gbps = 100;
};

struct PairOptions {
  Device device;
  std::vector<std::string> command;
  /// Words added for the server, and for the client before the server's address. Programs of
  /// rdmacm-utils are known; others need none.
  std::vector<std::string> server_words, client_words;
  /// The clocks of both programs show the time of a fabric with this RNIC: a model that is compiled
  /// in, or a file, and its profile. Unset: real time.
  struct VirtualTime {
    std::string rnic, profile;
    struct Groups {
      double out = 0, in = 0;
    };
    Groups client, server;  ///< of flow rules that packets out of the host and into it meet
  };
  std::optional<VirtualTime> virtual_time;
};

/// The command as server on host 0; as soon as it listens, with the server's address added, as
/// client on host 1. Gives the client's exit code, or the server's when that alone failed. The
/// client has our streams; what the server printed is shown when something failed.
[[nodiscard]] Result<int> run_pair(const PairOptions& options);

struct SessionOptions {
  Device device;
  std::string session;
  std::uint32_t host = 0;
  std::vector<std::string> command;
};

/// The command on a host of a session, which lasts as long as any program is in it. Gives the
/// command's exit code.
[[nodiscard]] Result<int> run_in_session(const SessionOptions& options);

}  // namespace greynic::lab
