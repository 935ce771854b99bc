// A program under `greynic broker run` that tells the relay what no preloaded library says. It ends
// with 0 when the relay refused all of it, kept no descriptor, and still listens for others.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "send_packet.h"
#include "sockets/preload/names.h"

using greynic::broker::sockets::kRelayVariable;
using greynic::broker::sockets::Wish;

namespace {

struct Lie {
  const char* name;
  Wish wish;
  std::size_t bytes;
  std::size_t descriptors;
};

Wish wish_of(Wish::Kind kind) {
  Wish wish;
  wish.kind = kind;
  wish.port = 18951;
  wish.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  return wish;
}

std::vector<Lie> lies() {
  const Wish listen = wish_of(Wish::Kind::kListen), connect = wish_of(Wish::Kind::kConnect);
  const Wish neither = wish_of(static_cast<Wish::Kind>(7));
  constexpr std::size_t kWhole = sizeof(Wish);
  return {{"a listen with a descriptor", listen, kWhole, 1},
          {"a listen with two", listen, kWhole, 2},
          {"a listen with fifty", listen, kWhole, 50},
          {"a connect with none", connect, kWhole, 0},
          {"a connect with two", connect, kWhole, 2},
          {"a connect with fifty", connect, kWhole, 50},
          {"half a connect", connect, kWhole / 2, 1},
          {"neither of the two", neither, kWhole, 1},
          {"nothing, with a descriptor", connect, 0, 1},
          {"nothing, with two", connect, 0, 2}};
}

/// What the relay answers, or -1 when it hangs up.
int answer_to(const Lie& lie, int file) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string relay = std::getenv(kRelayVariable);
  std::copy(relay.begin(), relay.end(), name.sun_path + 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + relay.size());
  int error = -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), bytes) != 0 ||
      !send_packet(fd, &lie.wish, lie.bytes, std::vector<int>(lie.descriptors, file)) ||
      recv(fd, &error, sizeof error, 0) != static_cast<ssize_t>(sizeof error)) {
    error = -1;
  }
  close(fd);
  return error;
}

std::ptrdiff_t descriptors_of(const std::string& process) {
  return std::distance(std::filesystem::directory_iterator("/proc/" + process + "/fd"), {});
}

}  // namespace

int relay_lies() {
  const char* const relay = std::getenv(kRelayVariable);
  if (relay == nullptr) return 2;
  const std::string process = std::strchr(relay, '/') + 1;
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  // The place of a port stays: it is taken before what is counted.
  const Lie truth{"a listen", wish_of(Wish::Kind::kListen), sizeof(Wish), 0};
  int wrong = answer_to(truth, -1) == 0 ? 0 : 1;
  for (const Lie& lie : lies()) {
    const std::ptrdiff_t before = descriptors_of(process);
    int error = 0;
    for (int i = 0; i < 20; ++i) error = answer_to(lie, file);
    std::ptrdiff_t kept = 0;
    // The relay may answer before it closes; a busy machine lets it wait.
    for (int i = 0; i < 3000 && (kept = descriptors_of(process) - before) > 0; ++i) usleep(10000);
    std::printf("%s: error %d, %td descriptors kept\n", lie.name, error, kept);
    if (error != EPROTO || kept > 0) ++wrong;
  }
  if (answer_to(truth, -1) != 0) ++wrong;
  return wrong;
}
