// Unmodified TCP programs over two brokers in a lab. What the machine lacks is skipped.

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "lab_brokers.h"

namespace greynic::broker {
namespace {

bool is_there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

#define SKIP_WITHOUT(program, package) \
  if (!is_there(program)) GTEST_SKIP() << "needs " program ": apt install " package

/// Two hosts, and programs on them. The programs' TCP ports are those of the broker, so they are
/// free whatever this machine listens at.
class BrokerSockets : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> on(const Lab::Broker& host, const std::string& shell) {
    const std::string& far = &host == &a_ ? b_.address : a_.address;
    return {GREYNIC_BINARY, "broker", "run", "--socket", host.socket, "--via", far,
            "--",           "sh",     "-c",  shell};
  }
  /// Runs a command on the first host until it ends well; servers need a moment.
  std::string ask(const std::string& shell) {
    std::string text;
    const bool good = eventually([&] {
      Process one(on(a_, shell));
      const int code = one.join();
      text = one.text();
      return code == 0;
    });
    EXPECT_TRUE(good) << shell << "\n" << text;
    return text;
  }
  /// All that the programs said went over the broker.
  void expect_carried(std::uint64_t connections) {
    const nlohmann::json status = a_.status();
    EXPECT_GE(status["posted"]["send"].get<std::uint64_t>(), connections) << status;
    EXPECT_EQ(status["qps"], 6) << status;
    EXPECT_EQ(status["cut_off"], 0) << status;
  }
  Lab lab_;
  Lab::Broker a_ = lab_.start("a", 0), b_ = lab_.start("b", 1);
};

TEST_F(BrokerSockets, CarryNetcat) {
  SKIP_WITHOUT("nc", "netcat-openbsd");
  const std::string sent = lab_.folder() / "sent", got = lab_.folder() / "got";
  ASSERT_EQ(std::system(("head -c 3000000 /dev/urandom >" + sent).c_str()), 0);
  Process server(on(b_, "exec nc -l -p 18901 >" + got));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ask("nc -N 127.0.0.1 18901 <" + sent);
  EXPECT_EQ(server.join(), 0) << server.text();
  EXPECT_EQ(std::system(("cmp " + sent + " " + got).c_str()), 0);
  expect_carried(1);
}

TEST_F(BrokerSockets, CarryHttp) {
  SKIP_WITHOUT("curl", "curl");
  SKIP_WITHOUT("python3", "python3");
  const std::string sent = lab_.folder() / "page", got = lab_.folder() / "got";
  ASSERT_EQ(std::system(("head -c 2000000 /dev/urandom >" + sent).c_str()), 0);
  Process server(on(b_, "cd " + lab_.folder().path() +
                            " && exec python3 -u -m http.server 18902 --bind 127.0.0.1"));
  for (int i = 0; i < 3; ++i) {
    ask("curl -sSf -o " + got + " http://127.0.0.1:18902/page");
    EXPECT_EQ(std::system(("cmp " + sent + " " + got).c_str()), 0);
  }
  expect_carried(3);
}

TEST_F(BrokerSockets, CarryRedis) {
  SKIP_WITHOUT("redis-server", "redis-server");
  SKIP_WITHOUT("redis-benchmark", "redis-tools");
  Process server(on(b_, "exec redis-server --port 18903 --save '' --dir " + lab_.folder().path()));
  EXPECT_NE(ask("redis-cli -p 18903 set key value").find("OK"), std::string::npos);
  EXPECT_NE(ask("redis-cli -p 18903 get key").find("value"), std::string::npos);
  const std::string text = ask("redis-benchmark -p 18903 -q -n 2000 -c 20 -t set,get,lpush");
  for (const char* name : {"SET:", "GET:", "LPUSH:"}) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
  expect_carried(20);
}

TEST_F(BrokerSockets, CarryIperf) {
  SKIP_WITHOUT("iperf3", "iperf3");
  Process server(on(b_, "exec iperf3 -s -p 18904"));
  // iperf3 that finds no server yet says so in its JSON, and ends well.
  const auto ask_iperf = [&](const std::string& options) {
    return ask("said=$(iperf3 -c 127.0.0.1 -p 18904 -J " + options +
               "); echo \"$said\"; case $said in *'\"error\"'*) exit 1 ;; esac");
  };
  const std::string text = ask_iperf("-n 20M -P 2");
  const nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(result.is_discarded()) << text;
  // At its end iperf3 leaves what is still under way unread, over TCP too.
  EXPECT_GE(result["end"]["sum_sent"]["bytes"], 20 << 20) << text;
  EXPECT_GT(result["end"]["sum_received"]["bytes"], 0) << text;
  ask_iperf("-n 5M -R");
  expect_carried(3);
}

// Claim:  a program may have more connections than its own limit of descriptors lets a relay have.
// Method: 1,300 connections at once, each of which says its number and hears it back, while the
//         limit of 1,024 holds for the relay until it raises its own.
TEST_F(BrokerSockets, CarryMoreThanAThousandAtOnce) {
  SKIP_WITHOUT("python3", "python3");
  const auto many = [&](const Lab::Broker& host, const std::string& code) {
    const std::string& far = &host == &a_ ? b_.address : a_.address;
    return std::vector<std::string>{"sh",
                                    "-c",
                                    "ulimit -Sn 1024; exec \"$@\"",
                                    "sh",
                                    GREYNIC_BINARY,
                                    "broker",
                                    "run",
                                    "--connections",
                                    "1300",
                                    "--socket",
                                    host.socket,
                                    "--via",
                                    far,
                                    "--",
                                    "sh",
                                    "-c",
                                    "ulimit -Sn 4096; exec python3 -u -c \"$1\"",
                                    "sh",
                                    code};
  };
  Process server(many(b_, R"(
import selectors, socket
listener = socket.create_server(('127.0.0.1', 18905), backlog=2000)
looks = selectors.DefaultSelector()
looks.register(listener, selectors.EVENT_READ)
print('serving')
while True:
    for key, _ in looks.select():
        if key.fileobj is listener:
            looks.register(listener.accept()[0], selectors.EVENT_READ)
        elif data := key.fileobj.recv(100):
            key.fileobj.sendall(data)
        else:
            looks.unregister(key.fileobj)
            key.fileobj.close()
)"));
  ASSERT_TRUE(server.says("serving")) << server.text();
  Process client(many(a_, R"(
import socket
all = [socket.create_connection(('127.0.0.1', 18905)) for _ in range(1300)]
for i, one in enumerate(all): one.sendall(b'%08d' % i)
print(sum(one.recv(8, socket.MSG_WAITALL) == b'%08d' % i for i, one in enumerate(all)))
)"));
  EXPECT_EQ(client.join(), 0) << client.text();
  EXPECT_EQ(client.text(), "1300\n");
  EXPECT_EQ(a_.status()["qps"], 6);
}

// Claim:  what no preloaded library says is refused, and the relay keeps no descriptor of it.
TEST_F(BrokerSockets, KeepNothingOfALie) {
  Process liar(on(a_, std::string("exec ") + BROKER_PROGRAM + " relay_lies"));
  EXPECT_EQ(liar.join(), 0) << liar.text();
}

TEST_F(BrokerSockets, TellWhatIsWrong) {
  const integration::Folder folder;
  const integration::Outcome none =
      integration::greynic(folder, "broker run --socket " + (folder / "none") + " -- true");
  EXPECT_EQ(none.exit_code, 3) << none.err;
  EXPECT_NE(none.err.find("start `greynic broker`"), std::string::npos) << none.err;
  const integration::Outcome code =
      integration::greynic(folder, "broker run --socket " + a_.socket + " -- sh -c 'exit 7'");
  EXPECT_EQ(code.exit_code, 7) << code.err;
  const integration::Outcome heard = integration::greynic(
      folder, "broker run --socket " + a_.socket + " -- sh -c 'kill -PIPE $$; exit 7'");
  EXPECT_EQ(heard.exit_code, 128 + SIGPIPE) << "who writes for nobody ends: " << heard.err;
  const integration::Outcome via =
      integration::greynic(folder, "broker run --via nowhere --socket x -- true");
  EXPECT_EQ(via.exit_code, 2) << via.err;
  const std::string text = [&] {
    Process refused(on(a_, "curl -sS http://127.0.0.1:18999/ || true"));
    refused.join();
    return refused.text();
  }();
  if (is_there("curl")) EXPECT_NE(text.find("onnect"), std::string::npos) << text;
}

}  // namespace
}  // namespace greynic::broker
