#pragma once

/// One host as the collector sees it: how its arenas are found and read, whether it is up, and if
/// not, why. What a host says is not trusted: a malformed arena is named and left alone, and all
/// others go on.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "directory.h"
#include "greynic/monitor/host_link.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/zero/reader.h"

namespace greynic::monitor {

/// A host that is down is tried again after that.
constexpr std::int64_t kTryAgainNs = 500'000'000;

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
  WatchedHost(HostSpec spec, Taker& taker, RemoteLinks remote_links = {});
  ~WatchedHost();
  WatchedHost(const WatchedHost&) = delete;
  WatchedHost& operator=(const WatchedHost&) = delete;

  void look(std::int64_t time_ns);
  /// Closes a gap that is open.
  void end(std::int64_t time_ns);
  [[nodiscard]] const HostSpec& spec() const { return spec_; }
  [[nodiscard]] bool is_up() const { return up_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// Bytes that a look at it moves, as far as is known.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Arena {
    std::uint64_t number = 0;                 ///< for the taker
    std::optional<zero::ArenaReader> reader;  ///< none: malformed, left alone
    std::string name;
    bool seen = false;  ///< live in the directory
  };
  using Arenas = std::map<std::uint64_t, Arena>;  ///< by incarnation

  void look_once(std::int64_t time_ns);
  void down(std::int64_t time_ns, const std::string& reason);
  void connect(std::int64_t time_ns);
  Result<void> open_agent();
  Result<void> open_region();
  Result<void> open_process();
  Result<void> hear_agent();
  Result<void> look_for_arenas();
  void add(std::uint64_t incarnation, Arena arena);
  std::vector<Arenas::iterator> arenas_in_order();
  Result<void> add(std::uint64_t incarnation, std::unique_ptr<zero::Source> source,
                   const std::string& name);
  enum class Seen { kGood, kEnded, kHostLost };
  Seen look_at(Arena& arena, std::int64_t time_ns);

  HostSpec spec_;
  Taker& taker_;
  bool up_ = false;
  std::string reason_;
  std::string lost_;  ///< why the last look at an arena failed
  std::int64_t last_good_ns_ = 0;
  std::int64_t next_try_ns_ = 0;
  std::int64_t try_again_ns_ = kTryAgainNs;
  std::int64_t next_search_ns_ = 0;
  Arenas arenas_;
  bool arena_came_ = false;  ///< since the last look
  RemoteLinks remote_links_;
  std::unique_ptr<HostLink> link_;  ///< of an agent
  std::optional<DirectoryReader> directory_;
  std::set<std::uint64_t> done_with_;  ///< incarnations of the directory that are not read any more
  std::uint64_t heartbeat_ = 0, heard_ns_ = 0;
  std::uint64_t bytes_ = 4096;
  std::uint64_t file_number_ = 0;  ///< of the region's file
};

}  // namespace greynic::monitor
