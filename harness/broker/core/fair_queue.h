#pragma once

/// Who posts next on a lane: applications in turn, each by the bytes it has had, and within an
/// application its connections in turn (deficit round robin with the surplus carried over). Each
/// step is of constant cost, however many wait.

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace greynic::broker {

class FairQueue {
 public:
  explicit FairQueue(std::int64_t quantum) : quantum_(quantum) {}

  void add(std::uint32_t app, std::uint32_t connection) {
    App& entry = apps_[app];
    if (entry.connections.empty()) turns_.push_back(app);
    entry.connections.push_back(connection);
  }
  /// The next one, taken out; add() it again while it has more. `charge` then tells what it cost.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> next() {
    while (!turns_.empty()) {
      const std::uint32_t app = turns_.front();
      App& entry = apps_[app];
      if (entry.credit <= 0) {
        entry.credit += quantum_;
        turns_.pop_front();
        turns_.push_back(app);
        continue;
      }
      const std::uint32_t connection = entry.connections.front();
      entry.connections.pop_front();
      if (entry.connections.empty()) {
        turns_.pop_front();
        if (entry.leaving) apps_.erase(app);
      }
      return std::pair{app, connection};
    }
    return std::nullopt;
  }
  void charge(std::uint32_t app, std::int64_t bytes) {
    // A message costs more than its bytes: small ones count as kLeast.
    apps_[app].credit -= bytes < kLeast ? kLeast : bytes;
  }
  /// It adds no more connections.
  void forget(std::uint32_t app) {
    const auto found = apps_.find(app);
    if (found == apps_.end()) return;
    found->second.leaving = true;
    if (found->second.connections.empty()) apps_.erase(found);
  }
  [[nodiscard]] bool empty() const { return turns_.empty(); }

 private:
  static constexpr std::int64_t kLeast = 256;
  struct App {
    std::deque<std::uint32_t> connections;
    std::int64_t credit = 0;
    bool leaving = false;
  };
  std::int64_t quantum_;
  std::deque<std::uint32_t> turns_;
  std::unordered_map<std::uint32_t, App> apps_;
};

}  // namespace greynic::broker
