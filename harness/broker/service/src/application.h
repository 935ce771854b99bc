#pragma once

/// An attached application: its segment, its rings, and what it is still to be told. Nothing that
/// stands in the segment is believed.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "greynic/broker/core.h"
#include "greynic/broker/local.h"
#include "greynic/broker_service/service.h"

namespace greynic::broker {

/// What the applications of one user hold now.
struct Holdings {
  std::uint64_t connections = 0, segment_bytes = 0, outstanding_bytes = 0;
  std::uint32_t applications = 0;
};

/// A mapped segment, or lent memory. Error: why the descriptor is none.
class Segment {
 public:
  [[nodiscard]] static Result<Segment> map(int fd, std::uint64_t bytes,
                                           std::uint64_t least = local::kDataAt + local::kPage);
  Segment(Segment&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Segment& operator=(Segment&&) = delete;
  ~Segment();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Segment(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

class Application {
 public:
  /// Connects, which takes time when the peer is not known yet.
  using Connect = std::function<void(AppId, const local::Request&)>;

  /// `doorbell`: an eventfd by which the application wakes its broker.
  Application(int socket, int doorbell, pid_t pid, uid_t uid, Segment segment, Core& core,
              const Quota& quota, Holdings& holdings);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  void set_id(AppId id) { id_ = id; }
  /// Hands at most `most` requests to the core; how many there were. Empty `connect` targets are
  /// the caller's: see Connect. After a violation broken() has the reason.
  std::size_t take_requests(std::size_t most, const Connect& connect);
  /// The second half of a connect: the peer is there.
  void connect_to(PeerId peer, const local::Request& request);
  void fail_connect(std::uint64_t cookie, int error);
  /// Memory beside its segment, to be sent from. What breaks the rules ends it: see broken().
  void lend(const local::Lend& wish, int memory);

  // What the core says.
  void on_incoming(std::uint16_t port, VirtualQpn number, Transport transport,
                   const std::array<std::uint8_t, 16>& from);
  void on_open(VirtualQpn number);
  void on_received(VirtualQpn number, std::uint64_t total);
  void on_sent(VirtualQpn number, std::uint64_t total);
  void on_finished(VirtualQpn number);
  void on_closed(VirtualQpn number, int error);
  void on_returned(std::uint32_t region);

  /// Writes what fits into the event ring, and wakes the application if it sleeps.
  void deliver();
  [[nodiscard]] bool has_more() const { return !told_.empty() || !answers_.empty(); }
  /// False when requests wait: it must not be slept then.
  [[nodiscard]] bool prepare_to_sleep();

  [[nodiscard]] bool may_have_more() const { return holdings_.connections < quota_.connections; }
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] int doorbell() const { return doorbell_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] uid_t uid() const { return uid_; }
  [[nodiscard]] std::size_t connection_count() const { return connections_.size(); }
  [[nodiscard]] std::uint64_t request_count() const { return requests_taken_; }
  [[nodiscard]] std::uint64_t wake_count() const { return wakes_; }
  [[nodiscard]] std::span<std::byte> segment() const { return segment_.bytes(); }
  [[nodiscard]] std::uint64_t lent_bytes() const { return lent_bytes_; }
  /// It has gone: its socket is closed, and it is told nothing more.
  void hang_up();

 private:
  /// A connection, and what is to be told of it.
  struct Entry {
    std::uint64_t cookie = 0, received = 0, sent = 0, send_bytes = 0;
    std::array<std::uint8_t, 16> from{};
    std::uint16_t port = 0;
    Transport transport = Transport::kRC;
    int error = 0, held_error = 0;
    bool queued = false;
    bool held_due = false, held_made = false;
    bool incoming = false, opened = false, got_more = false, sent_more = false, finished = false,
         closed = false;
  };
  [[nodiscard]] local::Places& places() const;
  void handle(const local::Request& request, const Connect& connect);
  void accept(const local::Request& request);
  void send_from(const local::Request& request);
  void note(VirtualQpn number, Entry& entry);
  Entry* entry_of(VirtualQpn number);
  bool write_events(VirtualQpn number, Entry& entry, bool& only_sent);
  void forget(VirtualQpn number);
  /// 0, or the error for a ring that the application may not have.
  [[nodiscard]] int afford(const local::Request& request) const;
  void check(int error, const char* what);
  /// It slept as that word said.
  void wake(std::uint32_t slept);
  [[nodiscard]] std::optional<Rings> rings_of(const local::Request& request) const;

  int socket_, doorbell_;
  pid_t pid_;
  uid_t uid_;
  Segment segment_;
  Core& core_;
  const Quota& quota_;
  Holdings& holdings_;
  AppId id_ = 0;
  local::RequestReader requests_;
  local::EventWriter events_;
  std::unordered_map<VirtualQpn, Entry> connections_;
  std::deque<VirtualQpn> told_;       ///< connections of which something is to be told
  std::deque<local::Event> answers_;  ///< to listens and failed connects
  std::deque<std::pair<std::uint64_t, VirtualQpn>> late_;  ///< closed, when so many were taken
  std::unordered_set<VirtualQpn> late_set_;
  std::unordered_map<std::uint32_t, Segment> lent_;  ///< by the application's numbers
  std::uint64_t lent_bytes_ = 0;
  bool has_registered_ = false;  ///< in this turn
  std::uint64_t requests_taken_ = 0, wakes_ = 0;
  std::string broken_;
};

}  // namespace greynic::broker
