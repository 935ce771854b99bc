// Who sleeps is woken: a client's own attachment and a broker's application, each in a thread, that
// sleep after every record.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "application.h"
#include "attachment.h"
#include "attachments.h"
#include "greynic/broker/core.h"
#include "greynic_broker.h"
#include "idle_device.h"

namespace greynic::broker {
namespace {

using client::Attachment;

class NoOwner final : public Owner {
 public:
  void on_incoming(AppId, std::uint16_t, VirtualQpn) override {}
  void on_open(AppId, VirtualQpn) override {}
  void on_received(AppId, VirtualQpn, std::uint64_t) override {}
  void on_sent(AppId, VirtualQpn, std::uint64_t) override {}
  void on_transferred(AppId, VirtualQpn, std::uint64_t) override {}
  void on_finished(AppId, VirtualQpn) override {}
  void on_closed(AppId, VirtualQpn, int) override {}
  void on_returned(AppId, std::uint32_t) override {}
  void on_detached(AppId) override {}
  void call_peer(PeerId, std::vector<std::byte>) override {}
  void on_peer_broken(PeerId, const char*) override {}
};

/// A broker's side of one attachment, which has answered it.
class Host {
 public:
  /// `attaches` comes to the broker's socket, in a thread of its own.
  explicit Host(const std::function<void(const std::string& path)>& attaches) {
    const std::string path = "/tmp/greynic_wakes_" + std::to_string(getpid());
    const auto door = std::move(*Attachments::open(path));
    std::thread opening([&] { attaches(path); });
    int visitor = -1;
    while (!app_) {
      pollfd knocks[2] = {{door->listener(), POLLIN, 0}, {visitor, POLLIN, 0}};
      (void)poll(knocks, 2, -1);
      door->take([&](int socket) { visitor = socket; });
      if (visitor < 0) continue;
      door->read(visitor, [&](const Visitor& who, const local::Attach& wish, int memory) {
        doorbell_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        app_ = std::make_unique<Application>(who.socket, doorbell_, who.pid, who.uid,
                                             std::move(*Segment::map(memory, wish.bytes)), *core_,
                                             quota_, holdings_);
        app_->set_id(*core_->attach(app_->segment()));
        answer(who.socket, 0, "", {}, doorbell_);
      });
    }
    opening.join();
    server_ = std::thread([this] { serve(); });
  }
  /// False: it was asleep for half a minute.
  bool end() {
    over_ = true;
    (void)eventfd_write(doorbell_, 1);
    server_.join();
    return !lost_;
  }

 private:
  void serve();

  const Quota quota_{};
  Holdings holdings_;
  IdleDevice device_;  ///< nothing is ever posted here
  NoOwner owner_;
  std::unique_ptr<Core> core_ = std::move(*Core::create(device_, owner_, {}));
  std::unique_ptr<Application> app_;
  int doorbell_ = -1;
  std::atomic<bool> over_ = false;
  bool lost_ = false;
  std::thread server_;
};

constexpr int kPatienceS = 30;

/// So that each side falls asleep at all points of what the other does.
void dawdle(std::uint32_t& state) {
  state = state * 1664525 + 1013904223;
  for (std::uint32_t left = state >> 22; left > 0; --left) __builtin_ia32_pause();
}

/// As the broker's thread: reads requests and answers, and sleeps whenever none waits.
void Host::serve() {
  const int bells = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  (void)epoll_ctl(bells, EPOLL_CTL_ADD, doorbell_, &event);
  std::uint32_t state = 1;
  while (!over_) {
    (void)app_->take_requests(256, {});
    app_->deliver();
    dawdle(state);
    if (!app_->prepare_to_sleep()) continue;
    if (epoll_wait(bells, &event, 1, kPatienceS * 1000) == 1) continue;
    lost_ = true;
    break;
  }
  close(bells);
}

/// As a program that waits for an answer: at its word, or at its socket. False: nobody woke it.
bool wait_for_event(Attachment& at, bool on_word, std::uint32_t& state) {
  while (!at.has_event()) {
    dawdle(state);
    if (!at.prepare_to_sleep(at.event_place(), local::Sleep::kThroughSent, on_word)) break;
    if (!on_word) {
      pollfd entry{at.socket(), POLLIN, 0};
      if (poll(&entry, 1, kPatienceS * 1000) != 1) return false;
      at.drain_socket(1);
    } else {
      int left = 2 * kPatienceS;
      while (left > 0 && !at.sleep_on_word(std::chrono::milliseconds(500))) --left;
      if (left == 0) return false;
    }
  }
  at.stay_awake();
  return true;
}

// Claim:  no wake is lost, whether a program sleeps on its word or at its socket, and whenever the
//         broker falls asleep.
// Oracle: each answer comes without any timeout. With the look at the ring after `say_asleep` taken
//         out, on either side, this test fails.
// Method: 30,000 requests that are answered at once; both sides wait a random moment after they have
//         looked and before they say that they sleep.
TEST(BrokerWakes, AreNeverLost) {
  std::shared_ptr<Attachment> client;
  Host host([&](const std::string& path) {
    std::string reason;
    client = Attachment::open(path, 1 << 20, false, reason);
  });
  ASSERT_NE(client, nullptr);
  int answered = 0;
  std::uint32_t state = 2;
  for (; answered < 30000; ++answered) {
    // The port is taken from the second time on, which is an answer as well.
    if (!client->post({.kind = local::RequestKind::kListen, .port = 7})) break;
    if (!wait_for_event(*client, answered % 4 != 0, state)) break;
    (void)client->next_event();
    client->release_events();
  }
  EXPECT_EQ(answered, 30000) << "the program was not woken";
  EXPECT_TRUE(host.end()) << "the broker was not woken";
}

// Claim:  a thread that waits hears of its answer also when another thread has taken it out of the ring.
// Oracle: all answers come; a thread that misses one waits for ever, since nothing else comes.
// Method: one thread asks, another takes events all the time. With a look at what the ring holds now, in
//         place of what came since, this test hangs.
TEST(BrokerWakes, ReachWhoseEventsOthersTake) {
  greynic_broker* broker = nullptr;
  Host host([&](const std::string& path) { broker = greynic_broker_open(path.c_str(), nullptr); });
  ASSERT_NE(broker, nullptr);
  greynic_broker_listener* const idle = greynic_broker_listen(broker, 1, 0);
  ASSERT_NE(idle, nullptr);
  std::atomic<bool> over = false;
  std::thread taker([&] {
    while (!over) (void)greynic_broker_accept(idle, GREYNIC_BROKER_NONBLOCK);
  });
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    greynic_broker_listener* one = greynic_broker_listen(broker, 2, 0);
    if (one == nullptr) ++refused;
    greynic_broker_unlisten(one);
  }
  over = true;
  taker.join();
  EXPECT_EQ(refused, 0);
  greynic_broker_close(broker);
  EXPECT_TRUE(host.end());
}

}  // namespace
}  // namespace greynic::broker
