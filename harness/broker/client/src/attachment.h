#pragma once

/// One attachment to a broker, from the application's side: socket, segment, rings, and which parts
/// of the segment are given out. It ends when the broker dies; a reconnecting client makes a new
/// one. Callers hold the client's lock.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "greynic/broker/local.h"

namespace greynic::broker::client {

class Attachment {
 public:
  /// Null with errno; `reason` is the broker's word when it refused.
  static std::shared_ptr<Attachment> open(const std::string& socket, std::size_t bytes,
                                          bool huge_pages, std::string& reason);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// Pages of the segment; 0 bytes when none are left.
  local::Part take(std::size_t bytes);
  void give_back(const local::Part& part);
  [[nodiscard]] std::byte* at(const local::Part& part) const {
    return base_ + std::uint64_t{part.page} * local::kPage;
  }
  [[nodiscard]] bool holds(const void* memory) const;
  [[nodiscard]] std::uint64_t offset_of(const void* memory) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  }
  /// The part that begins there and was taken; 0 bytes: none does.
  [[nodiscard]] local::Part part_at(const void* memory) const;

  /// Hands over memory beside the segment; 0 or an error. The broker's answer comes as an event.
  int lend(int memory, std::uint32_t region, std::uint64_t bytes);
  /// What the broker has measured.
  [[nodiscard]] const local::Costs& costs() const { return costs_; }
  /// False when the broker has died.
  bool post(const local::Request& request);
  [[nodiscard]] bool has_event() const { return events_.waiting() != 0; }
  local::Event next_event() { return events_.read(); }
  void release_events() { events_.release(); }
  /// Up to here all events were taken.
  [[nodiscard]] std::uint32_t event_place() const { return events_.place(); }

  // These need no lock, and a place that was read under it: another thread may take events meanwhile,
  // also those for which this one waits.
  [[nodiscard]] bool has_event_after(std::uint32_t place) const {
    return events_.has_more_than(place);
  }
  /// Says that this side sleeps; false when an event came all the same.
  bool prepare_to_sleep(std::uint32_t place, local::Sleep how = local::Sleep::kLight,
                        bool on_word = false);
  /// After prepare_to_sleep on the word: until the broker wakes it, at most so long. False: it did not.
  bool sleep_on_word(std::chrono::nanoseconds most);
  /// Somebody waits for kSent now. Look for events after it.
  void sleep_lightly();
  void stay_awake();
  /// Takes the bytes that wake, at most so many; notes when the broker has gone or has cut us off.
  void drain_socket(int most = 16);
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::size_t huge_bytes() const { return huge_bytes_; }
  /// Why the rest does not lie on huge pages; 0: nobody asked for it, or all does.
  [[nodiscard]] int huge_error() const { return huge_error_; }

 private:
  Attachment(int socket, int doorbell, std::byte* base, std::size_t bytes,
             const local::Costs& costs);
  void wake_broker();
  void use_huge_pages();
  [[nodiscard]] local::Places& places() const { return *reinterpret_cast<local::Places*>(base_); }

  int socket_;
  int doorbell_;  ///< the broker's eventfd
  std::byte* base_;
  std::size_t bytes_;
  std::size_t huge_bytes_ = 0;
  int huge_error_ = 0;
  local::Costs costs_;
  local::RequestWriter requests_;
  local::EventReader events_;
  std::map<std::uint32_t, std::uint32_t> free_;  ///< pages: first, count
  std::map<std::uint32_t, std::uint32_t> taken_;
  bool dead_ = false;
  std::string reason_;
};

}  // namespace greynic::broker::client
