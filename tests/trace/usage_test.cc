#include "greynic/trace/usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace greynic::trace {
namespace {

namespace fs = std::filesystem;

/// A folder that looks like mounted control groups; gone at the end.
class Groups {
 public:
  Groups() : path_(fs::temp_directory_path() / ("greynic-groups-" + std::to_string(getpid()))) {}
  ~Groups() { fs::remove_all(path_); }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  fs::path path_;
};

Topology host_and(const Place& container) {
  Topology made;
  made.places = {{.inode = 1, .name = "host", .runtime = "host"}, container};
  return made;
}

// Claim:  CPU time, time kept from the CPUs and memory of a container are those of its control group,
//         in both versions of control groups.
TEST(TraceUsage, IsThatOfTheControlGroup) {
  const Groups groups;
  groups.put("new/cpu.stat", "usage_usec 2500000\nuser_usec 1\nthrottled_usec 750000\n");
  groups.put("new/memory.current", "1048576\n");
  groups.put("cpuacct/old/cpuacct.usage", "3000000000\n");
  groups.put("cpu/old/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 500000000\n");
  groups.put("memory/old/memory.usage_in_bytes", "4096\n");
  struct Case {
    const char* cgroup;
    double cpu, throttled;
    std::uint64_t memory;
  };
  for (const Case& one : {Case{"/new", 2.5, 0.75, 1048576}, Case{"/old", 3.0, 0.5, 4096}}) {
    const auto found =
        usage_of(host_and({.inode = 2, .name = "web", .runtime = "docker", .cgroup = one.cgroup}),
                 groups.path());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].container, "web");
    EXPECT_EQ(found[0].source, "cgroup");
    EXPECT_DOUBLE_EQ(found[0].cpu_seconds, one.cpu);
    EXPECT_DOUBLE_EQ(found[0].throttled_seconds.value_or(-1), one.throttled);
    EXPECT_EQ(found[0].memory_bytes.value_or(0), one.memory);
  }
}

// Claim:  a namespace without a control group has the usage of its processes; one without processes none.
TEST(TraceUsage, IsThatOfProcessesElsewhere) {
  const Groups groups;
  const auto inode = static_cast<std::uint32_t>(
      std::stoul(fs::read_symlink("/proc/self/ns/net").string().substr(5)));
  const auto found = usage_of(host_and({.inode = inode, .name = "ours"}), groups.path());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].source, "processes");
  EXPECT_GT(found[0].memory_bytes.value_or(0), 4096U) << "this test is one of them";
  EXPECT_FALSE(found[0].throttled_seconds);
  EXPECT_TRUE(usage_of(host_and({.inode = 4, .name = "nobody"}), groups.path()).empty());
}

}  // namespace
}  // namespace greynic::trace
