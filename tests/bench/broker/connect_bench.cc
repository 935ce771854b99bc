// What a warm connect costs two brokers themselves: from the ring of the application that asks to the
// other's ring, its acceptance, and back; and what a message of 64 bytes does. The device in between hands bytes over at once, so that no
// RNIC's time, and none of a lab's, is in it. Nothing is asserted.
//
// usage: broker_connect_bench [connects]

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

#include "application.h"
#include "greynic/broker/core.h"
#include "greynic/core/check.h"
#include "idle_device.h"

namespace greynic::broker {
namespace {

using Clock = std::chrono::steady_clock;

/// Takes a SEND to the far device's receives while it is posted.
class HandedOver final : public IdleDevice {
 public:
  QpAddress address_of(QpNumber qp) const override {
    QpAddress address{};
    std::memcpy(address.data(), &qp, sizeof qp);
    return address;
  }
  Result<void> connect(QpNumber qp, const QpAddress& peer) override {
    std::memcpy(&far_of_[qp % far_of_.size()], peer.data(), sizeof(QpNumber));
    return {};
  }
  std::size_t post(QpNumber qp, std::span<const Work> list) override {
    for (const Work& work : list) {
      GREYNIC_CHECK(work.verb == Verb::kSend && !far->receives_.empty());
      const auto [id, buffer] = far->receives_.front();
      far->receives_.pop_front();
      Completion one{.id = id, .qp = far_of_[qp % far_of_.size()], .is_receive = true};
      for (std::size_t p = 0; p < work.piece_count; ++p) {
        std::memcpy(reinterpret_cast<std::byte*>(buffer.address) + one.bytes,
                    reinterpret_cast<const std::byte*>(work.pieces[p].address),
                    work.pieces[p].bytes);
        one.bytes += work.pieces[p].bytes;
      }
      one.has_immediate = work.has_immediate;
      one.immediate = work.immediate;
      far->done.push_back(one);
      if (work.signaled) done.push_back({.id = work.id, .qp = qp});
    }
    return list.size();
  }
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece> buffers,
                            QpNumber) override {
    for (std::size_t i = 0; i < ids.size(); ++i) receives_.emplace_back(ids[i], buffers[i]);
    return ids.size();
  }
  HandedOver* far = nullptr;
  std::vector<Completion> done;

 private:
  std::array<QpNumber, 16> far_of_{};
  std::deque<std::pair<std::uint64_t, Piece>> receives_;
};

/// A broker with one application, whose ring is written and read here.
class Side final : public Owner {
 public:
  Side() {
    core = std::move(*Core::create(device, *this, {}));
    constexpr std::uint64_t kBytes = local::kDataAt + 64 * local::kPage;
    const int memory = memfd_create("bench", MFD_ALLOW_SEALING);
    GREYNIC_CHECK(ftruncate(memory, kBytes) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    auto segment = Segment::map(memory, kBytes);
    close(memory);
    auto& places = *new (segment->bytes().data()) local::Places();
    std::byte* base = segment->bytes().data();
    int ends[2];
    GREYNIC_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    app = std::make_unique<Application>(ends[0], -1, 1, 0, std::move(*segment), *core, quota_,
                                        holdings_);
    app->set_id(*core->attach(app->segment()));
    requests = {base + local::kRequestsAt, places.request_written, places.request_read};
    events = {base + local::kEventsAt, places.event_written, places.event_read};
  }
  void ask(const local::Request& request) {
    GREYNIC_CHECK(requests.has_room());
    requests.write(request);
  }
  /// Reads the ring and posts; how long it took.
  double serve() {
    const auto begin = Clock::now();
    (void)app->take_requests(256,
                             [&](AppId, const local::Request& wish) { app->connect_to(1, wish); });
    core->flush();
    return ns_since(begin);
  }
  /// Takes what has come and tells the application; how long it took.
  double hear() {
    const auto begin = Clock::now();
    core->on_completions(std::exchange(device.done, {}));
    core->flush();
    app->deliver();
    return ns_since(begin);
  }
  local::Event next() {
    GREYNIC_CHECK(events.waiting() > 0);
    const local::Event event = events.read();
    events.release();
    return event;
  }
  void drain() {
    while (events.waiting() > 0) (void)events.read();
    events.release();
  }

  void on_incoming(AppId, std::uint16_t port, VirtualQpn number) override {
    app->on_incoming(port, number, Transport::kRC, {});
  }
  void on_open(AppId, VirtualQpn number) override { app->on_open(number); }
  void on_received(AppId, VirtualQpn number, std::uint64_t total) override {
    app->on_received(number, total);
  }
  void on_sent(AppId, VirtualQpn number, std::uint64_t total) override {
    app->on_sent(number, total);
  }
  void on_transferred(AppId, VirtualQpn, std::uint64_t) override {}
  void on_finished(AppId, VirtualQpn number) override { app->on_finished(number); }
  void on_closed(AppId, VirtualQpn number, int error) override { app->on_closed(number, error); }
  void on_returned(AppId, std::uint32_t) override {}
  void on_detached(AppId) override {}
  void call_peer(PeerId, std::vector<std::byte> bytes) override { calls.push_back(bytes); }
  void on_peer_broken(PeerId, const char*) override { GREYNIC_CHECK(false); }

  HandedOver device;
  std::unique_ptr<Core> core;
  std::unique_ptr<Application> app;
  local::RequestWriter requests;
  local::EventReader events;
  std::vector<std::vector<std::byte>> calls;

 private:
  static double ns_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  Quota quota_;
  Holdings holdings_;
};

void meet(Side& a, Side& b) {
  a.device.far = &b.device;
  b.device.far = &a.device;
  GREYNIC_CHECK(a.core->add_peer(1) && b.core->add_peer(1));
  while (!a.calls.empty() || !b.calls.empty()) {
    for (const auto& call : std::exchange(a.calls, {})) b.core->on_peer_call(1, call);
    for (const auto& call : std::exchange(b.calls, {})) a.core->on_peer_call(1, call);
  }
}

void settle(Side& a, Side& b) {
  while (!a.device.done.empty() || !b.device.done.empty()) {
    a.hear();
    b.hear();
  }
}

void print(const char* what, std::vector<double>& ns) {
  std::sort(ns.begin(), ns.end());
  fmt::print("{:50}  p50 {:6.2f} us  p99 {:6.2f} us\n", what, ns[ns.size() / 2] * 1e-3,
             ns[ns.size() * 99 / 100] * 1e-3);
}

}  // namespace
}  // namespace greynic::broker

int main(int argc, char** argv) {
  using namespace greynic::broker;
  const int connects = argc > 1 ? std::atoi(argv[1]) : 10000;
  Side a, b;
  meet(a, b);
  b.ask({.kind = local::RequestKind::kListen, .port = 7});
  b.serve();
  settle(a, b);
  a.hear();
  b.hear();
  a.drain();
  b.drain();
  std::vector<double> asked, heard, accepted, opened, all, posted, delivered;
  const local::Part send{local::kDataAt / local::kPage, 4096}, receive{send.page + 1, 4096};
  for (int i = 0; i < connects; ++i) {
    a.ask({.kind = local::RequestKind::kConnect,
           .port = 7,
           .value = 1,
           .send = send,
           .receive = receive});
    asked.push_back(a.serve());
    heard.push_back(b.hear());
    const std::uint32_t there = b.next().connection;
    b.ask({.kind = local::RequestKind::kAccept,
           .connection = there,
           .send = send,
           .receive = receive});
    accepted.push_back(b.serve());
    opened.push_back(a.hear());
    const std::uint32_t here = a.next().connection;
    all.push_back(asked.back() + heard.back() + accepted.back() + opened.back());
    a.ask({.kind = local::RequestKind::kClose, .connection = here});
    b.ask({.kind = local::RequestKind::kClose, .connection = there});
    a.serve();
    b.serve();
    settle(a, b);
    a.drain();
    b.drain();
  }
  a.ask({.kind = local::RequestKind::kConnect,
         .port = 7,
         .value = 1,
         .send = send,
         .receive = receive});
  a.serve();
  b.hear();
  const std::uint32_t there = b.next().connection;
  b.ask(
      {.kind = local::RequestKind::kAccept, .connection = there, .send = send, .receive = receive});
  b.serve();
  a.hear();
  const std::uint32_t here = a.next().connection;
  for (std::uint64_t total = 64; total <= 64U * static_cast<std::uint64_t>(connects); total += 64) {
    a.ask({.kind = local::RequestKind::kSend, .connection = here, .value = total});
    posted.push_back(a.serve());
    delivered.push_back(b.hear());
    b.ask({.kind = local::RequestKind::kConsume, .connection = there, .value = total});
    b.serve();
    settle(a, b);
    a.drain();
    b.drain();
  }
  a.ask({.kind = local::RequestKind::kClose, .connection = here});
  b.ask({.kind = local::RequestKind::kClose, .connection = there});
  a.serve();
  b.serve();
  settle(a, b);
  print("the request is read, until it is posted", asked);
  print("the far broker hears of it, until its ring has it", heard);
  print("the acceptance is read, until it is posted", accepted);
  print("the answer is heard, until the ring has it", opened);
  print("all four", all);
  print("64 bytes: the request is read, until it is posted", posted);
  print("64 bytes: they come, until the far ring says so", delivered);
  fmt::print("{} connections are left\n", a.core->connection_count() + b.core->connection_count());
}
