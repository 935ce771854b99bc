#pragma once

/// What stands behind the handles of greynic_broker.h.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "attachment.h"
#include "greynic/broker/core.h"
#include "greynic_broker.h"
#include "lending.h"
#include "lent_memory.h"

struct greynic_broker_connection {
  greynic_broker* broker = nullptr;
  std::shared_ptr<greynic::broker::client::Attachment> attachment;
  std::uint32_t number = 0;  ///< 0: not open yet
  std::uint64_t cookie = 0;  ///< of its connect
  greynic::broker::local::Part send_ring, receive_ring;
  std::array<std::uint8_t, 16> from{};
  greynic::Transport transport = greynic::Transport::kRC;
  bool accepted = false;
  bool own_receive_ring = true;
  bool open = false, finished = false, over = false, released = false, wants_finish = false;
  int error = 0;
  std::uint64_t written = 0, sent = 0, received = 0, consumed = 0, told = 0;
  std::uint64_t shown = 0;      ///< bytes that recv_zero_copy has shown
  std::uint64_t past_ring = 0;  ///< bytes that were sent from where they lay
  /// The broker's answer to the last such send.
  struct Held {
    int error = 0;
    bool registered = false;
  };
  std::optional<Held> held;
  int changed = 0;  ///< for greynic_broker_ready
  void* context = nullptr;

  [[nodiscard]] bool is_stream() const { return transport == greynic::Transport::kRC; }
};

struct greynic_broker_listener {
  greynic_broker* broker = nullptr;
  std::uint16_t port = 0;
  bool answered = false, changed = false;
  int error = 0;
  struct Incoming {
    std::uint32_t number = 0;
    greynic::Transport transport = greynic::Transport::kRC;
    std::array<std::uint8_t, 16> from{};
  };
  std::deque<Incoming> incoming;
  /// Where `incoming` belongs: numbers of a dead broker mean nothing to the next.
  std::shared_ptr<greynic::broker::client::Attachment> attachment;
};

struct greynic_broker {
  using Attachment = greynic::broker::client::Attachment;
  using Request = greynic::broker::local::Request;

  std::string socket;
  std::size_t segment_bytes = 0, ring_bytes = 0;
  bool reconnects = false, wants_huge_pages = false;
  std::mutex mutex;
  std::condition_variable woken;
  bool somebody_waits_at_socket = false;
  std::atomic<int> wait_for_sent{
      0};  ///< callers that wait for room, or for what they sent to arrive
  /// How long a caller that waits looks for events before it sleeps: as long as that pays.
  std::chrono::nanoseconds look_for{};
  std::shared_ptr<Attachment> attachment;
  std::uint64_t next_cookie = 1;
  std::unordered_map<std::uint32_t, greynic_broker_connection*> by_number;
  std::unordered_map<std::uint64_t, greynic_broker_connection*> by_cookie;
  std::unordered_map<std::uint16_t, greynic_broker_listener*> listeners;
  std::unordered_set<greynic_broker_connection*> connections;
  std::deque<greynic_broker_connection*> changed;
  std::deque<greynic_broker_listener*> changed_listeners;
  std::string reason;
  greynic::broker::client::LentMemory lent;
  greynic::broker::client::Lending lending;

  // All are called under the lock.

  /// Takes in what the broker has told, and its death.
  void take_events();
  /// Waits until `done`, or the broker dies: then false. Who waits only for bytes is not woken when
  /// what was sent has arrived.
  enum class For { kAll, kBytes };
  bool wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
            For what = For::kAll);
  /// Until what was sent on connections that were let go has gone out, at most so long.
  void linger(std::unique_lock<std::mutex>& lock);
  /// A living attachment, made anew if that is wanted. False with errno.
  bool be_attached(std::unique_lock<std::mutex>& lock);
  /// A connection with its rings; null with errno.
  greynic_broker_connection* make_connection(void* memory, std::size_t bytes);
  void destroy(greynic_broker_connection* connection);
  void note(greynic_broker_connection& connection, int what);
  void note(greynic_broker_listener& listener);
  /// Sends bytes from where they lie and waits until they have arrived; how many, 0: they are to be
  /// copied, or -1 with errno.
  ssize_t send_from(std::unique_lock<std::mutex>& lock, greynic_broker_connection& connection,
                    const void* data, std::size_t bytes);
  /// Of the broker that was attached to.
  void take_on_costs();
  void tell_consumed(greynic_broker_connection& connection, bool at_once);

 private:
  void take(const greynic::broker::local::Event& event);
  void end(greynic_broker_connection* connection, int error);
  void lose_broker();
  /// Until there are events after that place. True: a byte of the socket may have woken it.
  bool doze(Attachment& at, std::uint32_t place);
  bool wait_for_events(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
};
