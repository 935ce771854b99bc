#pragma once

/// What the door holds for its callers: for each a link to the agent of this host that shows the
/// classes it may see, and the arenas that it READs, by calls or through a queue pair of its own. A
/// session ends with its lease, which every call renews, or when the agent has gone; memory that was
/// exposed is withdrawn with it, and when nobody asked to keep it for the time of a lease.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "greynic/agent/lab.h"
#include "greynic/daemon/leases.h"
#include "greynic/monitor/host_link.h"
#include "greynic/remote/remote.h"
#include "keys.h"
#include "rdma.h"

namespace greynic::remote {

inline constexpr std::uint64_t kMostReadBytes = 32 << 20;  ///< in one answer
inline constexpr std::size_t kMostPieces = 1 << 20;
inline constexpr std::chrono::seconds kLongestLease{4 * 3600};

class Sessions {
 public:
  /// `device`: null where callers are answered over TCP alone.
  explicit Sessions(const DoorOptions& options,
                    std::shared_ptr<const verbs::Device> device = nullptr)
      : options_(options), device_(std::move(device)) {}

  struct Opened {
    std::uint64_t session = 0;
    std::uint32_t classes = 0;
  };
  using IsOpen = std::function<bool(const std::string& connection)>;
  /// Where too many are held, those go whose connection has gone: who was killed keeps nobody out.
  /// kMissing: the caller may see nothing; kTooBig: it has too many sessions.
  [[nodiscard]] Result<Opened> open(const agent::Caller& caller, std::uint32_t classes,
                                    std::chrono::seconds lease, const IsOpen& is_open);

  struct Asked {
    std::uint64_t arena = 0;  ///< 0: the directory
    std::span<const std::uint64_t> offsets;
    std::span<const std::uint32_t> sizes;
  };
  /// The bytes, one piece after the other. False: may not be seen, or is gone.
  [[nodiscard]] Result<bool> read(const agent::Caller& caller, std::uint64_t session,
                                  const Asked& asked, std::string& into);

  /// The queue pair of a session, and the table of what may be READ through it.
  struct Joined {
    RdmaEnd end;
    Place keys;
  };
  /// Joins it to that end, whatever it was joined to before; what is exposed stays. kMissing: there
  /// is no device.
  [[nodiscard]] Result<Joined> connect(const agent::Caller& caller, std::uint64_t session,
                                       const RdmaEnd& remote);
  /// An arena stays exposed for another lease. False: it is not.
  [[nodiscard]] Result<bool> keep(const agent::Caller& caller, std::uint64_t session,
                                  std::uint64_t arena);

  /// Ends what has expired, and what is held for those who are turned away; exposes what is new.
  void look(const std::function<bool(const std::string& owner)>& revoked);

 private:
  struct Held {
    std::unique_ptr<zero::Source> source;
    std::optional<Exposed> exposed;  ///< after the source, to be withdrawn before it is unmapped
    daemon::Leases::Clock::time_point used;
  };
  struct Session {
    std::mutex mutex;
    std::unique_ptr<monitor::HostLink> link;
    std::optional<RdmaQueue> queue;
    std::optional<Keys> keys;  ///< of what is exposed through it
    std::map<std::uint64_t, Held> arenas;
    std::chrono::seconds lease{};
    std::string trouble;     ///< that was told
    std::string connection;  ///< of its last call; under the mutex of all
  };
  using Ended = std::vector<std::shared_ptr<Session>>;
  static Result<Held*> held_of(Session& session, std::uint64_t arena);
  static void forget_unused(Session& session);
  Result<void> expose_new(Session& session) const;
  Result<std::shared_ptr<Session>> find(const agent::Caller& caller, std::uint64_t session);
  /// With the mutex held. What it gives back goes after it.
  Ended end(const std::vector<std::uint64_t>& ids);

  const DoorOptions& options_;
  std::shared_ptr<const verbs::Device> device_;
  std::mutex mutex_;  ///< of what follows
  daemon::Leases leases_{{256, 16, kLongestLease}};
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions_;
};

}  // namespace greynic::remote
