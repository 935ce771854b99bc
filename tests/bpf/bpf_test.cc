#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "attach_tc.h"
#include "greynic/bpf/hooks.h"
#include "greynic/bpf/object.h"
#include "greynic/os/network_namespace.h"

// Called by a test of uprobes; must be there under its own name.
extern "C" __attribute__((noinline)) int greynic_probed_function(int value);
extern "C" int greynic_probed_function(int value) {
  asm volatile("" ::: "memory");
  return value + 1;
}

namespace greynic::bpf {

std::span<const EmbeddedFile> test_programs();

namespace {

const EmbeddedFile& file(std::string_view name) {
  for (const EmbeddedFile& one : test_programs()) {
    if (one.name == name) return one;
  }
  std::abort();
}

std::uint32_t number_of(const os::NetworkNamespace& place) {
  struct stat found {};
  EXPECT_EQ(fstat(place.descriptor(), &found), 0);
  return static_cast<std::uint32_t>(found.st_ino);
}

/// Sends datagrams of so many bytes to the loopback device of the namespace that the thread is in.
void send_datagrams(int count, std::size_t bytes) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_LOOPBACK;
  ASSERT_EQ(ioctl(socket, SIOCSIFFLAGS, &loopback), 0);
  const int receiver = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(receiver, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const std::string payload(bytes, 'x');
  for (int i = 0; i < count; ++i) {
    sendto(socket, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  close(socket);
  close(receiver);
}

/// How many links of programs of this name the kernel holds.
int links_of(const std::string& program) {
  int found = 0;
  std::uint32_t id = 0;
  while (bpf_link_get_next_id(id, &id) == 0) {
    const int link = bpf_link_get_fd_by_id(id);
    if (link < 0) continue;
    bpf_link_info info{};
    std::uint32_t bytes = sizeof info;
    if (bpf_obj_get_info_by_fd(link, &info, &bytes) == 0) {
      const int descriptor = bpf_prog_get_fd_by_id(info.prog_id);
      bpf_prog_info about{};
      bytes = sizeof about;
      if (descriptor >= 0 && bpf_obj_get_info_by_fd(descriptor, &about, &bytes) == 0) {
        found += program == about.name ? 1 : 0;
      }
      if (descriptor >= 0) close(descriptor);
    }
    close(link);
  }
  return found;
}

/// What a program has counted, over all CPUs.
std::uint64_t sum_of(const Object& object, std::uint32_t index) {
  const auto map = object.per_cpu_array<std::uint64_t>("per_cpu");
  if (!map) return 0;
  const std::vector<std::uint64_t> values =
      map->look_up(index).value_or(std::vector<std::uint64_t>());
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

class Bpf : public testing::Test {
 protected:
  void SetUp() override {
    const Hook hook = probe_hook(HookKind::kTypedTracepoint, "net_dev_queue");
    if (!hook.available) GTEST_SKIP() << "no programs in the kernel here: " << hook.why_not;
    auto made = os::NetworkNamespace::create();
    if (!made) GTEST_SKIP() << made.error().message;
    place_.emplace(std::move(*made));
  }
  std::optional<os::NetworkNamespace> place_;
};

// Claim:  a typed tracepoint sees each packet once; hash maps, per-CPU arrays and rings agree.
// Oracle: what was sent: 700 datagrams of two lengths.
TEST_F(Bpf, CountsEveryPacketOfANamespace) {
  auto object = Object::open(file("counting.bpf.o"));
  ASSERT_TRUE(object) << object.error().message;
  ASSERT_TRUE(object->choose({"on_queue"}));
  ASSERT_TRUE(object->set("watched_namespace", number_of(*place_)));
  const auto loaded = object->load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::size_t records = 0;
  auto ring = object->ring("records", [&](std::span<const std::byte> record) {
    EXPECT_EQ(record.size(), 16U);
    ++records;
  });
  ASSERT_TRUE(ring) << ring.error().message;
  {
    const auto link = object->attach("on_queue");
    ASSERT_TRUE(link) << link.error().message;
    ASSERT_TRUE(place_->inside([] {
      send_datagrams(500, 10);
      send_datagrams(200, 1000);
    }));
  }
  EXPECT_EQ(sum_of(*object, 0), 700U);
  const auto lengths = object->map<std::uint32_t, std::uint64_t>("by_length")->entries();
  const std::vector<std::pair<std::uint32_t, std::uint64_t>> expected = {{10 + 42, 500},
                                                                         {1000 + 42, 200}};
  auto sorted = lengths;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, expected);
  for (auto taken = ring->poll(100); taken && *taken > 0; taken = ring->poll(0)) {
  }
  EXPECT_EQ(records, 700U);
  EXPECT_EQ(object->statistics("on_queue")->missed, 0U);
}

// Claim:  a map is handed out with the sizes of the C file alone, a constant likewise.
TEST_F(Bpf, RefusesTypesOfOtherSizes) {
  auto object = Object::open(file("counting.bpf.o"));
  ASSERT_TRUE(object);
  EXPECT_FALSE(object->set("watched_namespace", std::uint64_t{1}));
  EXPECT_FALSE(object->set("no_such_constant", std::uint32_t{1}));
  EXPECT_FALSE(object->choose({"no_such_program"}));
  ASSERT_TRUE(object->choose({"on_queue"}));
  ASSERT_TRUE(object->load());
  EXPECT_FALSE((object->map<std::uint64_t, std::uint64_t>("by_length")));
  EXPECT_FALSE(object->attach("on_queue_raw")) << "it was not chosen";
}

// Claim:  what the verifier refuses is told with its reason.
TEST_F(Bpf, TellsTheVerifiersReason) {
  auto object = Object::open(file("refused.bpf.o"));
  ASSERT_TRUE(object);
  const auto loaded = object->load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kRefused);
  EXPECT_NE(loaded.error().message.find("map_value_or_null"), std::string::npos)
      << loaded.error().message;
}

// Claim:  tc programs run on the device and the side that they are attached to, by either way.
// Oracle: datagrams sent over loopback: each leaves once and arrives once.
TEST_F(Bpf, AttachesToTrafficControl) {
  auto object = Object::open(file("counting.bpf.o"));
  ASSERT_TRUE(object);
  ASSERT_TRUE(object->choose({"on_tc"}));
  ASSERT_TRUE(object->load());
  ASSERT_TRUE(place_->inside([&] {
    const auto out = object->attach_tc("on_tc", 1, Direction::kEgress);
    ASSERT_TRUE(out) << out.error().message;
    const auto in = object->attach_tc("on_tc", 1, Direction::kIngress);
    ASSERT_TRUE(in) << in.error().message;
    send_datagrams(100, 10);
  }));
  ASSERT_TRUE(place_->inside([&] { send_datagrams(50, 10); }));
  EXPECT_EQ(sum_of(*object, 2), 200U);
}

TEST_F(Bpf, AttachesToAFunctionOfAProgram) {
  const Hook hook = probe_hook(HookKind::kUprobe, "");
  if (!hook.available) GTEST_SKIP() << hook.why_not;
  auto object = Object::open(file("counting.bpf.o"));
  ASSERT_TRUE(object);
  ASSERT_TRUE(object->choose({"on_function"}));
  ASSERT_TRUE(object->load());
  const auto link = object->attach_uprobe(
      "on_function", {.binary = "/proc/self/exe", .function = "greynic_probed_function"});
  ASSERT_TRUE(link) << link.error().message;
  int value = 0;
  for (int i = 0; i < 7; ++i) value = greynic_probed_function(value);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(sum_of(*object, 3), 7U);
  const auto nowhere =
      object->attach_uprobe("on_function", {.binary = "/proc/self/exe", .function = "no_such"});
  EXPECT_FALSE(nowhere);
}

// Claim:  a process that is killed leaves no program attached.
// Method: a child attaches, says so, and is killed; the kernel's list of links is the oracle.
TEST_F(Bpf, LeavesNothingAttachedWhenKilled) {
  ASSERT_EQ(links_of("on_queue_raw"), 0) << "another test runs at the same time";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto object = Object::open(file("counting.bpf.o"));
    if (!object || !object->choose({"on_queue_raw"}) || !object->load()) _exit(1);
    const auto link = object->attach("on_queue_raw");
    if (!link || write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  EXPECT_EQ(links_of("on_queue_raw"), 1);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  for (int i = 0; i < 500 && links_of("on_queue_raw") > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the kernel lets go in its time
  }
  EXPECT_EQ(links_of("on_queue_raw"), 0);
}

/// What lists of filters say about ours on the loopback device of the namespace of the thread.
int filters_of_clsact() {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = 1, .attach_point = BPF_TC_INGRESS);
  LIBBPF_OPTS(bpf_tc_opts, filter, .handle = 1, .priority = 1);  // in front of all others
  return bpf_tc_query(&hook, &filter) == 0 ? 1 : 0;
}

// Claim:  no filter of clsact outlives us either, though no descriptor holds it.
TEST_F(Bpf, LeavesNoFilterOfClsactWhenKilled) {
  ASSERT_TRUE(place_->inside([] {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bpf_insn instructions[] = {
          {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
          {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
      const int program =
          bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "x", "GPL", instructions, 2, nullptr);
      const auto link = attach_clsact(program, 1, Direction::kIngress);
      if (!link || write(ready[1], "x", 1) != 1) _exit(1);
      pause();
    }
    close(ready[1]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_EQ(filters_of_clsact(), 1);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    for (int i = 0; i < 500 && filters_of_clsact() > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(filters_of_clsact(), 0);
    close(ready[0]);
  }));
}

TEST_F(Bpf, SaysWhyAHookIsNotThere) {
  const Hook typed = probe_hook(HookKind::kTypedTracepoint, "no_such_tracepoint");
  EXPECT_FALSE(typed.available);
  EXPECT_NE(typed.why_not.find("no such place"), std::string::npos) << typed.why_not;
  const Hook raw = probe_hook(HookKind::kRawTracepoint, "no_such_tracepoint");
  EXPECT_FALSE(raw.available);
  EXPECT_FALSE(raw.why_not.empty());
  EXPECT_TRUE(probe_hook(HookKind::kRawTracepoint, "net_dev_queue").available);
}

// Claim:  names of reasons come from the kernel that runs, and addresses have names.
TEST_F(Bpf, KnowsTheKernelsOwnNames) {
  const auto reasons = enum_names("skb_drop_reason");
  if (!reasons) GTEST_SKIP() << reasons.error().message;
  EXPECT_NE(std::find(reasons->begin(), reasons->end(), "SKB_DROP_REASON_NO_SOCKET"),
            reasons->end());
  EXPECT_FALSE(enum_names("no_such_enum"));
  EXPECT_EQ(KernelSymbols{}.name_of(0x10), "0x10");
}

}  // namespace
}  // namespace greynic::bpf
