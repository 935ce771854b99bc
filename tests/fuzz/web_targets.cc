/// What comes over HTTP: questions to our pages, and answers of a database.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "fuzz.h"
#include "greynic/core/text.h"
#include "greynic/http/influx_sender.h"
#include "pages.h"

namespace greynic::fuzz {
namespace {

/// Closed at once: a million connections would use up all ports.
void close_at_once(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

/// What a port of loopback says to who is connected, without its port: a connection is a pair of
/// sockets, and what serves it is called like a function.
class Web {
 public:
  Web() {
    pages_.keep_to_loopback();
    pages_.get("/metrics", [](const http::Request& request) {
      return http::Answer{.body = request.wants_open_metrics ? "# EOF\n" : "",
                          .type = "text/plain"};
    });
    pages_.get("/echo", [](const http::Request& request) {
      return http::Answer{.body = std::string(request.value("a")), .type = "text/plain"};
    });
    // It would go on for as long as its caller listens: this one leaves at the third event.
    pages_.events("/events", std::chrono::milliseconds(0), [this] {
      if (++events_ % 3 == 0) ::shutdown(caller_, SHUT_RD);
      return std::string("e\nf");
    });
  }

  /// All of the answer that a socket holds.
  [[nodiscard]] std::string ask(std::string_view request) {
    int ends[2];
    claim(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
    caller_ = ends[0];
    events_ = 0;
    (void)::send(caller_, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(caller_, SHUT_WR);
    pages_.serve(ends[1], [] { return true; });
    std::string answer(64 << 10, '\0');
    std::size_t length = 0;
    for (ssize_t got = 1; got > 0; length += static_cast<std::size_t>(std::max<ssize_t>(got, 0))) {
      if (length == answer.size()) answer.resize(2 * length);
      got = ::recv(caller_, answer.data() + length, answer.size() - length, MSG_DONTWAIT);
    }
    ::close(caller_);
    answer.resize(length);
    return answer;
  }

 private:
  http::Pages pages_;
  int caller_ = -1;
  int events_ = 0;
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
        static Web web;
        static std::uint64_t count = 0;
        const std::string answer = web.ask(text);
        claim(answer.empty() || answer.starts_with("HTTP/1."), "an answer is of HTTP");
        if (++count % 256 != 0) return;
        claim(web.ask("GET /metrics HTTP/1.1\r\n" + host + "\r\n").starts_with("HTTP/1.1 200"),
              "a good caller is answered");
      }};
}

/// A database that answers every question with one text.
class Database {
 public:
  Database() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    claim(::bind(listener_, address, bytes) == 0 && ::listen(listener_, 16) == 0 &&
              ::getsockname(listener_, address, &bytes) == 0,
          "a socket can be bound");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/db";
  }
  ~Database() { ::close(listener_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  [[nodiscard]] const std::string& url() const { return url_; }

  /// Takes one connection and answers its question; the connection is the caller's.
  [[nodiscard]] int answer(std::string_view text) const {
    claim(readable(listener_), "a sender connects");
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    char question[4096];
    claim(readable(connection), "a sender asks");
    (void)::recv(connection, question, sizeof question, 0);
    (void)::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(connection, SHUT_WR);
    return connection;
  }

 private:
  int listener_ = -1;
  std::string url_;
};

Target influx_answer() {
  return {"influx_answer",
          {"HTTP/1.1 204 No Content\r\nX-Influxdb-Version: 1.8.10\r\n\r\n",
           "HTTP/1.1 400 Bad Request\r\nContent-Length: 21\r\n\r\n{\"error\":\"no number\"}",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
           "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\", "
           "qop=\"auth\"\r\nContent-Length: 0\r\n\r\n",
           "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Gone\r\nContent-Encoding: gzip\r\n\r\nx"},
          [](std::string_view text) {
            static const Database database;
            const http::InfluxOptions at_once{.batch_within = std::chrono::milliseconds(0)};
            auto sender = http::InfluxSender::open(database.url(), at_once);
            claim(sender.has_value(), "a sender can be made");
            (*sender)->send("a b=1 1\n");
            const int connection = database.answer(text);
            http::InfluxSender::Counts counts;
            do {
              std::this_thread::yield();
              counts = (*sender)->counts();
            } while (counts.sent + counts.failures == 0);
            close_at_once(connection);
            claim(counts.sent + counts.lost + counts.waiting == 1, "each line is counted once");
            claim(!bad_utf8(counts.last_failure), "a reason can be printed");
            claim(counts.last_failure.size() < 1000, "a reason is short");
          }};
}

}  // namespace

std::vector<Target> web_targets() { return {http_request(), influx_answer()}; }

}  // namespace greynic::fuzz
