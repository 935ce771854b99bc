#include "application.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "greynic/daemon/hang_up.h"

namespace greynic::broker {
namespace {

using local::Event;
using local::EventKind;
using local::Request;
using local::RequestKind;

/// Answers that an application has not read. Each is to a request of its own, so one that asks on
/// and never reads breaks the rules.
constexpr std::size_t kMostAnswers = 8192;

Extent extent_of(const local::Part& part) {
  return {std::uint64_t{part.page} * local::kPage, part.bytes};
}

}  // namespace

Result<Segment> Segment::map(int fd, std::uint64_t bytes, std::uint64_t least) {
  const auto refuse = [](std::string why) { return fail(ErrorCode::kBadInput, std::move(why)); };
  // First, for it asks the kernel alone: another file system may never answer.
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return refuse("the descriptor is no memory; hand over a memfd");
  }
  if ((seals & F_SEAL_SHRINK) == 0) {
    return refuse("the segment may shrink; seal the memfd with F_SEAL_SHRINK");
  }
  // Its owner could punch a hole that no page of the pool can fill any more.
  struct statfs system {};
  if (fstatfs(fd, &system) != 0 || system.f_type == HUGETLBFS_MAGIC) {
    return refuse("the memory is of a hugetlb pool; ask for huge pages by madvise");
  }
  if (bytes != static_cast<std::uint64_t>(status.st_size) || bytes % local::kPage != 0 ||
      bytes < least) {
    return refuse(
        fmt::format("the segment has {} bytes, not the {} that were named, or is no "
                    "multiple of {} from {} on",
                    status.st_size, bytes, local::kPage, least));
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return refuse(fmt::format("the segment cannot be mapped: {}", std::strerror(errno)));
  }
  return Segment({static_cast<std::byte*>(memory), bytes});
}

Segment::~Segment() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Application::Application(int socket, int doorbell, pid_t pid, uid_t uid, Segment segment,
                         Core& core, const Quota& quota, Holdings& holdings)
    : socket_(socket),
      doorbell_(doorbell),
      pid_(pid),
      uid_(uid),
      segment_(std::move(segment)),
      core_(core),
      quota_(quota),
      holdings_(holdings) {
  std::byte* base = segment_.bytes().data();
  local::Places& at = places();
  requests_ = {base + local::kRequestsAt, at.request_written, at.request_read};
  events_ = {base + local::kEventsAt, at.event_written, at.event_read};
  ++holdings_.applications;
  holdings_.segment_bytes += segment_.bytes().size();
}

Application::~Application() {
  hang_up();
  --holdings_.applications;
  holdings_.segment_bytes -= segment_.bytes().size() + lent_bytes_;
  holdings_.connections -= connections_.size();
  for (const auto& [number, entry] : connections_) holdings_.outstanding_bytes -= entry.send_bytes;
}

void Application::hang_up() {
  daemon::hang_up(std::exchange(socket_, -1));
  if (doorbell_ >= 0) close(std::exchange(doorbell_, -1));
}

local::Places& Application::places() const {
  return *reinterpret_cast<local::Places*>(segment_.bytes().data());
}

std::size_t Application::take_requests(std::size_t most, const Connect& connect) {
  const std::uint32_t waiting = requests_.waiting();
  if (waiting == 0) return 0;
  if (waiting > local::kRequests) {
    broken_ = "its place in the ring of requests cannot be";
    return 0;
  }
  const std::size_t count = std::min<std::size_t>(waiting, most);
  // To register takes long: whoever needs it has that one turn, and then others have theirs.
  has_registered_ = false;
  for (std::size_t i = 0; i < count && broken_.empty() && !has_registered_; ++i) {
    ++requests_taken_;
    handle(requests_.read(), connect);
  }
  requests_.release();
  while (!late_.empty() && requests_taken_ - late_.front().first > local::kRequests) {
    late_set_.erase(late_.front().second);
    late_.pop_front();
  }
  if (answers_.size() > kMostAnswers) broken_ = "it asks and does not read the answers";
  return count;
}

Application::Entry* Application::entry_of(VirtualQpn number) {
  const auto found = connections_.find(number);
  return found == connections_.end() ? nullptr : &found->second;
}

void Application::check(int error, const char* what) {
  // EBADF: the connection has ended and the application does not know yet.
  if (error != 0 && error != EBADF) broken_ = what;
}

void Application::handle(const Request& request, const Connect& connect) {
  const bool of_connection =
      request.kind >= RequestKind::kAccept && request.kind != RequestKind::kTakeBack;
  if (of_connection && !connections_.contains(request.connection)) {
    if (!late_set_.contains(request.connection)) broken_ = "it names a connection it never had";
    return;
  }
  switch (request.kind) {
    case RequestKind::kListen: {
      const int error = core_.listen(id_, request.port);
      answers_.push_back({.kind = EventKind::kListening, .port = request.port, .error = error});
      return;
    }
    case RequestKind::kUnlisten:
      return void(core_.unlisten(id_, request.port));
    case RequestKind::kConnect:
      if (!rings_of(request)) return void(broken_ = "the rings it names are not in its segment");
      if (const int error = afford(request)) return fail_connect(request.value, error);
      return connect(id_, request);
    case RequestKind::kAccept:
      return accept(request);
    case RequestKind::kSend:
      return check(core_.send(id_, request.connection, request.value),
                   "it sends more than its ring holds, or less than before");
    case RequestKind::kSendFrom:
      return send_from(request);
    case RequestKind::kTakeBack:
      return check(core_.take_back(id_, request.connection), "it takes back what it has not lent");
    case RequestKind::kConsume:
      return check(core_.consume(id_, request.connection, request.value),
                   "it has taken more than came, or less than before");
    case RequestKind::kFinish:
      return check(core_.finish(id_, request.connection), "it ends what was not accepted");
    case RequestKind::kClose:
      return check(core_.close(id_, request.connection), "it closes what it may not");
  }
  broken_ = "its request is none";
}

std::optional<Rings> Application::rings_of(const Request& request) const {
  Rings rings{.send = extent_of(request.send), .receive = extent_of(request.receive)};
  if (request.rule > static_cast<std::uint8_t>(VerbRule::kRead)) return std::nullopt;
  rings.rule = static_cast<VerbRule>(request.rule);
  if (request.transport > static_cast<std::uint8_t>(Transport::kUD)) return std::nullopt;
  rings.transport = static_cast<Transport>(request.transport);
  for (const Extent& extent : {rings.send, rings.receive}) {
    // The core holds them against the segment's length too; its first pages are the rings' own.
    if (extent.offset < local::kDataAt || extent.bytes == 0 ||
        extent.offset + extent.bytes > segment_.bytes().size()) {
      return std::nullopt;
    }
  }
  return rings;
}

int Application::afford(const Request& request) const {
  if (holdings_.connections >= quota_.connections) return EMFILE;
  return holdings_.outstanding_bytes + request.send.bytes > quota_.outstanding_bytes ? ENOBUFS : 0;
}

void Application::accept(const Request& request) {
  const auto rings = rings_of(request);
  if (!rings) return void(broken_ = "the rings it names are not in its segment");
  if (holdings_.outstanding_bytes + request.send.bytes > quota_.outstanding_bytes) {
    (void)core_.close(id_, request.connection);
    return;
  }
  Entry& entry = connections_.at(request.connection);
  const int error = core_.accept(id_, request.connection, *rings);
  check(error, "it accepts what was accepted");
  if (error != 0) return;
  entry.send_bytes = request.send.bytes;
  holdings_.outstanding_bytes += entry.send_bytes;
}

void Application::send_from(const Request& request) {
  bool made = false;
  if (request.send.bytes > local::kMostSentFrom) {
    return void(broken_ = "it sends more from where it lies than may be registered at a time");
  }
  const int error = core_.send_from(id_, request.connection, request.send.page,
                                    {request.value, request.send.bytes}, made);
  if (error != 0 && error != ENOMEM) {
    return check(error, "it sends from where it may not, or before earlier bytes are through");
  }
  Entry& entry = connections_.at(request.connection);
  entry.held_due = true;
  entry.held_error = error;
  entry.held_made = made;
  has_registered_ = made;
  note(request.connection, entry);
}

void Application::lend(const local::Lend& wish, int memory) {
  if (wish.region == 0 || lent_.contains(wish.region)) {
    broken_ = "it lends under a number that is in use";
    return;
  }
  int error = 0;
  if (lent_.size() >= local::kMostRegions) error = EMFILE;
  const std::uint64_t held = std::min(holdings_.segment_bytes, quota_.segment_bytes);
  if (wish.bytes > quota_.segment_bytes - held) error = EDQUOT;
  if (error == 0) {
    auto mapped = Segment::map(memory, wish.bytes, local::kPage);
    if (!mapped) {
      broken_ = "lending: " + mapped.error().message;
      return;
    }
    error = core_.lend(id_, wish.region, mapped->bytes());
    if (error == 0) {
      holdings_.segment_bytes += wish.bytes;
      lent_bytes_ += wish.bytes;
      lent_.emplace(wish.region, std::move(*mapped));
    }
  }
  answers_.push_back({.kind = EventKind::kLent, .connection = wish.region, .error = error});
}

void Application::on_returned(std::uint32_t region) {
  const auto found = lent_.find(region);
  if (found == lent_.end()) return;
  holdings_.segment_bytes -= found->second.bytes().size();
  lent_bytes_ -= found->second.bytes().size();
  lent_.erase(found);
  answers_.push_back({.kind = EventKind::kReturned, .connection = region});
}

void Application::connect_to(PeerId peer, const Request& request) {
  if (const int error = afford(request)) return fail_connect(request.value, error);
  VirtualQpn number = 0;
  const int error = core_.connect(id_, peer, request.port, *rings_of(request), number);
  if (error != 0) return fail_connect(request.value, error);
  Entry& entry = connections_[number];
  entry.cookie = request.value;
  entry.send_bytes = request.send.bytes;
  ++holdings_.connections;
  holdings_.outstanding_bytes += entry.send_bytes;
}

void Application::fail_connect(std::uint64_t cookie, int error) {
  answers_.push_back({.kind = EventKind::kFailed, .value = cookie, .error = error});
}

void Application::note(VirtualQpn number, Entry& entry) {
  if (entry.queued) return;
  entry.queued = true;
  told_.push_back(number);
}

void Application::on_incoming(std::uint16_t port, VirtualQpn number, Transport transport,
                              const std::array<std::uint8_t, 16>& from) {
  Entry& entry = connections_[number];
  ++holdings_.connections;
  entry.port = port;
  entry.transport = transport;
  entry.from = from;
  entry.incoming = true;
  note(number, entry);
}

void Application::on_open(VirtualQpn number) {
  if (Entry* entry = entry_of(number)) {
    entry->opened = true;
    note(number, *entry);
  }
}

void Application::on_received(VirtualQpn number, std::uint64_t total) {
  if (Entry* entry = entry_of(number)) {
    entry->received = total;
    entry->got_more = true;
    note(number, *entry);
  }
}

void Application::on_sent(VirtualQpn number, std::uint64_t total) {
  if (Entry* entry = entry_of(number)) {
    entry->sent = total;
    entry->sent_more = true;
    note(number, *entry);
  }
}

void Application::on_finished(VirtualQpn number) {
  if (Entry* entry = entry_of(number)) {
    entry->finished = true;
    note(number, *entry);
  }
}

void Application::on_closed(VirtualQpn number, int error) {
  if (Entry* entry = entry_of(number)) {
    entry->closed = true;
    entry->error = error;
    note(number, *entry);
  }
}

void Application::forget(VirtualQpn number) {
  const Entry& entry = connections_.at(number);
  --holdings_.connections;
  holdings_.outstanding_bytes -= entry.send_bytes;
  connections_.erase(number);
  late_.emplace_back(requests_taken_, number);
  late_set_.insert(number);
}

/// False when the ring is full: what is left is told later.
bool Application::write_events(VirtualQpn number, Entry& entry, bool& only_sent) {
  const auto tell = [&](bool& due, EventKind kind, std::uint64_t value, int error = 0) {
    if (!due) return true;
    if (!events_.has_room() || events_.broken()) return false;
    Event event{.kind = kind,
                .transport = static_cast<std::uint8_t>(entry.transport),
                .port = entry.port,
                .connection = number};
    event.value = value;
    event.error = error;
    if (kind == EventKind::kIncoming) {
      std::memcpy(reinterpret_cast<std::byte*>(&event) + local::kAddressAt, entry.from.data(),
                  entry.from.size());
    }
    events_.write(event);
    only_sent = only_sent && kind == EventKind::kSent;
    due = false;
    return true;
  };
  // One that fails before it is open has a cookie and no number for its application.
  const bool failed = entry.closed && entry.cookie != 0;
  if (failed && !entry.opened) {
    if (!tell(entry.closed, EventKind::kFailed, entry.cookie, entry.error)) return false;
    forget(number);
    return true;
  }
  const bool opens = entry.opened;
  if (!tell(entry.incoming, EventKind::kIncoming, 0) ||
      !tell(entry.opened, EventKind::kOpened, entry.cookie)) {
    return false;
  }
  if (opens) entry.cookie = 0;
  const bool over = entry.closed;
  if (!tell(entry.held_due, EventKind::kHeld, entry.held_made ? 1 : 0, entry.held_error) ||
      !tell(entry.got_more, EventKind::kReceived, entry.received) ||
      !tell(entry.sent_more, EventKind::kSent, entry.sent) ||
      !tell(entry.finished, EventKind::kFinished, 0) ||
      !tell(entry.closed, EventKind::kClosed, 0, entry.error)) {
    return false;
  }
  if (over) forget(number);
  return true;
}

void Application::deliver() {
  if (socket_ < 0 || !broken_.empty()) return;
  bool wrote = false, only_sent = true;
  while (!answers_.empty() && events_.has_room() && !events_.broken()) {
    events_.write(answers_.front());
    answers_.pop_front();
    wrote = true;
    only_sent = false;
  }
  while (!told_.empty() && answers_.empty()) {
    const VirtualQpn number = told_.front();
    wrote = true;
    if (!write_events(number, connections_.at(number), only_sent)) break;
    if (Entry* entry = entry_of(number)) entry->queued = false;
    told_.pop_front();
  }
  if (events_.broken()) broken_ = "its place in the ring of events cannot be";
  // A full ring must be read, whatever lies in it.
  if (has_more()) only_sent = false;
  if (wrote) wake(local::must_wake(places().application_sleeps, only_sent));
}

void Application::wake(std::uint32_t slept) {
  if (slept == 0) return;
  ++wakes_;
  // Who is woken often asks at once, and need not wake the broker for it.
  places().broker_sleeps.store(0, std::memory_order_relaxed);
  if ((slept & local::kOnWord) != 0) {
    (void)syscall(SYS_futex, &places().application_sleeps, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  } else {
    const char byte = 0;
    // A full socket wakes it as well.
    (void)::send(socket_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

bool Application::prepare_to_sleep() {
  local::say_asleep(places().broker_sleeps);
  return requests_.waiting() == 0;
}

}  // namespace greynic::broker
