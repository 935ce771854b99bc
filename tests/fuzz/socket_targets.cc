/// What comes to daemons over sockets. Each target has one daemon of this process; whatever an input
/// does to it, a good caller is answered after it.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "directory.h"
#include "fuzz.h"
#include "greynic/monitor/agent.h"
#include "greynic_zero.h"
#include "link.h"
#ifdef GREYNIC_FUZZ_LAB
#include "run/broker.h"
#endif
#ifdef GREYNIC_FUZZ_HTTP
#include "greynic/http/server.h"
#endif

namespace greynic::fuzz {
namespace {

constexpr int kPatienceMs = 5000;

bool readable(int socket) {
  pollfd asked{socket, POLLIN, 0};
  return ::poll(&asked, 1, kPatienceMs) > 0;
}

/// A memfd of these bytes.
int memory_file(std::string_view bytes, bool sealed) {
  const int file = ::memfd_create("greynic.zero.fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  claim(file >= 0 && ::write(file, bytes.data(), bytes.size()) >= 0, "there is memory");
  if (sealed) (void)::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return file;
}

std::string example_arena() {
  struct Pair {
    std::uint64_t a, b;
  };
  static const zero_field fields[] = {{"a", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "", "", ""},
                                      {"b", ZERO_U64, ZERO_COUNTER, 8, 1, 0, "", "", ""}};
  static const zero_schema schema = {"pair", "", fields, 2, sizeof(Pair), ZERO_PLAIN};
  const zero_arena_options options = {ZERO_TIDAL, 16 << 10, 4, 0, "fuzz"};
  zero_arena* const arena = zero_arena_create(&options);
  claim(arena != nullptr, "an arena can be made");
  void* const row = zero_arena_malloc(arena, sizeof(Pair));
  claim(zero_arena_publish(arena, row, &schema, "x=\"1\"") == 0, "a row can be published");
  std::string bytes(static_cast<const char*>(zero_arena_memory(arena)), 16 << 10);
  zero_arena_destroy(arena);
  return bytes;
}

/// An agent of `greynic zero` in a thread of its own.
class HostAgent {
 public:
  HostAgent() {
    // Programs of this process must not find another agent.
    monitor::AgentOptions options;
    options.socket = folder() + "/agent";
    options.linger = std::chrono::milliseconds(0);
    auto agent = monitor::Agent::start(options);
    claim(agent.has_value(), "an agent starts");
    agent_ = std::move(*agent);
    thread_ = std::thread([this] { agent_->serve(stop_); });
  }
  ~HostAgent() {
    stop_ = true;
    thread_.join();
  }
  HostAgent(const HostAgent&) = delete;
  HostAgent& operator=(const HostAgent&) = delete;

 private:
  std::unique_ptr<monitor::Agent> agent_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Says one thing to the agent, and waits until it has answered or hung up. The first byte: a file
/// comes along (1), it is sealed (2), the message names the arena that it is (4), it is cut (8).
void speak_to_agent(std::string_view text) {
  if (text.size() < 1 + sizeof(zero_link_message)) return;
  const int how = text[0];
  zero_link_message message;
  std::memcpy(&message, text.data() + 1, sizeof message);
  const std::string_view arena = text.substr(1 + sizeof message);
  if ((how & 4) != 0 && arena.size() >= sizeof(zero_header)) {
    zero_header header;
    std::memcpy(&header, arena.data(), sizeof header);
    message.incarnation = header.incarnation;
    message.metric_class = header.metric_class;
  }
  const int socket = monitor::connect_to(folder() + "/agent");
  claim(socket >= 0, "the agent takes a connection");
  const int file = (how & 1) != 0 ? memory_file(arena, (how & 2) != 0) : -1;
  if ((how & 8) != 0) {
    (void)::send(socket, &message, text.size() % sizeof message, MSG_NOSIGNAL);
  } else {
    monitor::send_message(socket, message, file);
  }
  if (file >= 0) ::close(file);
  claim(readable(socket), "the agent answers, or hangs up");
  bool gone = false;
  while (const auto answer = monitor::receive_message(socket, gone)) {
    if (answer->file >= 0) ::close(answer->file);
    claim(answer->message.kind == ZERO_LINK_ANSWER || answer->message.kind == ZERO_LINK_SHOWN,
          "an agent answers or shows");
  }
  ::close(socket);
}

Target zero_link() {
  const auto said = [](char how, zero_link_kind kind, const std::string& arena) {
    const zero_link_message message = monitor::make_message(kind, "fuzz");
    return how + std::string(reinterpret_cast<const char*>(&message), sizeof message) + arena;
  };
  const std::string arena = example_arena();
  return {"zero_link",
          {said(7, ZERO_LINK_ARENA, arena), said(3, ZERO_LINK_ARENA, arena),
           said(0, ZERO_LINK_COLLECT, ""), said(7, ZERO_LINK_COLLECT, arena),
           said(8, ZERO_LINK_SHOWN, "")},
          [](std::string_view text) {
            static const HostAgent agent;
            speak_to_agent(text);
          }};
}

/// What an agent shows a collector.
Target zero_directory() {
  auto directory = monitor::Directory::create();
  claim(directory.has_value(), "a directory can be made");
  (void)(*directory)->add({0, 17, 4096, 0, 0, ZERO_TIDAL, 1, 0, ZERO_ARENA_LIVE, 0, 0});
  std::string bytes(sizeof(zero_header) + 64 * sizeof(zero_directory_row), '\0');
  claim(::pread((*directory)->file(), bytes.data(), bytes.size(), 0) > 0, "it can be read");
  return {"zero_directory", {bytes}, [](std::string_view text) {
            // As long as it says, so that what lies behind its rows is reached.
            std::string whole(text);
            whole.resize(sizeof(zero_header) +
                         std::size_t{monitor::Directory::kRows} * sizeof(zero_directory_row));
            auto reader = monitor::DirectoryReader::open(memory_file(whole, true));
            claim_sound(reader);
            if (!reader) return;
            const auto rows = reader->look();
            claim_sound(rows);
            if (!rows) return;
            for (const auto& row : *rows) {
              claim(row.row.incarnation != 0 && row.row.metric_class < ZERO_CLASSES,
                    "rows are whole");
            }
          }};
}

#ifdef GREYNIC_FUZZ_LAB
/// A lab in which three processes say what the input says: 8 bytes for each message, and what else
/// there is for the messages' other fields. Whatever it is, a lab-run is welcome after it, and the
/// lab ends when all have left.
void visit_lab(std::string_view text) {
  const std::string name = "greynic-fuzz-" + std::to_string(::getpid());
  lab::Broker broker(lab::listen_at(name));
  std::array<int, 3> clients{};
  for (int& client : clients) client = lab::connect_to(name);
  std::thread serving([&] { broker.serve(-1); });
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
  }
  const int good = lab::connect_to(name);
  lab::Message hello{.kind = lab::MessageKind::kHost};
  hello.host = 100;
  lab::Message reply;
  lab::Descriptors none;
  claim(lab::send_message(good, hello) && readable(good), "a lab answers");
  claim(lab::receive_message(good, reply, none) && reply.kind == lab::MessageKind::kWelcome,
        "a lab-run is welcome");
  for (const int client : clients) ::close(client);
  ::close(good);
  serving.join();
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
#endif

#ifdef GREYNIC_FUZZ_HTTP
class Web {
 public:
  Web() {
    auto server = http::Server::open(":0");
    claim(server.has_value(), "a server opens");
    server_ = std::move(*server);
    server_->metrics("/metrics", [] { return outlets::OpenMetrics(); });
    server_->get("/echo", [](const http::Request& request) {
      return http::Answer{.body = std::string(request.value("a")), .type = "text/plain"};
    });
    server_->events("/events", std::chrono::milliseconds(1), [] { return std::string("e\nf"); });
    server_->start();
    const std::string& at = server_->address();
    port_ = static_cast<std::uint16_t>(std::stoi(at.substr(at.rfind(':') + 1)));
  }

  /// The first bytes of the answer.
  [[nodiscard]] std::string ask(std::string_view request) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Without it a million connections use up all ports.
    const linger at_once{1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    claim(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "it can be reached");
    (void)::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    std::string answer(4096, '\0');
    claim(readable(socket), "it answers, or hangs up");
    const ssize_t got = ::recv(socket, answer.data(), answer.size(), 0);
    ::close(socket);
    answer.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return answer;
  }

 private:
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
};

Target http_request() {
  const std::string host = "Host: localhost\r\n";
  return {
      "http_request",
      {"GET /metrics HTTP/1.1\r\n" + host + "Accept: application/openmetrics-text\r\n\r\n",
       "HEAD /echo?a=%31&b HTTP/1.1\r\n" + host + "Range: bytes=0-3,5-\r\n\r\n",
       "GET /events HTTP/1.1\r\n" + host + "Accept-Encoding: gzip, br\r\n\r\n",
       "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\na=1GET / HTTP/1.0\r\n\r\n",
       "PUT /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
       "POST /echo HTTP/1.1\r\n" + host +
           "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 20\r\n\r\n"
           "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"},
      [host](std::string_view text) {
        static const Web web;
        static std::uint64_t count = 0;
        const std::string answer = web.ask(text);
        claim(answer.empty() || answer.starts_with("HTTP/1."), "an answer is of HTTP");
        if (++count % 256 != 0) return;
        claim(web.ask("GET /metrics HTTP/1.1\r\n" + host + "\r\n").starts_with("HTTP/1.1 200"),
              "a good caller is answered");
      }};
}
#endif

}  // namespace

std::vector<Target> socket_targets() {
  std::vector<Target> targets = {zero_link(), zero_directory()};
#ifdef GREYNIC_FUZZ_LAB
  targets.push_back(lab_session());
#endif
#ifdef GREYNIC_FUZZ_HTTP
  targets.push_back(http_request());
#endif
  return targets;
}

}  // namespace greynic::fuzz
