#include "watched_host.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <tuple>
#include <utility>

#include "greynic/daemon/log.h"

namespace greynic::monitor {
namespace {

constexpr std::int64_t kTryAgainAtMostNs = 5'000'000'000;
constexpr std::int64_t kSearchNs = 1'000'000'000;
constexpr std::uint64_t kStaleNs = 3'000'000'000;

std::uint64_t boot_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t new_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

WatchedHost::WatchedHost(HostSpec spec, Taker& taker, RemoteLinks remote_links)
    : spec_(std::move(spec)), taker_(taker), remote_links_(std::move(remote_links)) {}

WatchedHost::~WatchedHost() = default;

void WatchedHost::down(std::int64_t time_ns, const std::string& reason) {
  if (up_ || reason_ != reason) {
    taker_.tell(fmt::format("{}: {}", spec_.name, daemon::plain(reason, 400)));
  }
  up_ = false;
  reason_ = reason;
  if (last_good_ns_ == 0) last_good_ns_ = time_ns;
  next_try_ns_ = time_ns + try_again_ns_;
  // Behind a wire each try costs both ends a handshake: who stays away is asked less and less often.
  if (!spec_.remote.empty()) try_again_ns_ = std::min(2 * try_again_ns_, kTryAgainAtMostNs);
  for (const auto& [incarnation, arena] : arenas_) taker_.ended(arena.number);
  arenas_.clear();
  done_with_.clear();
  directory_.reset();
  link_.reset();
}

void WatchedHost::connect(std::int64_t time_ns) {
  const Result<void> opened = !spec_.region.empty() ? open_region()
                              : spec_.pid != 0      ? open_process()
                                                    : open_agent();
  if (!opened) return down(time_ns, opened.error().message);
  up_ = true;
  next_search_ns_ = time_ns + kSearchNs;
  if (last_good_ns_ != 0 && !reason_.empty()) {
    taker_.gap(spec_, last_good_ns_, time_ns, reason_);
    taker_.tell(spec_.name + ": is read again");
  }
  reason_.clear();
}

Result<void> WatchedHost::add(std::uint64_t incarnation, std::unique_ptr<zero::Source> source,
                              const std::string& name) {
  Arena arena{new_number(), std::nullopt, name, false};
  auto reader = zero::ArenaReader::open(std::move(source));
  if (!reader && reader.error().code == ErrorCode::kIo) return pass_on(reader);
  if (reader && reader->header().incarnation == incarnation) {
    arena.name = fmt::format("{} {}", reader->header().name, name);
    arena.reader.emplace(std::move(*reader));
  } else {
    taker_.tell(fmt::format("{}: {} is left alone: {}", spec_.name, name,
                            reader ? "it is not the arena that was shown"
                                   : daemon::plain(reader.error().message, 400)));
  }
  add(incarnation, std::move(arena));
  return {};
}

void WatchedHost::add(std::uint64_t incarnation, Arena arena) {
  arenas_.emplace(incarnation, std::move(arena));
  arena_came_ = true;
}

/// Where one is new: what has ended goes first, so that its successor takes its place, and then the
/// oldest program, so that a collector that is started anew gives each the same place again.
std::vector<WatchedHost::Arenas::iterator> WatchedHost::arenas_in_order() {
  std::vector<Arenas::iterator> order;
  for (auto at = arenas_.begin(); at != arenas_.end(); ++at) order.push_back(at);
  if (!std::exchange(arena_came_, false)) return order;
  const auto turn_of = [](const Arenas::iterator& at) {
    const Arena& arena = at->second;
    if (!arena.reader) return std::tuple(arena.seen, std::uint64_t{0}, std::uint64_t{0});
    const zero_header& header = arena.reader->header();
    return std::tuple(arena.seen, header.owner_start, header.owner_pid);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return turn_of(a) < turn_of(b); });
  return order;
}

Result<void> WatchedHost::open_agent() {
  auto link = spec_.remote.empty() ? local_link(spec_.agent, spec_.classes)
              : remote_links_
                  ? remote_links_(spec_)
                  : fail(ErrorCode::kMissing,
                         "this greynic was built without gRPC; it reads hosts of this machine");
  if (!link) return pass_on(link);
  link_ = std::move(*link);
  return {};
}

/// What the agent says, and what its directory holds.
Result<void> WatchedHost::hear_agent() {
  if (auto heard = link_->hear(); !heard) return heard;
  if (!directory_) {
    auto source = link_->directory();
    if (!source) return pass_on(source);
    if (*source == nullptr) return {};
    auto directory = DirectoryReader::open(std::move(*source));
    if (!directory) return pass_on(directory);
    directory_.emplace(std::move(*directory));
  }
  return look_for_arenas();
}

Result<void> WatchedHost::look_for_arenas() {
  const auto rows = directory_->look();
  if (!rows) return pass_on(rows);
  // The clocks of other hosts are their own: a heartbeat is compared with an earlier one.
  const std::uint64_t now = boot_now_ns();
  if (directory_->heartbeat_ns() != heartbeat_) {
    heartbeat_ = directory_->heartbeat_ns();
    heard_ns_ = now;
  } else if (now > heard_ns_ + kStaleNs) {
    return fail(ErrorCode::kIo, "the agent stands still");
  }
  for (auto& [incarnation, arena] : arenas_) arena.seen = false;
  const std::uint32_t classes = spec_.classes & link_->classes();
  std::set<std::uint64_t> gone;
  gone.swap(done_with_);
  for (const DirectoryReader::Row& row : *rows) {
    const std::uint64_t incarnation = row.row.incarnation;
    if (gone.contains(incarnation)) {
      done_with_.insert(incarnation);
      continue;
    }
    if ((classes >> row.row.metric_class & 1) == 0) continue;
    auto arena = arenas_.find(incarnation);
    if (arena == arenas_.end()) {
      auto source = link_->arena(incarnation);
      if (!source && source.error().code != ErrorCode::kBadInput) return pass_on(source);
      const std::string name = fmt::format("({})", row.row.pid);
      if (!source) {
        taker_.tell(fmt::format("{}: {} is left alone: {}", spec_.name, name,
                                daemon::plain(source.error().message, 400)));
        done_with_.insert(incarnation);
        continue;
      }
      if (*source == nullptr) continue;
      if (auto added = add(incarnation, std::move(*source), name); !added) return added;
      arena = arenas_.find(incarnation);
    }
    arena->second.seen = row.row.state == ZERO_ARENA_LIVE;
  }
  return {};
}

Result<void> WatchedHost::open_region() {
  struct stat status {};
  file_number_ = ::stat(spec_.region.c_str(), &status) == 0 ? status.st_ino : 0;
  auto source = zero::map_region(spec_.region);
  if (!source) return pass_on(source);
  auto reader = zero::ArenaReader::open(std::move(*source));
  if (!reader) return reader.error().while_doing(spec_.region);
  const std::uint64_t incarnation = reader->header().incarnation;
  add(incarnation, Arena{new_number(), std::move(*reader), spec_.region, true});
  return {};
}

Result<void> WatchedHost::open_process() {
  const auto found = zero::find_arenas(spec_.pid);
  if (!found) return pass_on(found);
  if (found->empty()) {
    return fail(ErrorCode::kMissing,
                fmt::format("process {} has no metrics; does it link libgreynic_zero?", spec_.pid));
  }
  for (const zero::FoundArena& arena : *found) {
    auto reader = zero::ArenaReader::open(zero::process_source(spec_.pid, arena));
    if (!reader) {
      if (reader.error().code != ErrorCode::kBadInput) return pass_on(reader);
      taker_.tell(fmt::format("{}: an arena at {:#x} is left alone: {}", spec_.name, arena.address,
                              daemon::plain(reader.error().message, 400)));
      continue;
    }
    const std::uint64_t incarnation = reader->header().incarnation;
    if ((spec_.classes >> reader->header().metric_class & 1) == 0) continue;
    if (!arenas_.contains(incarnation)) {
      add(incarnation, Arena{new_number(), std::move(*reader), "", true});
    }
  }
  return {};
}

WatchedHost::Seen WatchedHost::look_at(Arena& arena, std::int64_t time_ns) {
  if (!arena.reader) return Seen::kGood;
  const auto readings = arena.reader->look();
  if (readings) {
    taker_.readings(spec_, arena.number, arena.reader->header(), *readings, time_ns);
    return Seen::kGood;
  }
  const ErrorCode code = readings.error().code;
  if (code == ErrorCode::kBadInput || code == ErrorCode::kTooBig) {
    taker_.tell(fmt::format("{}: {} is left alone: {}", spec_.name, daemon::plain(arena.name),
                            daemon::plain(readings.error().message, 400)));
    taker_.gap(spec_, last_good_ns_, time_ns, readings.error().message);
    arena.reader.reset();
    return Seen::kGood;
  }
  lost_ = readings.error().message;
  // The memory of this machine's agent stays; what is behind a wire may be cut off.
  return link_ == nullptr || (code == ErrorCode::kIo && !spec_.remote.empty()) ? Seen::kHostLost
                                                                               : Seen::kEnded;
}

void WatchedHost::look(std::int64_t time_ns) {
  look_once(time_ns);
  if (link_ != nullptr) link_->rest();
}

void WatchedHost::look_once(std::int64_t time_ns) {
  if (!up_) {
    if (time_ns < next_try_ns_) return;
    connect(time_ns);
    if (!up_) return;
  }
  const bool by_agent = link_ != nullptr;
  if (by_agent) {
    if (auto heard = hear_agent(); !heard) return down(time_ns, heard.error().message);
  } else if (time_ns >= next_search_ns_) {
    next_search_ns_ = time_ns + kSearchNs;
    struct stat status {};
    if (!spec_.region.empty() &&
        (::stat(spec_.region.c_str(), &status) != 0 || status.st_ino != file_number_)) {
      return down(time_ns, spec_.region + ": is another file now");
    }
    if (spec_.pid != 0) {
      if (auto found = open_process(); !found) return down(time_ns, found.error().message);
    }
  }
  bytes_ = sizeof(zero_header);
  for (const auto at : arenas_in_order()) {
    if (at->second.reader) bytes_ += at->second.reader->look_bytes();
    const Seen seen = look_at(at->second, time_ns);
    if (seen == Seen::kHostLost) {
      return down(time_ns,
                  by_agent ? lost_ : "cannot be read any more; it was started anew or has ended");
    }
    // One that has ended was looked at once more, just now.
    if (seen == Seen::kGood && (at->second.seen || !by_agent)) continue;
    taker_.ended(at->second.number);
    if (by_agent) done_with_.insert(at->first);
    arenas_.erase(at);
  }
  last_good_ns_ = time_ns;
  try_again_ns_ = kTryAgainNs;
}

void WatchedHost::end(std::int64_t time_ns) {
  if (!up_ && last_good_ns_ != 0) taker_.gap(spec_, last_good_ns_, time_ns, reason_);
}

}  // namespace greynic::monitor
