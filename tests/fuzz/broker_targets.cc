/// What a broker reads of others: requests in a ring, messages of peers in band and out of band.

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

namespace greynic::fuzz {
namespace {

using namespace broker;

/// Takes all that is posted and completes nothing, but for what a target makes up.
class SilentDevice final : public Device {
 public:
  bool has_immediate() const override { return immediate; }
  Result<Memory> register_memory(std::span<std::byte> memory, Access) override {
    return Memory{reinterpret_cast<std::uint64_t>(memory.data()), ++key_, key_};
  }
  void deregister(const Memory&) override {}
  std::uint32_t mtu_bytes() const override { return 4096; }
  Result<QpNumber> create_qp(Transport, std::uint32_t, std::uint32_t) override { return ++qp; }
  QpAddress address_of(QpNumber) const override { return {}; }
  Result<void> connect(QpNumber, const QpAddress&) override { return {}; }
  void to_error(QpNumber) override {}
  void destroy(QpNumber) override {}
  std::size_t post(QpNumber at, std::span<const Work> list) override {
    for (const Work& work : list) done.push_back({.id = work.id, .qp = at});
    return list.size();
  }
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece> buffers,
                            QpNumber) override {
    for (std::size_t i = 0; i < ids.size(); ++i) receives.emplace_back(ids[i], buffers[i]);
    return ids.size();
  }
  bool immediate = true;
  QpNumber qp = 0;
  std::vector<Completion> done;
  std::vector<std::pair<std::uint64_t, Piece>> receives;

 private:
  std::uint32_t key_ = 0;
};

class SilentOwner final : public Owner {
 public:
  void on_incoming(AppId, std::uint16_t port, VirtualQpn number) override {
    if (app != nullptr) app->on_incoming(port, number, Transport::kRC, {});
  }
  void on_open(AppId, VirtualQpn number) override {
    if (app != nullptr) app->on_open(number);
  }
  void on_received(AppId, VirtualQpn number, std::uint64_t total) override {
    if (app != nullptr) app->on_received(number, total);
  }
  void on_sent(AppId, VirtualQpn number, std::uint64_t total) override {
    if (app != nullptr) app->on_sent(number, total);
  }
  void on_transferred(AppId, VirtualQpn, std::uint64_t) override {}
  void on_finished(AppId, VirtualQpn number) override {
    if (app != nullptr) app->on_finished(number);
  }
  void on_closed(AppId, VirtualQpn number, int error) override {
    if (app != nullptr) app->on_closed(number, error);
  }
  void on_returned(AppId, std::uint32_t) override {}
  void on_detached(AppId) override {}
  void call_peer(PeerId, std::vector<std::byte> bytes) override { calls.push_back(bytes); }
  void on_peer_broken(PeerId, const char* reason) override { broken = reason; }
  Application* app = nullptr;
  std::vector<std::vector<std::byte>> calls;
  std::string broken;
};

/// A core whose one peer answers each call with the same words, so that its lanes come up.
struct LoneCore {
  SilentDevice device;
  SilentOwner owner;
  std::unique_ptr<Core> core;
  explicit LoneCore(bool immediate) {
    device.immediate = immediate;
    CoreOptions options;
    options.receive_credits = 32;
    core = std::move(*Core::create(device, owner, options));
    (void)core->add_peer(1);
    answer_calls();
    core->flush();
  }
  void answer_calls() {
    while (!owner.calls.empty()) {
      for (const auto& call : std::exchange(owner.calls, {})) core->on_peer_call(1, call);
    }
  }
  void complete() {
    while (!device.done.empty()) {
      const auto list = std::exchange(device.done, {});
      core->on_completions(list);
      core->flush();
    }
  }
};

void read_ring(std::string_view bytes) {
  constexpr std::uint64_t kBytes = local::kDataAt + 64 * local::kPage;
  LoneCore lone(true);
  const int memory = memfd_create("fuzz", MFD_ALLOW_SEALING);
  claim(ftruncate(memory, kBytes) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
        "a segment can be made");
  auto segment = Segment::map(memory, kBytes);
  close(memory);
  claim_sound(segment);
  new (segment->bytes().data()) local::Places();
  int ends[2];
  claim(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a pair can be made");
  const Quota quota{.connections = 20, .outstanding_bytes = 1 << 20};
  Holdings holdings;
  {
    Application app(ends[0], 1, 0, std::move(*segment), *lone.core, quota, holdings);
    lone.owner.app = &app;
    const AppId id = *lone.core->attach(app.segment());
    app.set_id(id);
    auto& places = *reinterpret_cast<local::Places*>(app.segment().data());
    local::RequestWriter writer(app.segment().data() + local::kRequestsAt, places.request_written,
                                places.request_read);
    for (; !bytes.empty() && app.broken().empty() && writer.has_room();) {
      local::Request request;
      const std::size_t count = std::min(bytes.size(), sizeof request);
      std::memcpy(static_cast<void*>(&request), bytes.data(), count);
      bytes.remove_prefix(count);
      // The peer does not answer, so a request with 0 names the first that there may be.
      if (request.connection == 0) request.connection = 1;
      writer.write(request);
      (void)app.take_requests(8,
                              [&](AppId, const local::Request& wish) { app.connect_to(1, wish); });
      lone.core->flush();
      lone.complete();
      app.deliver();
    }
    lone.core->detach(id);
    lone.core->remove_peer(1);
    claim(lone.core->connection_count() == 0, "a detached application leaves no connection");
    lone.owner.app = nullptr;
  }
  claim(holdings.connections == 0 && holdings.outstanding_bytes == 0 &&
            holdings.segment_bytes == 0 && holdings.applications == 0,
        "what an application held is given back");
  close(ends[1]);
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
    if (lone.device.receives.empty()) break;
    // Those of a lane over UC or UD were posted last.
    const auto next = messages ? lone.device.receives.end() - 1 : lone.device.receives.begin();
    const auto [id, piece] = *next;
    lone.device.receives.erase(next);
    const std::size_t count = std::min<std::size_t>(whole.size() - at, 128);
    std::memcpy(reinterpret_cast<void*>(piece.address), whole.data() + at, count);
    Completion one{.id = id, .qp = lone.device.qp - (mode >> 4 & 1), .is_receive = true};
    one.bytes = static_cast<std::uint32_t>(count);
    one.has_immediate = lone.device.immediate;
    one.immediate = (mode & 8) != 0 ? number : 0;
    one.written = (mode & 4) != 0;
    lone.core->on_completions(std::span(&one, 1));
    lone.core->flush();
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
          {"broker_wire", wire, read_wire},
          {"broker_link", {std::string("\3\5\0hello\4\0\0", 11)}, read_link}};
}

}  // namespace greynic::fuzz
