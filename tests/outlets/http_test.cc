#if __has_include(<httplib.h>)
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "greynic/http/influx_sender.h"
#include "greynic/http/server.h"
#include "greynic/outlets/influx.h"
#include "influx_database.h"

namespace greynic::http {
namespace {

using testing_influx::InfluxDatabase;
using namespace std::chrono_literals;

std::string curl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {GREYNIC_CURL, "-sS", "--max-time", "20"});
  const auto answer = os::run({.words = std::move(arguments)});
  return answer ? *answer : answer.error().message;
}

class ServedPages : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(GREYNIC_CURL).empty()) {
      GTEST_SKIP() << "there is no curl; apt-get install curl";
    }
    auto opened = Server::open(":0");
    ASSERT_TRUE(opened) << opened.error().message;
    server = std::move(*opened);
    url = "http://" + server->address();
    server->get("/sum", [](const Request& request) {
      return Answer{.body = fmt::format("{}+{}", request.value("a"), request.value("b"))};
    });
    server->get("/throws", [](const Request&) -> Answer { throw std::runtime_error("no"); });
    static constexpr EmbeddedFile kFiles[] = {{"index.html", "<p>page</p>"}, {"a.js", "1"}};
    server->files(kFiles);
    server->metrics("/metrics", [] {
      outlets::OpenMetrics metrics;
      metrics.counter("greynic_packets", "Packets.", {}, 3);
      return metrics;
    });
    server->events("/live", 50ms, [this] { return fmt::format("line {}\nand", ++count); });
    server->start();
  }

  /// A connection to the server.
  int dial() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string port = server->address().substr(server->address().rfind(':') + 1);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  std::unique_ptr<Server> server;
  std::string url;
  std::atomic<int> count = 0;
};

// Claim:  handlers, files and events are given as asked for; all else is refused by its status.
// Oracle: curl.
TEST_F(ServedPages, AreGiven) {
  EXPECT_EQ(curl({url + "/sum?a=1%202&b=x"}), "1 2+x");
  EXPECT_EQ(curl({url + "/"}), "<p>page</p>");
  EXPECT_NE(curl({"-i", url + "/a.js"}).find("text/javascript"), std::string::npos);
  EXPECT_NE(curl({url + "/metrics"}).find("# TYPE greynic_packets_total counter"),
            std::string::npos);
  EXPECT_NE(curl({"-i", "-H", "Accept: application/openmetrics-text", url + "/metrics"})
                .find("# TYPE greynic_packets counter"),
            std::string::npos);
  const auto status = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-o", "/dev/null", "-w", "%{http_code}"});
    return curl(std::move(arguments));
  };
  EXPECT_EQ(status({url + "/nothing"}), "404");
  EXPECT_EQ(status({url + "/../etc/passwd", "--path-as-is"}), "404");
  EXPECT_EQ(status({url + "/throws"}), "500");
  EXPECT_EQ(status({url + "/sum", "-XPOST", "-d", "x"}), "405");
  EXPECT_EQ(status({url + "/sum?" + std::string(20000, 'x')}), "414");
  const std::string live =
      os::run({.words = {"sh", "-c",
                         fmt::format("{} -sN --max-time 1 {}/live || true", GREYNIC_CURL, url)}})
          .value_or("");
  EXPECT_NE(live.find("data: line 3\ndata: and\n\n"), std::string::npos) << live;
}

// Claim:  on loopback it answers to names of loopback alone, so that no page from elsewhere can read it
//         through a browser here by a name that leads here.
TEST_F(ServedPages, AnswerToNamesOfLoopback) {
  const auto with_host = [&](const std::string& host) {
    return curl({"-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: " + host, url + "/"});
  };
  for (const char* good : {"localhost", "localhost:9100", "127.0.0.1:1", "[::1]:9100"}) {
    EXPECT_EQ(with_host(good), "200") << good;
  }
  for (const char* bad : {"evil.example", "127.evil.example:9100", "localhost.evil.example", ""}) {
    EXPECT_EQ(with_host(bad), "421") << bad;
  }
}

// Claim:  a caller that says no more after its question is answered.
// Method: `nc -N` and some health checks close their half of the connection.
TEST_F(ServedPages, AreGivenToThoseWhoSayNoMore) {
  for (int i = 0; i < 200; ++i) {
    const int caller = dial();
    const std::string_view question = "GET /a.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
    (void)send(caller, question.data(), question.size(), MSG_NOSIGNAL);
    shutdown(caller, SHUT_WR);
    std::string answer(4096, '\0');
    const ssize_t got = recv(caller, answer.data(), answer.size(), 0);
    close(caller);
    ASSERT_GT(got, 0) << i;
    ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  }
}

/// What no caller in his right mind says; "..." at the end goes on for ever.
const char* const kRudeWords[] = {
    "",
    "\n",
    "\r\n\r\n",
    "G",
    "GET",
    "GET /",
    "GET / HTTP/1.1",
    "GET / HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nHost",
    "GET / HTTP/1.1\r\nHost: localhost\r\n",
    "GET  HTTP/1.1\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "GET / HTTP/\r\n\r\n",
    "GET / SMTP/1.1\r\n\r\n",
    "get / http/1.1\r\n\r\n",
    "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /% HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /sum?a=%zz&b=%u12 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /sum?&&&=&a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551615\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Length: 1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n...",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data\r\nContent-Length: "
    "3\r\n\r\nabc",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
    "boundary=\r\nContent-Length: 2\r\n\r\n--",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: "
    "2\r\n\r\n\x1f\x8b",
    "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-0,0-0,0-0,0-0,0-0,0-0,0-0,-1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=99999999999999999999-\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nKeep-Alive: "
    "timeout=999999\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "GET / HTTP/1.1\r\n: x\r\n\r\n",
    "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
    "GET /...",
    "GET / HTTP/1.1\r\nA: ...",
    "...",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /live HTTP/1.1\r\n",
    "GET /throws HTTP/1.1\r\nHost: localhost\r\n\r\n",
};

// Claim:  whatever others say, and however slowly, a good caller is answered, and the server ends.
// Method: 53 kinds of words, said whole and byte by byte, on connections that then stay.
TEST_F(ServedPages, AreGivenWhateverOthersSay) {
  std::vector<int> rude;
  for (const std::string_view words : kRudeWords) {
    const bool is_endless = words.ends_with("...");
    for (const bool slowly : {false, true}) {
      rude.push_back(dial());
      for (std::size_t at = 0; at < words.size(); at += slowly ? 1 : words.size()) {
        (void)send(rude.back(), words.data() + at, slowly ? 1 : words.size(), MSG_NOSIGNAL);
      }
      const std::string more(is_endless ? 1 << 20 : 0, 'a');
      (void)send(rude.back(), more.data(), more.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ASSERT_EQ(curl({url + "/sum?a=1&b=2"}), "1+2") << "after: " << words;
  }
  server.reset();
  for (const int socket : rude) close(socket);
}

// Claim:  a question that does not end is not read on, be it the first of its connection or a later one.
// Oracle: a question has 128 KiB at most; what the kernel takes on its way is some megabytes.
TEST_F(ServedPages, AreNotWaitingForTheEndOfALongQuestion) {
  for (const std::string first : {"", "GET /a.js HTTP/1.1\r\nHost: localhost\r\n\r\n"}) {
    for (const std::string words : {"GET /", "GET / HTTP/1.1\r\nA: ", "GET / HTTP/1.1\r\n"}) {
      const int endless = dial();
      const std::string head = first + words;
      (void)send(endless, head.data(), head.size(), MSG_NOSIGNAL);
      std::string more(64 << 10, 'a');
      if (words.ends_with("\r\n")) {
        for (std::size_t at = 0; at + 8 < more.size(); at += 8) more.replace(at, 8, "Aaa: b\r\n");
      }
      std::size_t sent = 0;
      const timeval patience{5, 0};
      setsockopt(endless, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      for (ssize_t got = 1; got > 0 && sent<(64U << 20); sent += got> 0 ? more.size() : 0) {
        got = send(endless, more.data(), more.size(), MSG_NOSIGNAL);
      }
      close(endless);
      EXPECT_LT(sent, 32U << 20) << words;
    }
  }
  EXPECT_EQ(curl({url + "/sum?a=1&b=2"}), "1+2");
}

// Claim:  5,000 idle or half-spoken connections keep nobody out, and the server still ends at once.
TEST_F(ServedPages, AreGivenAmongThoseWhoIdle) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 8192) {
    GTEST_SKIP() << "the hard limit of open files is below 8192; raise it (ulimit -Hn)";
  }
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<int> idle;
  for (int i = 0; i < 5000; ++i) {
    idle.push_back(dial());
    if (i % 2 == 0) (void)send(idle.back(), "GET /sum HTTP/1.1\r\nHo", 21, MSG_NOSIGNAL);
  }
  EXPECT_EQ(curl({url + "/sum?a=1&b=2"}), "1+2");
  const auto before = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  for (const int socket : idle) close(socket);
}

TEST(InfluxSender, TakesUrlsThatNameADatabase) {
  for (const char* good : {"http://127.0.0.1:8086/lab", "http://me:secret@db/lab",
                           "http://[::1]:8086/api/v2/write?org=a&bucket=b"}) {
    EXPECT_TRUE(InfluxSender::open(good)) << good;
  }
  for (const char* bad : {"", "lab", "ftp://host/lab", "http:///lab", "http://host", "http://host/",
                          "http://me@/lab"}) {
    const auto opened = InfluxSender::open(bad);
    ASSERT_FALSE(opened) << bad;
    EXPECT_EQ(opened.error().code, ErrorCode::kBadInput);
  }
}

// Claim:  lines that were sent while the database is down arrive when it is up, each once; what it
//         refuses, and what the queue cannot hold, is counted; odd text arrives as it was.
// Oracle: a real InfluxDB, asked for what it has.
TEST(InfluxSender, LosesOnlyWhatItCounts) {
  if (std::string_view(GREYNIC_INFLUXD).empty() || std::string_view(GREYNIC_CURL).empty()) {
    GTEST_SKIP() << "there is no influxd or curl; apt-get install influxdb curl";
  }
  InfluxDatabase database(GREYNIC_INFLUXD);
  auto sender = InfluxSender::open(database.url(), {.batch_within = 20ms, .queue_bytes = 1 << 20});
  ASSERT_TRUE(sender) << sender.error().message;
  const auto point = [](int i) {
    outlets::InfluxPoint made("hop");
    made.tag("flow", "a b,c=d\\e \"f\"").count("packets", static_cast<std::uint64_t>(i));
    return made.line(1'600'000'000'000'000'000 + i);
  };
  for (int i = 0; i < 3000; ++i) (*sender)->send(point(i));
  EXPECT_FALSE((*sender)->flush(300ms));
  EXPECT_FALSE((*sender)->counts().last_failure.empty());
  ASSERT_TRUE(database.start());
  EXPECT_TRUE((*sender)->flush(30s)) << (*sender)->counts().last_failure;
  EXPECT_EQ((*sender)->counts().sent, 3000U);
  EXPECT_NE(database.ask("SELECT count(packets), sum(packets) FROM hop").find(",3000,4498500"),
            std::string::npos);
  EXPECT_NE(database.ask("SHOW TAG VALUES WITH KEY = flow").find(R"(a b,c=d\e ""f"")"),
            std::string::npos)
      << database.ask("SHOW TAG VALUES WITH KEY = flow");

  (*sender)->send("hop packets=\"text\" 1600000000000000000\n");  // the field is a number there
  EXPECT_TRUE((*sender)->flush(30s));
  EXPECT_EQ((*sender)->counts().lost, 1U);
  EXPECT_NE((*sender)->counts().last_failure.find("400"), std::string::npos);

  database.stop();
  for (int i = 0; i < 40000; ++i) (*sender)->send(point(i));
  const auto counts = (*sender)->counts();
  EXPECT_GT(counts.lost, 1U) << "a queue of 1 MiB holds fewer than 40,000 lines";
  EXPECT_EQ(counts.sent + counts.lost + counts.waiting, 43001U);
}

/// Takes one connection in the place of a database, and does with it what it is told.
class RogueDatabase {
 public:
  explicit RogueDatabase(std::function<void(int)> behave)
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    bind(listening_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listening_, 1);
    getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
    url = fmt::format("http://127.0.0.1:{}/d", ntohs(address.sin_port));
    thread_ = std::thread([this, behave = std::move(behave)] {
      const int socket = accept(listening_, nullptr, nullptr);
      if (socket >= 0) behave(socket);
      close(socket);
    });
  }
  ~RogueDatabase() {
    shutdown(listening_, SHUT_RDWR);
    thread_.join();
    close(listening_);
  }
  RogueDatabase(const RogueDatabase&) = delete;
  RogueDatabase& operator=(const RogueDatabase&) = delete;

  std::string url;

 private:
  int listening_;
  std::thread thread_;
};

// Claim:  a database whose answer never ends is cut off, and its words do not pile up here.
TEST(InfluxSender, ReadsNoAnswerWithoutEnd) {
  std::atomic<std::size_t> taken = 0;
  RogueDatabase rogue([&](int socket) {
    const std::string words = "HTTP/1.1 200 OK\r\n\r\n" + std::string(65536, 'a');
    for (ssize_t got = 0; (got = send(socket, words.data(), words.size(), MSG_NOSIGNAL)) > 0;) {
      taken += static_cast<std::size_t>(got);
    }
  });
  auto sender = InfluxSender::open(rogue.url, {.batch_within = 1ms});
  ASSERT_TRUE(sender);
  (*sender)->send("hop packets=1 1\n");
  EXPECT_FALSE((*sender)->flush(1s));
  for (int i = 0; i < 1000 && (*sender)->counts().failures == 0; ++i) usleep(10000);
  EXPECT_GT((*sender)->counts().failures, 0U);
  EXPECT_LT(taken, 64U << 20) << "what sockets hold, and little more";
}

// Claim:  a database that never answers keeps nobody from ending.
// Method: the sender is to go while it waits for the answer.
TEST(InfluxSender, EndsWhereNobodyAnswers) {
  std::atomic<bool> over = false, asked = false;
  RogueDatabase rogue([&](int) {
    asked = true;
    while (!over) usleep(1000);
  });
  auto sender = InfluxSender::open(rogue.url, {.batch_within = 1ms});
  ASSERT_TRUE(sender);
  (*sender)->send("hop packets=1 1\n");
  while (!asked) usleep(1000);
  const std::atomic<bool> ending = true;
  EXPECT_FALSE((*sender)->flush(1h, &ending));
  sender->reset();
  over = true;
}

}  // namespace
}  // namespace greynic::http
#endif
