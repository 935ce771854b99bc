#pragma once

/// `greynic broker`: the core over an RDMA device, for all applications of this host.
///
/// One thread serves: it takes requests from the rings of applications, turns them into work
/// requests (the worker's part), polls completions and wakes applications (the poller's part), and
/// speaks with other brokers. It polls for a while after the last work, then sleeps until a
/// descriptor wakes it. A second thread, the door, takes the connections of other brokers.
///
/// An application is cut off, with a reason, when it breaks the rules of its segment
/// (greynic/broker/local.h); all others go on. Promises when something dies: docs/broker/.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "greynic/broker/core.h"
#include "greynic/core/result.h"

namespace greynic::broker {

inline constexpr std::uint16_t kUsualPort = 18700;
inline constexpr const char* kUsualSocket = "/run/greynic/broker.sock";

/// What the applications of one user may hold together.
struct Quota {
  std::uint64_t connections = 65536;
  std::uint64_t segment_bytes = std::uint64_t{4} << 30;
  std::uint64_t outstanding_bytes = std::uint64_t{1} << 30;  ///< of send rings
  std::uint32_t applications = 1024;
};

struct ServiceOptions {
  std::string device;
  int port = 1;
  std::string gid_rule = "auto";
  std::string socket = kUsualSocket;
  std::string listen;  ///< ADDRESS:PORT for other brokers; empty: none can come
  /// ADDRESS:PORT of brokers by the LID of their port, for targets that are given as LIDs. Those of
  /// brokers that were met are known.
  std::map<std::uint16_t, std::string> lids;
  std::string certificates;  ///< directory; empty: no TLS, loopback only
  CoreOptions core;
  Quota quota;
  /// From which length on lent memory is registered and not copied: as measured at the start, or from
  /// so many bytes, or (none) never.
  bool measures_crossover = true;
  std::optional<std::uint64_t> register_from;
  std::chrono::microseconds poll_for{50};  ///< after the last work, before it sleeps
  int cpu = -1;                            ///< to which the serving thread is bound
  std::chrono::seconds silence{5};         ///< a peer that is silent for so long is dead
  std::function<void(std::string_view)> tell;
};

class Service {
 public:
  /// Errors: kBadInput (a listen address beyond loopback without certificates), kMissing (device,
  /// certificates), kIo (a socket that is taken), kRefused (the device).
  [[nodiscard]] static Result<std::unique_ptr<Service>> start(const ServiceOptions& options);
  virtual ~Service() = default;
  /// Where other brokers reach it, with the port that was given; empty: nowhere.
  [[nodiscard]] virtual const std::string& address() const = 0;
  /// Serves until `stop` is set. kIo when the device fails.
  [[nodiscard]] virtual Result<void> serve(const std::atomic<bool>& stop) = 0;
};

/// What the broker at this socket says of itself: a JSON document. kMissing when none is there.
[[nodiscard]] Result<std::string> ask_status(const std::string& socket);

/// Its last decisions on pieces of streams, the oldest first: a JSON document as well.
[[nodiscard]] Result<std::string> ask_decisions(const std::string& socket);
/// The same as a table for people.
[[nodiscard]] std::string decisions_table(const std::string& json);

}  // namespace greynic::broker
