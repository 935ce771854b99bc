#pragma once

/// `greynic zero agent --listen`, and collectors of other hosts: the directory and the arenas of a
/// host are READ over TCP, with the certificates of a lab at both ends (agent/lab.h). Where both have
/// an RDMA device, calls over TCP only say where the arenas lie, and they are READ through a queue
/// pair: nobody on the host takes part.
///
/// The door is a collector of its own host: it sees through the agent's socket what such a one may,
/// and gives each caller the classes that the lab's certificates allow. Memory that a program only
/// lent (adopted rows) stays on its host: over the wire nobody names an address.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "greynic/core/result.h"
#include "greynic/monitor/host_link.h"

namespace greynic::remote {

struct DoorOptions {
  std::string socket;        ///< of the agent
  std::string listen;        ///< ADDRESS:PORT
  std::string certificates;  ///< directory; empty: loopback only
  std::string device;        ///< RDMA device that collectors READ through; empty: over TCP alone
  /// The agent's own mapping of its directory, for `device`; it outlives the door.
  std::span<const std::byte> directory;
  /// Classes (a bit each) by the name in the client's certificate. Empty: every client of the lab
  /// sees all; else who is not named sees nothing.
  std::map<std::string, std::uint32_t> allowed;
  std::function<void(std::string_view)> tell;
};

/// "alice=persistent,tidal" into `allowed`; kBadInput says what is wrong.
[[nodiscard]] Result<void> allow(std::string_view text,
                                 std::map<std::string, std::uint32_t>& allowed);

class Door {
 public:
  /// Errors as LabServer::start (agent/lab.h); kMissing: there is no such device.
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(const DoorOptions& options);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  [[nodiscard]] const std::string& address() const;

 private:
  struct State;
  explicit Door(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct LinkOptions {
  /// Queue pairs of a device that links share: most RNICs hold so many in their caches. More hosts take
  /// turns.
  std::size_t queue_pairs = 256;
  /// An answer is waited for twice the host's interval, but no shorter than this, and no longer than
  /// this or a second.
  std::chrono::nanoseconds patience = std::chrono::milliseconds(250);
};

/// Links to agents, by HostSpec::remote with its certificates, by its device or over TCP. kMissing: a
/// device of `hosts`, or a file of their certificates, is not there; kBadInput: such a file is none of
/// a lab.
[[nodiscard]] Result<monitor::RemoteLinks> links_to(std::span<const monitor::HostSpec> hosts,
                                                    const LinkOptions& options = {});

}  // namespace greynic::remote
