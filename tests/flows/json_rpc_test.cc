#include "ovs/json_rpc.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

namespace greynic::flows {
namespace {

using std::chrono::milliseconds;

/// A unix socket at which one caller is served by a function.
class Socket {
 public:
  explicit Socket(const std::function<void(int)>& serve) {
    char folder[] = "/tmp/greynic_rpc_XXXXXX";
    folder_ = mkdtemp(folder);
    listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    bind(listening_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listening_, 1);
    thread_ = std::thread([this, serve] {
      const int caller = accept(listening_, nullptr, nullptr);
      serve(caller);
      close(caller);
    });
  }
  ~Socket() {
    thread_.join();
    close(listening_);
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string path() const { return folder_ + "/socket"; }

 private:
  std::string folder_;
  int listening_ = -1;
  std::thread thread_;
};

void say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Reads until the other side closes.
void wait_for_end(int socket) {
  char bytes[65536];
  while (recv(socket, bytes, sizeof bytes, 0) > 0) {
  }
}

/// The error of one call to whoever serves so; empty when it was answered.
std::string failure_of(const std::function<void(int)>& serve, nlohmann::json parameters = {}) {
  const Socket there(serve);
  auto rpc = JsonRpc::connect(there.path());
  EXPECT_TRUE(rpc) << (rpc ? "" : rpc.error().message);
  const auto answer = rpc->call("list", std::move(parameters), milliseconds(1500));
  return answer ? "" : answer.error().message;
}

// Claim:  an answer in many pieces, behind an echo, with brackets and quotes in its strings,
// arrives.
TEST(JsonRpc, TakesAnswersInPieces) {
  EXPECT_EQ(
      failure_of([](int socket) {
        const std::string_view text =
            R"({"method":"echo","params":[],"id":"e"}{"id":1,"error":null,"result":"}\"]{\\"})";
        for (const char c : text) say(socket, {&c, 1});
        wait_for_end(socket);
      }),
      "");
}

// Claim:  who does not answer, does not read, answers something else without end, or half, holds
//         nobody beyond the limit of the call.
// Oracle: ctest's limit for a hang; the error's words for the rest.
TEST(JsonRpc, IsHeldUpByNobody) {
  EXPECT_NE(failure_of(wait_for_end).find("no answer in time"), std::string::npos);
  const std::string large(4UL << 20U, 'x');
  EXPECT_NE(failure_of([](int) { std::this_thread::sleep_for(milliseconds(3000)); }, large)
                .find("does not read in time"),
            std::string::npos);
  EXPECT_NE(failure_of([](int socket) {
              for (int i = 0; i < 100; ++i) {
                say(socket, R"({"id":77,"error":null,"result":1})");
                std::this_thread::sleep_for(milliseconds(30));
              }
            }).find("no answer in time"),
            std::string::npos);
  EXPECT_NE(failure_of([](int socket) {
              say(socket, R"({"id":1,"result":")");
              wait_for_end(socket);
            }).find("no answer in time"),
            std::string::npos);
}

// Claim:  an answer of brackets without end is refused while it comes.
TEST(JsonRpc, RefusesDepth) {
  EXPECT_NE(failure_of([](int socket) {
              say(socket, std::string(1 << 20, '['));
              wait_for_end(socket);
            }).find("deeper than any"),
            std::string::npos);
}

// Claim:  the end of an object is found wherever the text is cut.
TEST(JsonEnd, IsFoundInEveryCut) {
  const std::string text = R"({"a":"}\\\"{","b":[{}]})";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    JsonEnd end;
    EXPECT_EQ(end.find(std::string_view(text).substr(0, cut)), 0U) << cut;
    EXPECT_EQ(end.find(text + "{"), text.size()) << cut;
  }
}

}  // namespace
}  // namespace greynic::flows
