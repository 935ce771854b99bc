#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "greynic/zero/reader.h"
#include "program.h"
#include "sized.h"

namespace greynic::zero {
namespace {

/// What a program publishes now, by "name{labels}"; a histogram by its sum. Nothing before it has an
/// arena.
std::map<std::string, std::uint64_t> published_by(pid_t program) {
  std::map<std::string, std::uint64_t> values;
  const auto arenas = find_arenas(program);
  if (!arenas) return values;
  for (const FoundArena& arena : *arenas) {
    auto reader = ArenaReader::open(process_source(program, arena));
    if (!reader) continue;
    const auto readings = reader->look();
    if (!readings) continue;
    for (const Reading& reading : *readings) {
      for (const Field& field : reading.row->schema->fields) {
        values[series_of(*reading.row, field, 0).name] = bits_of(field, reading.bytes);
      }
    }
  }
  return values;
}

bool wait_for(const std::function<bool()>& what) {
  for (int i = 0; i < 2000 && !what(); ++i) usleep(10000);
  return what();
}

/// Sends text to a port of loopback and gives the first bytes of the answer; empty when nobody
/// listens.
std::string ask(std::uint16_t port, const std::string& text) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  char bytes[256];
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      write(socket, text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    const ssize_t got = read(socket, bytes, sizeof bytes);
    answer.assign(bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  close(socket);
  return answer;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  close(socket);
  return ntohs(address.sin_port);
}

// Claim:  Debian's Redis, unchanged, counts its commands in memory that others read.
// Oracle: the commands that the test sends.
TEST(Examples, RedisCountsItsCommands) {
  if (kSanitized) {
    GTEST_SKIP() << "Debian's Redis has no sanitizer, and cannot load a module that has; run the "
                    "release preset";
  }
  const std::string redis = GREYNIC_REDIS;
  if (redis.empty()) GTEST_SKIP() << "no Redis here; scripts/setup.sh --test installs it";
  const std::uint16_t port = free_port();
  Program server({redis, "--port", std::to_string(port), "--save", "", "--loadmodule", ZERO_REDIS});
  ASSERT_TRUE(wait_for([&] { return ask(port, "PING\r\n") == "+PONG\r\n"; }));
  const auto before = published_by(server.pid());
  ASSERT_TRUE(before.contains("redis_commands"));
  for (int i = 0; i < 23; ++i) EXPECT_EQ(ask(port, "SET key value\r\n"), "+OK\r\n");
  for (int i = 0; i < 42; ++i) EXPECT_EQ(ask(port, "GET key\r\n"), "$5\r\nvalue\r\n");
  const auto after = published_by(server.pid());
  const auto moved = [&](const char* name) { return after.at(name) - before.at(name); };
  EXPECT_EQ(moved("redis_commands"), 65U);
  EXPECT_EQ(moved("redis_writes"), 23U);
  EXPECT_EQ(moved("redis_reads"), 42U);
  EXPECT_EQ(moved("redis_argument_bytes"), 23U * 11 + 42U * 6);
  EXPECT_EQ(moved("redis_command_bytes"), 23U * 11 + 42U * 6) << "a histogram begins with its sum";
}

// Claim:  the kernel's helper publishes what /proc says.
// Oracle: /proc/stat, read before and after.
TEST(Examples, TheKernelsHelperSaysWhatProcSays) {
  const auto forks = [] {
    std::ifstream file("/proc/stat");
    std::string word;
    std::uint64_t number = 0;
    while (file >> word) {
      if (word == "processes") file >> number;
    }
    return number;
  };
  const std::uint64_t least = forks();
  Program helper({ZERO_KERNEL_METRICS, "10"});
  ASSERT_EQ(helper.line(), "publishing");
  std::map<std::string, std::uint64_t> values;
  ASSERT_TRUE(wait_for([&] {
    values = published_by(helper.pid());
    return values["kernel_forks"] > 0;
  }));
  EXPECT_GE(values["kernel_forks"], least);
  EXPECT_LE(values["kernel_forks"], forks());
  EXPECT_GT(values["kernel_free_bytes"], 1U << 20);
}

// Claim:  words that programs in the kernel add to are read where the kernel has them.
// Oracle: system calls that the test makes: at least so many more come by.
TEST(Examples, TheKernelsOwnArrayIsRead) {
  Program counter({ZERO_EBPF_METRICS});
  if (counter.line() != "counting") {
    GTEST_SKIP() << "no programs in the kernel here; run as root, on Linux 5.5 or newer";
  }
  const auto before = published_by(counter.pid());
  ASSERT_TRUE(before.contains("tracepoint_sys_enter"));
  for (int i = 0; i < 5000; ++i) (void)getppid();
  const auto after = published_by(counter.pid());
  EXPECT_GE(after.at("tracepoint_sys_enter"), before.at("tracepoint_sys_enter") + 5000);
}

}  // namespace
}  // namespace greynic::zero
