/// What a broker reads of others: requests in a ring, memory that is lent, messages of peers in band
/// and out of band.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "application.h"
#include "core/wire.h"
#include "fuzz.h"
#include "link_stream.h"
#include "lone_core.h"

namespace greynic::fuzz {
namespace {

using namespace broker;

/// A descriptor of so much memory.
int memory_of(std::uint64_t bytes, unsigned seals) {
  const int memory = memfd_create("fuzz", MFD_ALLOW_SEALING);
  claim(memory >= 0 && ftruncate(memory, static_cast<off_t>(bytes)) == 0 &&
            fcntl(memory, F_ADD_SEALS, seals) == 0,
        "memory can be made");
  return memory;
}

/// A program that is attached to a lone core.
class LoneProgram {
 public:
  LoneProgram() {
    claim(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_) == 0, "a pair can be made");
    const int memory = memory_of(kBytes, F_SEAL_SHRINK);
    auto segment = Segment::map(memory, kBytes);
    close(memory);
    claim_sound(segment);
    new (segment->bytes().data()) local::Places();
    app_ = std::make_unique<Application>(ends_[0], -1, 1, 0, std::move(*segment), *lone.core,
                                         quota_, holdings_);
    lone.owner.app = app_.get();
    id_ = *lone.core->attach(app_->segment());
    app_->set_id(id_);
    std::byte* const base = app_->segment().data();
    auto& places = *reinterpret_cast<local::Places*>(base);
    writer_ = {base + local::kRequestsAt, places.request_written, places.request_read};
  }
  ~LoneProgram() {
    lone.core->detach(id_);
    lone.core->remove_peer(1);
    claim(lone.core->connection_count() == 0, "a detached application leaves no connection");
    claim(lone.core->registrations().first == 0, "nor registered memory that it had lent");
    lone.owner.app = nullptr;
    app_.reset();
    claim(holdings_.connections == 0 && holdings_.outstanding_bytes == 0 &&
              holdings_.segment_bytes == 0 && holdings_.applications == 0,
          "what an application held is given back");
    close(ends_[1]);
  }
  LoneProgram(const LoneProgram&) = delete;
  LoneProgram& operator=(const LoneProgram&) = delete;

  [[nodiscard]] bool goes_on() { return app_->broken().empty() && writer_.has_room(); }
  void lend(const local::Lend& wish, int memory) { app_->lend(wish, memory); }
  void ask(const local::Request& request) {
    writer_.write(request);
    (void)app_->take_requests(
        8, [&](AppId, const local::Request& wish) { app_->connect_to(1, wish); });
  }
  void settle() {
    lone.core->flush();
    for (const std::uint32_t region : std::exchange(lone.owner.returned, {})) {
      app_->on_returned(region);
    }
    app_->deliver();
  }

  LoneCore lone{true};

 private:
  static constexpr std::uint64_t kBytes = local::kDataAt + 64 * local::kPage;
  const Quota quota_{.connections = 20, .segment_bytes = 1 << 20, .outstanding_bytes = 1 << 20};
  Holdings holdings_;
  int ends_[2];
  std::unique_ptr<Application> app_;
  AppId id_ = 0;
  local::RequestWriter writer_;
};

/// As much of a text as there is.
template <typename Record>
Record taken_from(std::string_view& bytes) {
  Record record;
  const std::size_t count = std::min(bytes.size(), sizeof record);
  if (count > 0) std::memcpy(static_cast<void*>(&record), bytes.data(), count);
  bytes.remove_prefix(count);
  return record;
}

void read_ring(std::string_view bytes) {
  LoneProgram program;
  while (!bytes.empty() && program.goes_on()) {
    auto request = taken_from<local::Request>(bytes);
    // The peer does not answer, so a request with 0 names the first that there may be.
    if (request.connection == 0) request.connection = 1;
    program.ask(request);
    program.settle();
    program.lone.complete();
    program.settle();
  }
}

/// What happens to a program that lends memory, sends from where it lies and takes it back: a byte
/// says what comes next, and what that takes follows.
enum class Step : char { kAsk = 'a', kLend = 'l', kHear = 'h', kComplete = 'c', kBreak = 'b' };

void read_lending(std::string_view bytes) {
  LoneProgram program;
  LoneCore& lone = program.lone;
  while (!bytes.empty() && program.goes_on() && lone.owner.broken.empty()) {
    const auto step = static_cast<Step>(bytes.front());
    bytes.remove_prefix(1);
    if (step == Step::kLend) {
      const auto wish = taken_from<local::Lend>(bytes);
      const std::uint64_t pages = std::min<std::uint64_t>(wish.bytes / local::kPage, 64);
      const int memory = memory_of(pages * local::kPage, F_SEAL_SHRINK);
      program.lend(wish, memory);
      close(memory);
    } else if (step == Step::kHear) {
      std::array<std::byte, kControlBytes> record;
      encode(taken_from<Control>(bytes), record);
      if (!lone.receive(record, {.qp = lone.device.qp})) break;
    } else if (step == Step::kAsk) {
      program.ask(taken_from<local::Request>(bytes));
    } else {
      // A core of two lanes has made its QPs last.
      const QpNumber last = step == Step::kBreak ? lone.device.qp : 0;
      for (QpNumber qp = last - std::min<QpNumber>(last, 2); qp < last;) {
        lone.core->on_qp_error(++qp);
      }
      lone.complete();
    }
    program.settle();
  }
}

void read_wire(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto mode = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  LoneCore lone((mode & 1) == 0);
  std::vector<std::byte> memory(65536);
  const AppId app = *lone.core->attach(memory);
  (void)lone.core->listen(app, 7);
  VirtualQpn number = 0;
  const bool messages = (mode & 32) != 0;
  const Transport transport = !messages          ? Transport::kRC
                              : (mode & 64) != 0 ? Transport::kUC
                                                 : Transport::kUD;
  const Rings rings{.send = {0, 4096}, .receive = {8192, 4096}, .transport = transport};
  (void)lone.core->connect(app, 1, 7, rings, number);
  lone.answer_calls();
  lone.core->flush();
  lone.complete();
  const auto whole = std::as_bytes(std::span(bytes.data(), bytes.size()));
  if ((mode & 2) != 0) lone.core->on_peer_call(1, whole);
  for (std::size_t at = 0; at < whole.size() && lone.owner.broken.empty(); at += 130) {
    const Completion one{.qp = lone.device.qp - (mode >> 4 & 1),
                         .immediate = (mode & 8) != 0 ? number : 0,
                         .written = (mode & 4) != 0};
    // Receives of a lane over UC or UD were posted last.
    if (!lone.receive(whole.subspan(at, std::min<std::size_t>(whole.size() - at, 128)), one,
                      messages)) {
      break;
    }
    lone.complete();
  }
  lone.core->remove_peer(1);
  claim(lone.core->connection_count() == 0, "a peer that is gone leaves no connection");
}

void read_link(std::string_view bytes) {
  int ends[2];
  claim(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
        "a pair can be made");
  LinkStream stream(ends[0], nullptr);
  (void)!write(ends[1], bytes.data(), std::min<std::size_t>(bytes.size(), 65536));
  close(ends[1]);
  while (stream.move() || stream.end().empty()) {
    while (stream.next()) {
    }
    if (!stream.end().empty()) break;
  }
  while (stream.next()) {
  }
}

template <typename Record>
std::string text_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

std::string ring_seed() {
  local::Request listen{.kind = local::RequestKind::kListen, .port = 7};
  local::Request connect{.kind = local::RequestKind::kConnect, .port = 7, .value = 1};
  connect.send = {70, 4096};
  connect.receive = {72, 4096};
  local::Request send{.kind = local::RequestKind::kSend, .connection = 1, .value = 100};
  local::Request close{.kind = local::RequestKind::kClose, .connection = 1};
  return text_of(listen) + text_of(connect) + text_of(send) + text_of(close);
}

/// Lends, sends a part, hears of it, loses its QPs in the middle, and takes its memory back.
std::string lending_seed() {
  local::Request connect{.kind = local::RequestKind::kConnect, .port = 7, .value = 1};
  connect.send = {70, 4096};
  connect.receive = {72, 4096};
  local::Request from{.kind = local::RequestKind::kSendFrom, .connection = 1};
  from.send = {9, 8192};
  const local::Request back{.kind = local::RequestKind::kTakeBack, .connection = 9};
  const local::Request close{.kind = local::RequestKind::kClose, .connection = 1};
  const Control accept{
      .kind = Control::Kind::kAccept, .to = 1, .from = 5, .ring = {4096, 4096, 3}, .exposed = {}};
  const auto consumed = [](std::uint64_t bytes) {
    return 'h' + text_of(Control{.kind = Control::Kind::kConsumed, .to = 1, .value = bytes});
  };
  return 'a' + text_of(connect) + "ch" + text_of(accept) + 'l' +
         text_of(local::Lend{.region = 9, .bytes = 16384}) + 'a' + text_of(from) + 'b' + 'c' +
         consumed(4096) + 'a' + text_of(back) + 'c' + consumed(8192) + 'c' + 'a' + text_of(close) +
         'c';
}

std::string control_seed(char mode, Control::Kind kind) {
  std::array<std::byte, kControlBytes> bytes;
  encode(Control{.kind = kind,
                 .port = 7,
                 .to = 1,
                 .from = 5,
                 .value = 1,
                 .ring = {4096, 4096, 3},
                 .exposed = {}},
         bytes);
  return mode + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string call_seed() {
  LaneCall call;
  call.lane_count = 4;
  call.epoch = 1;
  const auto bytes = encode(call);
  return '\2' + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::vector<Target> broker_targets() {
  std::vector<std::string> wire = {
      call_seed(), std::string("\11 a piece", 9),
      std::string("\x28 a message that is long enough for UD to carry", 48)};
  for (const auto kind : {Control::Kind::kOpen, Control::Kind::kAccept, Control::Kind::kRefuse,
                          Control::Kind::kReset, Control::Kind::kOffer, Control::Kind::kCredit}) {
    wire.push_back(control_seed('\0', kind));
  }
  return {{"broker_ring", {ring_seed()}, read_ring},
          {"broker_lending", {lending_seed()}, read_lending},
          {"broker_wire", wire, read_wire},
          {"broker_link", {std::string("\3\5\0hello\4\0\0", 11)}, read_link}};
}

}  // namespace greynic::fuzz
