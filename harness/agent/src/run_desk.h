#pragma once

/// The one run that an agent serves at a time, whoever asks for what meanwhile.
///
/// A run belongs to the certificate that opened it and to an id that cannot be guessed. It has a
/// lease, which ends when nothing is heard for its length, or a few seconds after the connection
/// that was last heard of has gone. No lock is held while the device works: a second caller is told
/// "busy" at once, and a run can be dropped while a call of it is under way.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "greynic/agent/lab.h"
#include "greynic/daemon/leases.h"
#include "greynic/verbs/peer.h"

namespace greynic::agent {

class RunDesk {
 public:
  using Tell = std::function<void(std::string_view)>;
  RunDesk(std::unique_ptr<verbs::Peer> peer, std::chrono::seconds longest_lease, Tell tell);

  struct Opened {
    bool busy = false;  ///< with another run; nothing else is set then
    std::uint64_t session = 0;
    verbs::EndpointDescription endpoint;
  };
  [[nodiscard]] Result<Opened> open(const Caller& caller, const verbs::TrafficPlan& plan,
                                    std::chrono::seconds lease);
  [[nodiscard]] Result<void> connect(const Caller& caller, std::uint64_t session,
                                     const verbs::EndpointDescription& endpoint,
                                     std::uint64_t duration_ns);
  [[nodiscard]] Result<verbs::PeerReport> finish(const Caller& caller, std::uint64_t session,
                                                 const verbs::RequestReport& requests);
  void abandon(const Caller& caller, std::uint64_t session);

  /// Ends the run when its lease is over, its connection has gone for good, or its owner may not
  /// come any more. To be called often.
  void look(const std::function<bool(const std::string& connection)>& is_open,
            const std::function<bool(const std::string& owner)>& is_revoked);
  /// Makes whatever is under way end soon.
  void interrupt() { peer_->interrupt(); }

 private:
  using Clock = daemon::Leases::Clock;
  using Lock = std::unique_lock<std::mutex>;
  /// Calls the peer without the lock. A failed call, and the last of a run, end it.
  template <typename Call>
  auto work(Lock& lock, bool last, const Call& call) -> decltype(call());
  Result<void> hold(const Caller& caller, std::uint64_t session);
  /// Ends the run now, or as soon as the call under way comes back.
  void drop(Lock& lock, std::string_view why);
  void end_run(Lock& lock);

  std::unique_ptr<verbs::Peer> peer_;
  Tell tell_;
  std::mutex mutex_;
  daemon::Leases leases_;
  std::uint64_t session_ = 0;  ///< 0: none is open
  std::string caller_;
  std::string connection_;
  bool working_ = false;  ///< a call of the peer is under way
  bool dropped_ = false;  ///< and the run ends with it
  Clock::time_point working_since_;
};

}  // namespace greynic::agent
