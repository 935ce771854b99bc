#pragma once

/// One host as the collector sees it: how its arenas are found and read, whether it is up, and if
/// not, why. What a host says is not trusted: a malformed arena is named and left alone, and all
/// others go on.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "directory.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/zero/reader.h"

namespace greynic::monitor {

/// Takes what a host gives.
class Taker {
 public:
  virtual ~Taker() = default;
  /// `arena`: never the same for two arenas of this collector.
  virtual void readings(const HostSpec& host, std::uint64_t arena, const zero_header& header,
                        std::span<const zero::Reading> readings, std::int64_t time_ns) = 0;
  /// No more readings come of this arena.
  virtual void ended(std::uint64_t arena) = 0;
  /// An arena or a host was not read until now.
  virtual void gap(const HostSpec& host, std::int64_t begin_ns, std::int64_t end_ns,
                   const std::string& reason) = 0;
  virtual void tell(const std::string& line) = 0;
};

class WatchedHost {
 public:
  WatchedHost(HostSpec spec, Taker& taker);
  ~WatchedHost();
  WatchedHost(const WatchedHost&) = delete;
  WatchedHost& operator=(const WatchedHost&) = delete;

  void look(std::int64_t time_ns);
  /// Closes a gap that is open.
  void end(std::int64_t time_ns);
  [[nodiscard]] const HostSpec& spec() const { return spec_; }
  [[nodiscard]] bool is_up() const { return up_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::size_t arena_count() const { return arenas_.size(); }

 private:
  struct Arena {
    std::uint64_t number = 0;                 ///< for the taker
    std::optional<zero::ArenaReader> reader;  ///< none: malformed, left alone
    std::string name;
    std::uint32_t row = 0;  ///< in the directory
    bool seen = false;
  };
  using Arenas = std::map<std::uint64_t, Arena>;  ///< by incarnation

  void down(std::int64_t time_ns, const std::string& reason);
  void connect(std::int64_t time_ns);
  Result<void> open_agent();
  Result<void> open_region();
  Result<void> open_process();
  Result<void> hear_agent();
  void add(std::uint64_t incarnation, Result<std::unique_ptr<zero::Source>> source,
           const std::string& name, std::uint32_t row);
  /// False: the arena is to be forgotten.
  bool look_at(Arena& arena, std::int64_t time_ns);

  HostSpec spec_;
  Taker& taker_;
  bool up_ = false;
  std::string reason_;
  std::int64_t last_good_ns_ = 0;
  std::int64_t next_try_ns_ = 0;
  std::int64_t next_search_ns_ = 0;
  Arenas arenas_;
  int socket_ = -1;
  std::optional<DirectoryReader> directory_;
  std::uint64_t file_number_ = 0;  ///< of the region's file
};

}  // namespace greynic::monitor
