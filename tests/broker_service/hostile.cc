// Applications that break the rules of their segment. Each ends with 0 when the broker refused it
// or cut it off, and prints the reason that it was given.

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "attachment.h"
#include "send_packet.h"

using namespace greynic::broker;
using client::Attachment;
using local::Request;
using local::RequestKind;

namespace {

/// Until the broker hangs up; false when it does not within a minute.
bool is_cut_off(Attachment& attachment) {
  for (int i = 0; i < 6000; ++i) {
    attachment.drain_socket();
    if (attachment.dead()) {
      std::printf("%s\n", attachment.reason().c_str());
      return !attachment.reason().empty();
    }
    const timespec moment{0, 10'000'000};
    nanosleep(&moment, nullptr);
  }
  return false;
}

/// Waits for an event of this kind.
local::Event await(Attachment& attachment, local::EventKind kind) {
  for (;;) {
    attachment.drain_socket();
    if (attachment.dead()) return {};
    while (attachment.has_event()) {
      const local::Event event = attachment.next_event();
      attachment.release_events();
      if (event.kind == kind) return event;
    }
  }
}

/// A connection of the application with itself; its number.
std::uint32_t open_connection(Attachment& attachment) {
  const local::Part send = attachment.take(4096), receive = attachment.take(4096);
  (void)attachment.post({.kind = RequestKind::kListen, .port = 999});
  (void)await(attachment, local::EventKind::kListening);
  Request request{.kind = RequestKind::kConnect, .port = 999, .value = 1};
  request.target = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  request.send = send;
  request.receive = receive;
  (void)attachment.post(request);
  const std::uint32_t came = await(attachment, local::EventKind::kIncoming).connection;
  request = {.kind = RequestKind::kAccept, .connection = came};
  request.send = attachment.take(4096);
  request.receive = attachment.take(4096);
  (void)attachment.post(request);
  return await(attachment, local::EventKind::kOpened).connection;
}

void write_garbage(Attachment& attachment) {
  std::uint64_t x = 88172645463325252ULL;
  for (int i = 0; i < 900; ++i) {
    Request request;
    auto* bytes = reinterpret_cast<unsigned char*>(&request);
    for (std::size_t b = 0; b < sizeof request; ++b) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      bytes[b] = static_cast<unsigned char>(x);
    }
    if (!attachment.post(request)) return;
  }
}

void connect_with(Attachment& attachment, local::Part send, local::Part receive) {
  Request request{.kind = RequestKind::kConnect, .port = 999, .value = 1};
  request.target = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  request.send = send;
  request.receive = receive;
  (void)attachment.post(request);
}

local::Places& places_of(Attachment& attachment) {
  return *reinterpret_cast<local::Places*>(attachment.at({0, 0}));
}

int memory_of(std::uint64_t bytes, int seals) {
  const int memory = memfd_create("hostile", MFD_ALLOW_SEALING);
  if (ftruncate(memory, static_cast<off_t>(bytes)) != 0) return -1;
  (void)fcntl(memory, F_ADD_SEALS, seals);
  return memory;
}

/// Sends so many bytes from there, of region 5, which is lent and has 1 MiB.
void send_from(Attachment& attachment, std::uint32_t number, std::uint32_t region,
               std::uint64_t place, std::uint32_t bytes) {
  (void)attachment.post({.kind = RequestKind::kSendFrom,
                         .connection = number,
                         .value = place,
                         .send = {region, bytes}});
}
std::uint32_t lend_and_open(Attachment& attachment) {
  (void)attachment.lend(memory_of(1 << 20, F_SEAL_SHRINK), 5, 1 << 20);
  (void)await(attachment, local::EventKind::kLent);
  return open_connection(attachment);
}

const std::map<std::string, std::function<void(Attachment&)>>& breakers() {
  static const std::map<std::string, std::function<void(Attachment&)>> all = {
      {"garbage", write_garbage},
      {"forged",
       [](Attachment& a) {
         (void)a.post({.kind = RequestKind::kSend, .connection = 0x54321, .value = 10});
       }},
      {"length",
       [](Attachment& a) {
         const std::uint32_t number = open_connection(a);
         (void)a.post({.kind = RequestKind::kSend, .connection = number, .value = 4097});
       }},
      {"backwards",
       [](Attachment& a) {
         const std::uint32_t number = open_connection(a);
         (void)a.post({.kind = RequestKind::kSend, .connection = number, .value = 100});
         (void)a.post({.kind = RequestKind::kSend, .connection = number, .value = 99});
       }},
      {"taken",
       [](Attachment& a) {
         const std::uint32_t number = open_connection(a);
         (void)a.post({.kind = RequestKind::kConsume, .connection = number, .value = 1});
       }},
      {"rings",
       [](Attachment& a) {
         connect_with(a, {1U << 30, 4096}, {60, 4096});
       }},
      {"own_rings",
       [](Attachment& a) {
         connect_with(a, {60, 4096}, {0, 4096});
       }},
      {"request_place",
       [](Attachment& a) {
         places_of(a).request_written.store(1U << 20);
         (void)::send(a.socket(), "", 1, MSG_NOSIGNAL);
       }},
      {"event_place",
       [](Attachment& a) {
         places_of(a).event_read.store(1U << 20);
         for (int i = 0; i < 2000; ++i) {
           if (!a.post({.kind = RequestKind::kListen, .port = 3})) return;
         }
         for (int i = 0; i < 4000; ++i) (void)a.post({.kind = RequestKind::kListen, .port = 3});
       }},
      {"lends_unsealed", [](Attachment& a) { (void)a.lend(memory_of(1 << 20, 0), 5, 1 << 20); }},
      {"lends_less",
       [](Attachment& a) { (void)a.lend(memory_of(1 << 20, F_SEAL_SHRINK), 5, 2 << 20); }},
      {"lends_a_file", [](Attachment& a) { (void)a.lend(open("/dev/null", O_RDWR), 5, 1 << 20); }},
      {"lends_twice",
       [](Attachment& a) {
         for (int i = 0; i < 2; ++i) (void)a.lend(memory_of(4096, F_SEAL_SHRINK), 5, 4096);
       }},
      {"sends_beyond", [](Attachment& a) { send_from(a, lend_and_open(a), 5, 1 << 20, 1); }},
      {"sends_beyond_all", [](Attachment& a) { send_from(a, lend_and_open(a), 5, ~0ULL, 4096); }},
      {"sends_too_much", [](Attachment& a) { send_from(a, lend_and_open(a), 5, 0, 5 << 20); }},
      {"sends_unlent", [](Attachment& a) { send_from(a, lend_and_open(a), 6, 0, 4096); }},
      {"sends_two",
       [](Attachment& a) {
         const std::uint32_t number = lend_and_open(a);
         for (int i = 0; i < 2; ++i) send_from(a, number, 5, 0, 1 << 20);
       }},
      {"takes_back_twice",
       [](Attachment& a) {
         (void)lend_and_open(a);
         for (int i = 0; i < 2; ++i) {
           (void)a.post({.kind = RequestKind::kTakeBack, .connection = 5});
         }
       }},
      {"never_reads",
       [](Attachment& a) {
         for (int i = 0; i < 20000; ++i) {
           if (!a.post({.kind = RequestKind::kListen, .port = 3})) return;
         }
       }},
  };
  return all;
}

/// Whoever closes it last waits for ten minutes: its peer reads nothing, and stays when this program
/// ends.
int lingering_socket() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  auto* const name = reinterpret_cast<sockaddr*>(&at);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), lingering = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, name, bytes) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, name, &bytes) != 0) {
    return -1;
  }
  const pid_t peer = fork();
  if (peer == 0) {
    close(lingering);
    (void)accept(listener, nullptr, nullptr);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    sleep(30);
    _exit(0);
  }
  if (connect(lingering, name, bytes) != 0) return -1;
  const std::string data(65536, 'x');
  while (send(lingering, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const linger long_time{1, 600};
  (void)setsockopt(lingering, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time);
  return lingering;
}

/// Hands over something that is no sealed memory of this length.
int attach_with(const char* path, int descriptor, std::uint64_t bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
  local::Attach wish{.bytes = bytes};
  (void)send_packet(fd, &wish, sizeof wish,
                    descriptor < 0 ? std::vector<int>{} : std::vector{descriptor});
  // The broker is to be the last who closes it; if it was faster, it is this program that waits.
  (void)signal(SIGALRM, [](int) {});
  alarm(2);
  if (descriptor >= 0) close(descriptor);
  alarm(0);
  local::Attached reply;
  if (recv(fd, &reply, sizeof reply, 0) != static_cast<ssize_t>(sizeof reply)) return 1;
  std::printf("%s\n", reply.reason.data());
  return reply.error != 0 && reply.reason[0] != '\0' ? 0 : 1;
}

/// An empty packet with descriptors: the broker takes it for the end of this program.
int say_nothing(const char* path, std::uint64_t bytes) {
  std::string reason;
  const auto attachment = Attachment::open(path, bytes, false, reason);
  if (attachment == nullptr) return 1;
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (!send_packet(attachment->socket(), "", 0, {file, file})) return 1;
  (void)is_cut_off(*attachment);
  return attachment->dead() ? 0 : 1;
}

}  // namespace

int hostile(const char* socket, const std::string& kind) {
  constexpr std::uint64_t kBytes = 1 << 20;
  if (kind == "no_memory") return attach_with(socket, -1, kBytes);
  if (kind == "empty") return say_nothing(socket, kBytes);
  if (kind == "lingers") return attach_with(socket, lingering_socket(), kBytes);
  if (kind == "a_file") return attach_with(socket, open("/dev/null", O_RDWR), kBytes);
  if (kind == "unsealed" || kind == "shorter" || kind == "tiny") {
    const int memory = memfd_create("hostile", MFD_ALLOW_SEALING);
    const std::uint64_t bytes = kind == "tiny" ? 4096 : kBytes;
    if (ftruncate(memory, static_cast<off_t>(bytes)) != 0) return 1;
    if (kind != "unsealed") (void)fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK);
    return attach_with(socket, memory, kind == "shorter" ? 2 * kBytes : bytes);
  }
  if (kind == "huge") return attach_with(socket, memfd_create("hostile", 0), ~0ULL - 4095);
  std::string reason;
  const auto attachment = Attachment::open(socket, kBytes, false, reason);
  const auto found = breakers().find(kind);
  if (attachment == nullptr || found == breakers().end()) return 1;
  found->second(*attachment);
  return is_cut_off(*attachment) ? 0 : 1;
}
