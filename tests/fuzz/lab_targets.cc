/// What programs of a lab say to the process that holds it, and to each other.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "fuzz.h"
#include "protocol/ring.h"
#include "run/broker.h"

namespace greynic::fuzz {
namespace {

/// A program that is connected to a lab's broker; the lab's end is the broker's.
int visitor(lab::Broker& broker) {
  int ends[2];
  claim(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
        "there are sockets");
  broker.welcome(ends[0]);
  return ends[1];
}

/// A lab in which three processes say what the input says: 8 bytes for each message, and what else
/// there is for the messages' other fields. Whatever it is, a lab-run is welcome after it, and the
/// lab ends when all have left. The broker is called like a function, behind each message or, where
/// the message says so, behind several.
void visit_lab(std::string_view text) {
  using std::chrono::milliseconds;
  lab::Broker broker(-1);
  std::array<int, 3> clients{};
  for (int& client : clients) client = visitor(broker);
  constexpr std::size_t kStep = 16;
  for (std::size_t at = 0; at + kStep <= text.size() && at < 64 * kStep; at += kStep) {
    std::array<std::uint8_t, kStep> say{};
    std::memcpy(say.data(), text.data() + at, kStep);
    const int client = clients[say[0] % clients.size()];
    lab::Message message;
    message.kind = static_cast<lab::MessageKind>(say[1]);
    message.slot = say[2];
    message.host = say[3] % 4;
    message.port = say[4];
    message.port_space = say[5] % 3;
    message.to_address = (say[6] & 1) != 0 ? lab::address_of(say[7], say[8] % 4) : say[6];
    message.private_bytes = say[9];
    message.card.link_gbps = say[10] % 2;
    std::memcpy(&message.error, &say[12], sizeof message.error);
    if ((say[11] & 7) == 7) {
      (void)::send(client, &message, say[9], MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      const int file = (say[11] & 8) != 0 ? STDERR_FILENO : -1;
      lab::send_message(client, message, file, (say[11] & 16) != 0 ? file : -1);
    }
    if ((say[11] & 32) == 0) (void)broker.serve_once(-1, milliseconds(0));
  }
  const int good = visitor(broker);
  lab::Message hello{.kind = lab::MessageKind::kHost};
  hello.host = 100;
  lab::Message reply;
  lab::Descriptors none;
  claim(lab::send_message(good, hello), "a lab listens");
  claim(broker.serve_once(-1, milliseconds(0)), "a lab goes on while anybody is there");
  claim(lab::receive_message(good, reply, none) && reply.kind == lab::MessageKind::kWelcome,
        "a lab-run is welcome");
  for (const int client : clients) ::close(client);
  ::close(good);
  // At most what each of them said and nobody has heard yet, and that it is gone.
  int turns = 0;
  while (broker.serve_once(-1, milliseconds(0))) {
    claim(++turns < 100, "a lab ends when all have left");
  }
}

Target lab_session() {
  using Kind = lab::MessageKind;
  const auto say = [](int client, Kind kind, int slot = 0, int port = 0, int flags = 0) {
    std::string step(16, '\0');
    step[0] = static_cast<char>(client);
    step[1] = static_cast<char>(kind);
    step[2] = static_cast<char>(slot);
    step[4] = static_cast<char>(port);
    step[11] = static_cast<char>(flags);
    return step;
  };
  return {"lab_session",
          {say(0, Kind::kHost) + say(1, Kind::kHello, 0, 0, 8) + say(2, Kind::kHello, 0, 0, 8) +
               say(1, Kind::kBindPort, 0, 7) + say(1, Kind::kListenPort, 0, 7) +
               say(2, Kind::kConnect, 0, 7) + say(2, Kind::kOpenRing, 1, 0, 8) +
               say(1, Kind::kReply, 2) + say(1, Kind::kFreePort, 0, 7),
           say(0, Kind::kHost) + say(1, Kind::kListens) + say(1, Kind::kHello) +
               say(1, Kind::kHello, 0, 0, 8) + say(2, Kind::kConnect, 0, 9)},
          &visit_lab};
}

/// A queue in memory that another program wrote: where it says its end is, then packets. Whatever it
/// holds, reading it ends, and stays within it.
Target lab_ring() {
  static const auto ring = std::make_unique<lab::Ring>();
  std::string seed(8, '\0');
  for (const std::uint32_t payload : {0U, 100U, 5000U}) {
    lab::Packet* const packet = ring->reserve(payload);
    packet->kind = lab::PacketKind::kSend;
    ring->publish(*packet);
  }
  const std::uint64_t end = ring->tail;
  std::memcpy(seed.data(), &end, sizeof end);
  seed.append(reinterpret_cast<const char*>(ring->buffer), end);
  return {"lab_ring", {seed}, [](std::string_view text) {
            std::uint64_t tail = 0;
            if (text.size() < sizeof tail) return;
            std::memcpy(&tail, text.data(), sizeof tail);
            text.remove_prefix(sizeof tail);
            std::memcpy(ring->buffer, text.data(), std::min<std::size_t>(text.size(), tail));
            // From behind the middle some packets go round the end.
            const std::uint64_t begin = (tail & 1) != 0 ? lab::Ring::kBytes - 128 : 0;
            ring->head = begin;
            ring->tail = begin + tail;
            for (std::uint64_t count = 0; const lab::Packet* const packet = ring->front();) {
              const std::byte* const behind = packet->data() + packet->payload;
              claim(behind <= ring->buffer + lab::Ring::kBytes, "a packet lies in its ring");
              ring->pop(*packet);
              claim(++count <= lab::Ring::kBytes / 64, "a ring comes to its end");
            }
            claim(ring->empty(), "what is read is gone");
          }};
}

}  // namespace

std::vector<Target> lab_targets() { return {lab_session(), lab_ring()}; }

}  // namespace greynic::fuzz
