#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "greynic/monitor/agent.h"
#include "greynic/monitor/host_link.h"
#include "greynic_zero.h"
#include "lingering.h"
#include "link.h"

namespace greynic::monitor {
namespace {

/// A message to the agent, and what comes beside it.
struct Lie {
  std::string what;
  std::function<void(std::string& message, std::vector<int>& files, std::string& arena)> tell;
};

zero_link_message& as_message(std::string& bytes) {
  return *reinterpret_cast<zero_link_message*>(bytes.data());
}
zero_header& as_header(std::string& bytes) { return *reinterpret_cast<zero_header*>(bytes.data()); }

int memory_file(const std::string& bytes, int seals) {
  const int file = memfd_create("greynic.zero.lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  if (seals != 0) EXPECT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// What was handed over last; whoever waits for it goes on when it goes.
std::unique_ptr<daemon::Lingering> lingering;

/// Each is wrong in one way; all else is as a good program says it.
std::vector<Lie> lies() {
  using Text = std::string;
  using Files = std::vector<int>;
  std::vector<Lie> all;
  for (const std::size_t bytes : {0U, 1U, 8U, 255U, 257U, 4096U, 65536U}) {
    all.push_back({"of " + std::to_string(bytes) + " bytes",
                   [=](Text& message, Files&, Text&) { message.resize(bytes, '\xff'); }});
  }
  for (const std::uint32_t kind : {0U, 3U, 4U, 5U, 0x80000000U, 0xffffffffU}) {
    all.push_back({"of kind " + std::to_string(kind),
                   [=](Text& message, Files&, Text&) { as_message(message).kind = kind; }});
  }
  for (const std::uint32_t of : {3U, 31U, 0x7fffffffU, 0xffffffffU}) {
    all.push_back({"of class " + std::to_string(of), [=](Text& message, Files&, Text& arena) {
                     as_message(message).metric_class = of;
                     as_header(arena).metric_class = of;
                   }});
  }
  const auto no_file = [&](const char* what, const std::function<int()>& make) {
    all.push_back({what, [=](Text&, Files& files, Text&) { files = {make()}; }});
  };
  no_file("/dev/null", [] { return open("/dev/null", O_RDWR | O_CLOEXEC); });
  no_file("/dev/zero", [] { return open("/dev/zero", O_RDWR | O_CLOEXEC); });
  no_file("a folder", [] { return open("/tmp", O_RDONLY | O_CLOEXEC); });
  no_file("a path", [] { return open("/tmp", O_PATH | O_CLOEXEC); });
  no_file("a file", [] { return open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  no_file("an eventfd", [] { return eventfd(0, EFD_CLOEXEC); });
  no_file("a socket", [] { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  no_file("a socket that lingers", [] {
    lingering = std::make_unique<daemon::Lingering>();
    return lingering->socket();
  });
  no_file("a memfd of a hugetlb pool", [] {
    const int file = memfd_create("pool", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    EXPECT_EQ(ftruncate(file, 2 << 20), 0);
    EXPECT_EQ(fcntl(file, F_ADD_SEALS, kSeals), 0);
    return file;
  });
  no_file("an empty memfd", [] { return memory_file("", kSeals); });
  no_file("a short memfd", [] { return memory_file("GNZERO02", kSeals); });
  no_file("a memfd of zeros", [] { return memory_file(Text(65536, '\0'), kSeals); });
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    all.push_back({"with seals " + std::to_string(seals),
                   [=](Text&, Files& files, Text& arena) { files = {memory_file(arena, seals)}; }});
  }
  for (const std::size_t count : {2U, 3U, 4U, 9U, 100U}) {
    all.push_back({std::to_string(count) + " files", [=](Text&, Files& files, Text& arena) {
                     for (std::size_t i = 0; i < count; ++i)
                       files.push_back(memory_file(arena, kSeals));
                   }});
  }
  all.push_back({"no file", [](Text&, Files& files, Text&) { files = {-1}; }});
  all.push_back({"another arena", [](Text& m, Files&, Text&) { ++as_message(m).incarnation; }});
  all.push_back({"other bytes", [](Text& m, Files&, Text&) { m.replace(0, 8, "GNZLINK9"); }});
  all.push_back({"a longer file", [](Text&, Files&, Text& a) { a.resize(a.size() + 4096); }});
  all.push_back({"a shorter file", [](Text&, Files&, Text& a) { a.resize(a.size() - 4096); }});
  const auto header = [&](const char* what, const std::function<void(zero_header&)>& change) {
    all.push_back({what, [=](Text&, Files&, Text& arena) { change(as_header(arena)); }});
  };
  header("magic", [](zero_header& h) { h.magic[0] = 'X'; });
  header("version", [](zero_header& h) { h.version = 77; });
  header("a directory", [](zero_header& h) { h.kind = ZERO_KIND_DIRECTORY; });
  header("no length", [](zero_header& h) { h.bytes = 0; });
  header("a length beyond all", [](zero_header& h) { h.bytes = UINT64_MAX; });
  header("no incarnation", [](zero_header& h) { h.incarnation = 0; });
  header("rows beyond the end", [](zero_header& h) { h.rows_offset = UINT64_MAX - 63; });
  header("rows without end", [](zero_header& h) { h.row_capacity = UINT64_MAX; });
  header("more rows than room", [](zero_header& h) { h.row_count = UINT64_MAX; });
  header("rows of another size", [](zero_header& h) { h.row_bytes = 0; });
  header("schemas beyond the end", [](zero_header& h) { h.schemas_bytes = UINT64_MAX; });
  header("data before the header", [](zero_header& h) { h.data_offset = 0; });
  header("a name that steers", [](zero_header& h) { std::memcpy(h.name, "\x1b[2J", 5); });
  header("a name of no text", [](zero_header& h) { std::memcpy(h.name, "\xff\xfe", 3); });
  return all;
}

void send_with(int link, const std::string& message, const std::vector<int>& files) {
  iovec bytes{const_cast<char*>(message.data()), message.size()};
  std::vector<char> room(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr whole{};
  whole.msg_iov = &bytes;
  whole.msg_iovlen = 1;
  if (!files.empty() && files[0] >= 0) {
    whole.msg_control = room.data();
    whole.msg_controllen = room.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&whole);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(head), files.data(), files.size() * sizeof(int));
  }
  EXPECT_GE(sendmsg(link, &whole, MSG_NOSIGNAL), 0) << std::strerror(errno);
}

std::size_t open_files() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Claim:  whatever a program says to the agent, it is answered in words or cut, a good program is
//         served after it, and no descriptor stays behind.
// Method: 50 kinds of lies, each told twice.
TEST(LiesToAnAgent, AreRefusedAndForgotten) {
  char folder[] = "/tmp/greynic_lies_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  AgentOptions options;
  options.socket = std::string(folder) + "/agent";
  options.linger = std::chrono::milliseconds(0);
  auto agent = Agent::start(options);
  ASSERT_TRUE(agent) << agent.error().message;
  std::atomic<bool> stop = false;
  std::thread serving([&] { (*agent)->serve(stop); });
  const auto tell = [&](const Lie& lie, bool is_true) {
    const zero_arena_options shape = {ZERO_TIDAL, 32 << 10, 4, 0, "t"};
    zero_arena* const made = zero_arena_create(&shape);
    std::string arena(static_cast<const char*>(zero_arena_memory(made)), shape.bytes);
    zero_arena_destroy(made);
    zero_link_message said = make_message(ZERO_LINK_ARENA, "t");
    said.incarnation = as_header(arena).incarnation;
    said.metric_class = ZERO_TIDAL;
    std::string message(reinterpret_cast<const char*>(&said), sizeof said);
    std::vector<int> files;
    lie.tell(message, files, arena);
    if (files.empty()) files.push_back(memory_file(arena, kSeals));
    const int link = connect_to(options.socket);
    ASSERT_GE(link, 0) << lie.what;
    send_with(link, message, files);
    // Whoever closes a socket that lingers last waits: that is to be the agent, and never this test.
    for (const int file : files) std::thread([file] { close(file); }).detach();
    pollfd waiting{link, POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 20000), 1) << lie.what << ": neither answered nor cut";
    zero_link_message answer{};
    const ssize_t got = recv(link, &answer, sizeof answer, MSG_DONTWAIT);
    EXPECT_TRUE(got <= 0 || got == sizeof answer) << lie.what;
    EXPECT_EQ(got == sizeof answer && answer.error == 0, is_true) << lie.what << answer.text;
    close(link);
  };
  const std::vector<Lie> all = lies();
  EXPECT_GE(all.size(), 50U);
  const std::size_t before = open_files();
  for (int round = 0; round < 2; ++round) {
    for (const Lie& lie : all) tell(lie, false);
    tell({"the truth", [](auto&, auto&, auto&) {}}, true);
  }
  lingering.reset();
  for (int i = 0; i < 2000 && open_files() > before; ++i) usleep(10000);
  EXPECT_EQ(open_files(), before) << "descriptors stay behind";
  stop = true;
  serving.join();
  agent->reset();
  std::filesystem::remove_all(folder);
}

// Claim:  who stands in an agent's place and shows a socket that lingers holds no collector.
// Oracle: it lingers ten minutes.
TEST(LiesToACollector, HoldNobody) {
  const std::string path = testing::TempDir() + "/greynic-lie-" + std::to_string(getpid());
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listening, 1), 0);
  auto link = local_link(path, 1);
  ASSERT_TRUE(link) << link.error().message;
  const int agent = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  daemon::Lingering shown;
  ASSERT_TRUE(send_message(agent, make_message(ZERO_LINK_SHOWN), shown.socket()));
  close(shown.socket());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE((*link)->hear());
  link->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
  close(agent);
  close(listening);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace greynic::monitor
