#include "greynic/daemon/door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "listening.h"

namespace greynic::daemon {
namespace {

using std::chrono::milliseconds;

/// A connected client; -1 when it could not connect.
struct Client {
  explicit Client(const std::string& address) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  Client(Client&& other) noexcept : fd(std::exchange(other.fd, -1)), connected(other.connected) {}
  ~Client() {
    if (fd >= 0) close(fd);
  }
  void say(char word) const { (void)!send(fd, &word, 1, MSG_NOSIGNAL); }
  /// What comes within ten seconds; 0 for the end of the connection, '?' for nothing.
  [[nodiscard]] char hear() const {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 10000) <= 0) return '?';
    char word = 0;
    return recv(fd, &word, 1, 0) == 1 ? word : '\0';
  }
  [[nodiscard]] std::string name() const {
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length);
    return text_of(own, true);
  }
  int fd;
  bool connected = false;
};

/// A service behind a door: whoever says 'p' has proven itself and hears 'y'; others hear nothing.
class Service {
 public:
  explicit Service(const DoorLimits& limits) {
    const std::lock_guard lock(opening_);
    auto opened = Door::open("127.0.0.1:0", limits, [this](int socket) { take(socket); });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    door = std::move(*opened);
  }
  ~Service() {
    door->close();
    for (const auto& [peer, socket] : sockets_) close(socket);
  }
  [[nodiscard]] std::string address() const { return door->address(); }
  /// Bytes of that client that lie at the served end; 0 when it has not been handed on.
  [[nodiscard]] std::size_t unread(const std::string& peer) const {
    const std::lock_guard lock(opening_);
    const auto found = sockets_.find(peer);
    int bytes = 0;
    if (found != sockets_.end()) EXPECT_EQ(ioctl(found->second, FIONREAD, &bytes), 0);
    return static_cast<std::size_t>(bytes);
  }
  std::unique_ptr<Door> door;

 private:
  void take(int socket) {
    const std::lock_guard lock(opening_);  // `door` is ours before anybody is taken
    const std::string peer = peer_of(socket);
    sockets_.emplace(peer, socket);
    char word = 0;
    if (recv(socket, &word, 1, 0) == 1 && word == 'p' && door->proven(peer)) {
      (void)!send(socket, "y", 1, MSG_NOSIGNAL);
    }
  }
  mutable std::mutex opening_;
  std::multimap<std::string, int> sockets_;
};

/// Waits until `holds`, a generous while.
template <typename Holds>
bool soon(const Holds& holds) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

/// Bytes of one letter.
void say_much(const Client& client, std::size_t bytes) {
  const std::string text(bytes, 'p');
  EXPECT_EQ(send(client.fd, text.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

// Claim:  who sends more from one proof to the next than it may is cut, and so is who sent most when all
//         together send too much; who proves itself in between may go on.
TEST(Door, CutsWhoSaysTooMuchBetweenProofs) {
  const Service service({.bytes_a_proof = 6'000, .bytes_a_proof_of_all = 9'000});
  const Client proven(service.address()), other(service.address()), talker(service.address());
  std::size_t said = 0;
  for (int i = 0; i < 5; ++i) {
    say_much(proven, 5'000);
    said += 5'000;
    if (i == 0) EXPECT_EQ(proven.hear(), 'y');
    // The first byte was read.
    ASSERT_TRUE(soon([&] { return service.unread(proven.name()) == said - 1; }));
    ASSERT_TRUE(soon([&] { return service.door->proven(proven.name()); }));
  }
  EXPECT_TRUE(service.door->is_open(proven.name()));
  say_much(talker, 1);
  EXPECT_EQ(talker.hear(), 'y');
  say_much(talker, 7'000);
  EXPECT_TRUE(soon([&] { return !service.door->is_open(talker.name()); }));
  say_much(other, 1);
  EXPECT_EQ(other.hear(), 'y');
  say_much(other, 5'000);
  say_much(proven, 4'500);
  EXPECT_TRUE(soon([&] { return !service.door->is_open(other.name()); }));
  EXPECT_TRUE(service.door->is_open(proven.name()));
}

// Claim:  no byte more than the limit reaches who serves the connection, however fast it is sent and
//         whoever else keeps the door busy.
// Oracle: the kernel's count of what lies unread at the served end.
TEST(Door, LetsNoMoreThroughThanMayBeSaid) {
  const Service service({.bytes_a_proof = 50'000, .bytes_a_proof_of_all = 70'000});
  std::vector<Client> flooders;
  for (int i = 0; i < 4; ++i) flooders.emplace_back(service.address());
  for (const Client& flooder : flooders) flooder.say('x');
  std::size_t most = 0;
  const auto look = [&] {
    std::size_t all = 0;
    for (const Client& flooder : flooders) {
      const std::size_t unread = service.unread(flooder.name());
      EXPECT_LE(unread, 50'000U);
      all += unread;
    }
    most = std::max(most, all);
  };
  const std::string text(30'000, 'x');
  for (int round = 0; round < 200; ++round) {
    for (const Client& flooder : flooders) {
      (void)!send(flooder.fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    look();
  }
  EXPECT_TRUE(soon([&] {
    look();
    return service.door->counts().strangers == 0;
  }));
  EXPECT_EQ(service.door->counts().cut, 4U);
  EXPECT_GT(most, 20'000U) << "nothing came through";
}

// Claim:  what passes through the door is whole, both ways, also where either end reads late; and each end
//         hears when the other has gone, after all that was said before.
TEST(Door, PassesOnWhatIsSaidWhole) {
  constexpr std::size_t kBytes = 4 << 20;
  std::string question(kBytes, '\0'), heard, answer;
  for (std::size_t i = 0; i < kBytes; ++i) question[i] = static_cast<char>(i * 31 + i / 251);
  std::thread server;
  const auto serve = [&](int socket) {
    server = std::thread([&, socket] {
      fcntl(socket, F_SETFL, 0);  // waits
      heard.resize(kBytes);
      EXPECT_EQ(recv(socket, heard.data(), kBytes, MSG_WAITALL), ssize_t{kBytes});
      for (std::size_t done = 0; done < kBytes;) {
        const ssize_t sent = send(socket, heard.data() + done, kBytes - done, MSG_NOSIGNAL);
        ASSERT_GT(sent, 0);
        done += static_cast<std::size_t>(sent);
      }
      close(socket);
    });
  };
  auto door = Door::open("127.0.0.1:0", {.bytes_a_proof = 2 * kBytes}, serve);
  ASSERT_TRUE(door) << door.error().message;
  const Client client((*door)->address());
  for (std::size_t done = 0; done < kBytes;) {
    const ssize_t sent = send(client.fd, question.data() + done, kBytes - done, MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    done += static_cast<std::size_t>(sent);
  }
  std::this_thread::sleep_for(milliseconds(100));  // the answer fills both queues
  answer.resize(kBytes);
  EXPECT_EQ(recv(client.fd, answer.data(), kBytes, MSG_WAITALL), ssize_t{kBytes});
  EXPECT_EQ(client.hear(), '\0');
  server.join();
  EXPECT_EQ(heard, question);
  EXPECT_EQ(answer, question);
  EXPECT_TRUE(soon([&] { return (*door)->counts().strangers == 0; }));
  EXPECT_EQ((*door)->counts().cut, 0U);
}

// Claim:  however many connections idle, a caller is served, the descriptors held are few, and
//         those that idle are cut in the end.
// Oracle: the caller's own answer, and the count of descriptors at the door.
TEST(Door, ServesAmongThousandsWhoIdle) {
  constexpr std::size_t kIdle = 5000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < kIdle + 1000) {
    GTEST_SKIP() << "the hard limit of open files is below " << kIdle + 1000
                 << "; raise it (ulimit -Hn, LimitNOFILE=)";
  }
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const Service service(
      {.waiting = 100, .waiting_of_one = 60, .prove_within = milliseconds(60000)});
  std::vector<Client> idle;
  for (std::size_t i = 0; i < kIdle; ++i) {
    idle.emplace_back(service.address());
    ASSERT_TRUE(idle.back().connected) << i;
    if (i % 1000 != 0) continue;
    const Client caller(service.address());
    caller.say('p');
    EXPECT_EQ(caller.hear(), 'y') << "among " << i;
  }
  EXPECT_TRUE(soon([&] { return service.door->counts().accepted == kIdle + 5; }));
  const Door::Counts counts = service.door->counts();
  EXPECT_LE(counts.silent, 60U);
  EXPECT_GE(counts.cut, kIdle - 60);
}

// Claim:  strangers who say something, but prove nothing, do not keep a caller out either.
TEST(Door, ServesAmongStrangers) {
  const Service service({.waiting = 40, .waiting_of_one = 20, .prove_within = milliseconds(60000)});
  std::vector<Client> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.emplace_back(service.address());
    strangers.back().say('x');
  }
  const Client caller(service.address());
  caller.say('p');
  EXPECT_EQ(caller.hear(), 'y');
  EXPECT_TRUE(soon([&] { return service.door->counts().strangers <= 20; }));
  EXPECT_TRUE(soon([&] { return service.door->counts().accepted == 301; }));
}

// Claim:  who does not prove itself in time is cut, silent or not; a guest is not.
TEST(Door, CutsWhoProvesNothing) {
  const Service service({.prove_within = milliseconds(300)});
  const Client silent(service.address());
  const Client stranger(service.address());
  stranger.say('x');
  const Client guest(service.address());
  guest.say('p');
  EXPECT_EQ(guest.hear(), 'y');
  EXPECT_EQ(silent.hear(), '\0');
  EXPECT_EQ(stranger.hear(), '\0');
  EXPECT_TRUE(service.door->is_open(guest.name()));
  EXPECT_FALSE(service.door->is_open(stranger.name()));
  EXPECT_EQ(service.door->counts().guests, 1U);
}

// Claim:  guests are bounded, in all and of one address; one that goes makes room.
TEST(Door, BoundsItsGuests) {
  const Service service({.guests = 3, .guests_of_one = 2});
  std::vector<Client> guests;
  for (int i = 0; i < 2; ++i) {
    guests.emplace_back(service.address());
    guests.back().say('p');
    EXPECT_EQ(guests.back().hear(), 'y');
  }
  const Client more(service.address());
  more.say('p');
  EXPECT_EQ(more.hear(), '\0');
  const std::string gone = guests.back().name();
  guests.pop_back();
  EXPECT_TRUE(soon([&] { return !service.door->is_open(gone); }));
  const Client next(service.address());
  next.say('p');
  EXPECT_EQ(next.hear(), 'y');
  service.door->cut(next.name());
  EXPECT_EQ(next.hear(), '\0');
  EXPECT_FALSE(service.door->is_open(next.name()));
}

// Claim:  a daemon without descriptors left is not deaf: the next caller is served.
// Method: this process may open 40 more; a child makes 300 connections and then is the caller.
TEST(Door, IsNotDeafWithoutDescriptors) {
  int answers[2];
  ASSERT_EQ(pipe(answers), 0);
  const Service service(
      {.waiting = 256, .waiting_of_one = 256, .prove_within = milliseconds(60000)});
  const std::string address = service.address();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<Client> idle;
    for (int i = 0; i < 300; ++i) idle.emplace_back(address);
    char word = '?';
    for (int tries = 0; tries < 20 && word != 'y'; ++tries) {
      const Client caller(address);
      caller.say('p');
      word = caller.hear();
    }
    (void)!write(answers[1], &word, 1);
    _exit(0);
  }
  const int lowest = dup(0);
  const rlimit low{static_cast<rlim_t>(lowest + 40), before.rlim_max};
  close(lowest);
  setrlimit(RLIMIT_NOFILE, &low);
  char word = '?';
  EXPECT_EQ(read(answers[0], &word, 1), 1);
  setrlimit(RLIMIT_NOFILE, &before);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(word, 'y');
  EXPECT_GT(service.door->counts().cut, 200U) << "there were descriptors enough";
  close(answers[0]);
  close(answers[1]);
}

// Claim:  what is no address is told so, and a port that is taken too.
TEST(Door, ListensAtAddresses) {
  for (const char* good : {"127.0.0.1:0", "[::1]:80", "lab7:18600", "[::]:65535"}) {
    EXPECT_TRUE(is_listen_address(good)) << good;
  }
  for (const char* bad : {"", ":", "foo", ":80", "lab7:", "lab7:http", "lab7:70000", "::1:80",
                          "[]:1", "lab7:+1", "lab7:-1", "lab7: 1"}) {
    EXPECT_FALSE(is_listen_address(bad)) << bad;
    const auto door = Door::open(bad, {}, [](int) {});
    ASSERT_FALSE(door) << bad;
    EXPECT_EQ(door.error().code, ErrorCode::kBadInput);
  }
  const Service first({});
  const auto second = Door::open(first.address(), {}, [](int) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

// Claim:  a far end has one name, whichever way it came.
TEST(Addresses, OfOneHostAreOne) {
  sockaddr_storage storage{};
  auto& six = reinterpret_cast<sockaddr_in6&>(storage);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(41234);
  inet_pton(AF_INET6, "::ffff:10.0.0.7", &six.sin6_addr);
  EXPECT_EQ(text_of(storage, true), "10.0.0.7:41234");
  EXPECT_EQ(text_of(storage, false), "10.0.0.7");
  inet_pton(AF_INET6, "fe80::7", &six.sin6_addr);
  six.sin6_scope_id = 2;
  EXPECT_EQ(text_of(storage, true), "[fe80::7]:41234");
}

}  // namespace
}  // namespace greynic::daemon
