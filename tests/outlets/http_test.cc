#if __has_include(<httplib.h>)
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

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

// Claim:  a thousand idle or half-spoken connections keep nobody out, and the server still ends at
//         once.
TEST_F(ServedPages, AreGivenAmongThoseWhoIdle) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 4096) {
    GTEST_SKIP() << "the hard limit of open files is below 4096; raise it (ulimit -Hn)";
  }
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<int> idle;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string port = server->address().substr(server->address().rfind(':') + 1);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  for (int i = 0; i < 1000; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) break;
    if (i % 2 == 0) (void)send(socket, "GET /sum HTTP/1.1\r\nHo", 21, MSG_NOSIGNAL);
    idle.push_back(socket);
  }
  EXPECT_EQ(idle.size(), 1000U);
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

}  // namespace
}  // namespace greynic::http
#endif
