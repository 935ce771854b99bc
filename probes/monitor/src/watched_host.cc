#include "watched_host.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "greynic/daemon/log.h"
#include "link.h"

namespace greynic::monitor {
namespace {

constexpr std::int64_t kTryAgainNs = 500'000'000;
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

WatchedHost::WatchedHost(HostSpec spec, Taker& taker) : spec_(std::move(spec)), taker_(taker) {}

WatchedHost::~WatchedHost() {
  if (socket_ >= 0) ::close(socket_);
}

void WatchedHost::down(std::int64_t time_ns, const std::string& reason) {
  if (up_ || reason_ != reason) {
    taker_.tell(fmt::format("{}: {}", spec_.name, daemon::plain(reason, 400)));
  }
  up_ = false;
  reason_ = reason;
  if (last_good_ns_ == 0) last_good_ns_ = time_ns;
  next_try_ns_ = time_ns + kTryAgainNs;
  for (const auto& [incarnation, arena] : arenas_) taker_.ended(arena.number);
  arenas_.clear();
  directory_.reset();
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void WatchedHost::connect(std::int64_t time_ns) {
  const Result<void> opened = !spec_.agent.empty()    ? open_agent()
                              : !spec_.region.empty() ? open_region()
                                                      : open_process();
  if (!opened) return down(time_ns, opened.error().message);
  up_ = true;
  next_search_ns_ = time_ns + kSearchNs;
  if (last_good_ns_ != 0 && !reason_.empty()) {
    taker_.gap(spec_, last_good_ns_, time_ns, reason_);
    taker_.tell(spec_.name + ": is read again");
  }
  reason_.clear();
}

void WatchedHost::add(std::uint64_t incarnation, Result<std::unique_ptr<zero::Source>> source,
                      const std::string& name, std::uint32_t row) {
  if (arenas_.contains(incarnation)) return;
  Arena arena{new_number(), std::nullopt, name, row, false};
  auto reader = source ? zero::ArenaReader::open(std::move(*source)) : pass_on(source);
  if (reader && reader->header().incarnation == incarnation) {
    arena.reader.emplace(std::move(*reader));
  } else {
    taker_.tell(fmt::format("{}: {} is left alone: {}", spec_.name, daemon::plain(name),
                            reader ? "it is not the arena that was shown"
                                   : daemon::plain(reader.error().message, 400)));
  }
  arenas_.emplace(incarnation, std::move(arena));
}

Result<void> WatchedHost::open_agent() {
  socket_ = connect_to(spec_.agent);
  if (socket_ < 0) {
    return fail(ErrorCode::kIo, fmt::format("no agent at {}: {}; start `greynic zero agent "
                                            "--socket {}`",
                                            spec_.agent, std::strerror(errno), spec_.agent));
  }
  zero_link_message message = make_message(ZERO_LINK_COLLECT);
  message.metric_class = spec_.classes;
  if (!send_message(socket_, message)) return fail(ErrorCode::kIo, "the agent hung up");
  return {};
}

/// What the agent shows, and what its directory says.
Result<void> WatchedHost::hear_agent() {
  bool gone = false;
  while (auto received = receive_message(socket_, gone)) {
    const zero_link_message& message = received->message;
    if (message.kind != ZERO_LINK_SHOWN || received->file < 0) {
      if (received->file >= 0) ::close(received->file);
      return fail(ErrorCode::kIo, "the agent speaks another protocol");
    }
    if (message.row == UINT32_MAX) {
      auto directory = DirectoryReader::open(received->file);
      if (!directory) return pass_on(directory);
      directory_.emplace(std::move(*directory));
      continue;
    }
    pid_t owner = 0;
    if (directory_) {
      const auto rows = directory_->look();
      if (!rows) {
        ::close(received->file);
        return pass_on(rows);
      }
      for (const DirectoryReader::Row& row : *rows) {
        if (row.row.incarnation == message.incarnation) owner = static_cast<pid_t>(row.row.pid);
      }
    }
    add(message.incarnation, zero::map_memory(received->file, owner),
        fmt::format("{} ({})", message.text, owner), message.row);
  }
  if (gone) return fail(ErrorCode::kIo, "the agent has ended");
  if (!directory_) return {};
  const auto rows = directory_->look();
  if (!rows) return pass_on(rows);
  const std::uint64_t now = boot_now_ns();
  if (now > directory_->heartbeat_ns() + kStaleNs) {
    return fail(ErrorCode::kIo, "the agent stands still");
  }
  for (auto& [incarnation, arena] : arenas_) arena.seen = false;
  for (const DirectoryReader::Row& row : *rows) {
    const auto arena = arenas_.find(row.row.incarnation);
    if (arena != arenas_.end()) arena->second.seen = row.row.state == ZERO_ARENA_LIVE;
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
  arenas_.emplace(incarnation, Arena{new_number(), std::move(*reader), spec_.region, 0, true});
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
      arenas_.emplace(incarnation, Arena{new_number(), std::move(*reader), "", 0, true});
    }
  }
  return {};
}

bool WatchedHost::look_at(Arena& arena, std::int64_t time_ns) {
  if (!arena.reader) return true;
  const auto readings = arena.reader->look();
  if (readings) {
    taker_.readings(spec_, arena.number, arena.reader->header(), *readings, time_ns);
    return true;
  }
  const ErrorCode code = readings.error().code;
  if (code == ErrorCode::kBadInput || code == ErrorCode::kTooBig) {
    taker_.tell(fmt::format("{}: {} is left alone: {}", spec_.name, daemon::plain(arena.name),
                            daemon::plain(readings.error().message, 400)));
    taker_.gap(spec_, last_good_ns_, time_ns, readings.error().message);
    arena.reader.reset();
    return true;
  }
  return false;
}

void WatchedHost::look(std::int64_t time_ns) {
  if (!up_) {
    if (time_ns < next_try_ns_) return;
    connect(time_ns);
    if (!up_) return;
  }
  const bool by_agent = socket_ >= 0;
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
  for (auto at = arenas_.begin(); at != arenas_.end();) {
    const bool good = look_at(at->second, time_ns);
    if (!good && !by_agent) {
      return down(time_ns,
                  fmt::format("cannot be read any more; it was started anew or has ended"));
    }
    // One that has ended was looked at once more, just now.
    if (good && (at->second.seen || !by_agent)) {
      ++at;
      continue;
    }
    taker_.ended(at->second.number);
    at = arenas_.erase(at);
  }
  last_good_ns_ = time_ns;
}

void WatchedHost::end(std::int64_t time_ns) {
  if (!up_ && last_good_ns_ != 0) taker_.gap(spec_, last_good_ns_, time_ns, reason_);
}

}  // namespace greynic::monitor
