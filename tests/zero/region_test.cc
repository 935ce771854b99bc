#include "greynic/zero/region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "greynic/zero/reader.h"

namespace greynic::zero {
namespace {

class Region : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_zero_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/region"; }

  std::string folder_;
};

Group wide_group(std::size_t metrics) {
  Group group{"counters", {}};
  for (std::size_t i = 0; i < metrics; ++i)
    group.metrics.push_back({"m" + std::to_string(i), "1/s"});
  return group;
}

ArenaReader reader_of(const std::string& path) {
  return ArenaReader::open(map_region(path).value()).value();
}

const Schema& schema_of(const ArenaReader& reader, const std::string& name) {
  for (const Row& row : reader.rows()) {
    if (row.schema->name == name) return *row.schema;
  }
  throw std::runtime_error("there is no group " + name);
}

struct Snapshot {
  std::uint64_t version = 0;
  std::int64_t time_ns = 0;
  std::vector<double> values;
};
Result<Snapshot> snapshot_of(ArenaReader& reader, const std::string& name) {
  const auto readings = reader.look();
  if (!readings) return pass_on(readings);
  for (const Reading& reading : *readings) {
    const Schema& schema = *reading.row->schema;
    if (schema.name != name) continue;
    Snapshot snapshot{reading.version, 0, {}};
    for (const Field& field : schema.fields) {
      if (&field == &schema.fields.front()) {
        snapshot.time_ns = static_cast<std::int64_t>(bits_of(field, reading.bytes));
      } else {
        snapshot.values.push_back(number_of(field, reading.bytes));
      }
    }
    return snapshot;
  }
  return fail(ErrorCode::kRefused, "torn at each of many tries");
}

// Claim: what is no region is never replaced: files, devices, pipes; a link stays one.
TEST_F(Region, ReplacesNothingButRegions) {
  std::ofstream(folder_ + "/notes") << "precious\n";
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", folder_ + "/dangling");
  for (const char* name : {"/notes", "/pipe", "/dangling", "/"}) {
    const auto refused = RegionWriter::create(folder_ + name, {wide_group(1)});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput) << name;
  }
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/notes"), 9U);
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ + "/pipe"));
  EXPECT_EQ(RegionWriter::create("/dev/null", {wide_group(1)}).error().code, ErrorCode::kBadInput);
  ASSERT_TRUE(RegionWriter::create(path(), {wide_group(1)}));
  std::filesystem::create_symlink("region", folder_ + "/link");
  ASSERT_TRUE(RegionWriter::create(folder_ + "/link", {wide_group(2)}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(schema_of(reader_of(path()), "counters").fields.size(), 3U);
}

TEST_F(Region, AReaderFindsEverythingInTheRegionItself) {
  auto writer = RegionWriter::create(path(), {{"link", {{"rx_bytes", "B"}}}, wide_group(20)});
  ASSERT_TRUE(writer) << writer.error().message;
  ArenaReader reader = reader_of(path());
  ASSERT_EQ(reader.rows().size(), 2U);
  EXPECT_EQ(schema_of(reader, "link").fields[1].unit, "B");
  EXPECT_EQ(schema_of(reader, "counters").fields[20].name, "m19");
  EXPECT_EQ(snapshot_of(reader, "counters").value().version, 0U);
  std::vector<double> values(20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5 + static_cast<double>(i);
  writer->publish(1, 1234, values);
  const Snapshot snapshot = snapshot_of(reader, "counters").value();
  EXPECT_EQ(snapshot.values, values);
  EXPECT_EQ(snapshot.time_ns, 1234);
  EXPECT_EQ(snapshot.version, 2U);
  EXPECT_EQ(snapshot_of(reader, "link").value().version, 0U);
}

// Claim:  a snapshot taken while the writer writes holds values of one write only.
// Oracle: each write sets all 40 values and the time to the same number.
TEST_F(Region, ASnapshotIsNeverTorn) {
  auto writer = RegionWriter::create(path(), {wide_group(40)});
  ASSERT_TRUE(writer);
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    std::vector<double> values(40);
    for (std::int64_t n = 1; !stop; ++n) {
      std::fill(values.begin(), values.end(), static_cast<double>(n));
      writer->publish(0, n, values);
      if (n % 64 == 0) std::this_thread::yield();
    }
  });
  ArenaReader reader = reader_of(path());
  std::int64_t last = 0;
  int moved = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (moved < 2000 && std::chrono::steady_clock::now() < deadline) {
    const auto snapshot = snapshot_of(reader, "counters");
    if (!snapshot) continue;  // the writer was stopped in the middle of a write
    for (const double value : snapshot->values) {
      ASSERT_EQ(value, static_cast<double>(snapshot->time_ns));
    }
    ASSERT_GE(snapshot->time_ns, last);
    moved += snapshot->time_ns > last ? 1 : 0;
    last = snapshot->time_ns;
  }
  stop = true;
  writing.join();
  EXPECT_GT(moved, 100) << "the writer never moved while it was watched";
}

TEST_F(Region, BadNamesAreRefusedAndNothingIsLeft) {
  const std::vector<std::vector<Group>> bad = {
      {{"", {{"a", ""}}}},
      {{"g", {}}},
      {{"g", {{"a", ""}, {"a", ""}}}},
      {{"g", {{"a", ""}}}, {"g", {{"a", ""}}}},
      {{"g", {{std::string(64, 'x'), ""}}}},
      {{"g", {{"a b", ""}}}},
      {{"g", {{"time_ns", ""}}}},
      {{"g", {{"a", std::string(33, 'x')}}}},
  };
  for (const auto& groups : bad) {
    EXPECT_EQ(RegionWriter::create(path(), groups).error().code, ErrorCode::kBadInput);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(RegionWriter::create(folder_ + "/none/r", {wide_group(1)}).error().code,
            ErrorCode::kIo);
}

// Claim: whatever the bytes of a region are, the reader answers and never reads outside it.
TEST_F(Region, MalformedRegionsAreRefused) {
  ASSERT_TRUE(RegionWriter::create(path(), {wide_group(9)}));
  std::ifstream file(path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(9);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = good;
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      bytes[random() % (round % 2 == 0 ? 400 : bytes.size())] = static_cast<char>(random());
    }
    if (round % 5 == 0) bytes.resize(random() % bytes.size() / 64 * 64);
    std::ofstream(path(), std::ios::binary) << bytes;
    auto source = map_region(path());
    if (!source) {
      ++refused;
      continue;
    }
    auto reader = ArenaReader::open(std::move(*source));
    const auto readings = reader ? reader->look() : pass_on(reader);
    refused += readings ? 0 : 1;
    for (std::size_t i = 0; readings && i < readings->size(); ++i) {
      const Reading& reading = (*readings)[i];
      EXPECT_EQ(reading.bytes.size(), reading.row->schema->struct_bytes);
    }
  }
  EXPECT_GT(refused, 50);
}

// Claim:  a reader whose file is cut gets an error, at every length, and reads other regions as
//         before; the writer goes on and can tell. Without care each is a SIGBUS.
TEST_F(Region, ThatShrinksHurtsNobody) {
  const std::vector<Group> groups = {{"g", {{"a", ""}}}, wide_group(3000)};
  auto other = RegionWriter::create(folder_ + "/other", groups);
  ASSERT_TRUE(other) << other.error().message;
  other->publish(0, 1, std::vector{5.0});
  ArenaReader unhurt = reader_of(folder_ + "/other");
  const std::vector<double> values(3000, 1.0);
  for (const std::uintmax_t cut_by : {std::uintmax_t{1}, std::uintmax_t{64}, std::uintmax_t{4096},
                                      std::uintmax_t{100000}, std::uintmax_t{0}}) {
    auto writer = RegionWriter::create(path(), groups);
    ASSERT_TRUE(writer) << writer.error().message;
    writer->publish(1, 1, values);
    ArenaReader reader = reader_of(path());
    ASSERT_TRUE(snapshot_of(reader, "counters"));
    EXPECT_TRUE(writer->whole());
    const std::uintmax_t bytes = std::filesystem::file_size(path());
    std::filesystem::resize_file(path(), cut_by == 0 ? 0 : bytes - cut_by);
    const auto snapshot = snapshot_of(reader, "counters");
    ASSERT_FALSE(snapshot) << "cut by " << cut_by;
    EXPECT_EQ(snapshot.error().code, ErrorCode::kIo);
    EXPECT_NE(snapshot.error().message.find("was cut"), std::string::npos);
    writer->publish(1, 2, values);
    EXPECT_FALSE(writer->whole());
    EXPECT_EQ(snapshot_of(unhurt, "g").value().values.front(), 5.0);
  }
}

// Claim:  a full disk is told when the region is made; nothing is left behind.
// Method: a child mounts a file system of 64 KiB that nobody else sees.
TEST_F(Region, IsRefusedWhereTheDiskIsFull) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(77);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") != 0) _exit(77);
    const auto writer = RegionWriter::create(path(), {wide_group(30000)});
    if (writer || writer.error().code != ErrorCode::kIo) _exit(1);
    if (!std::filesystem::is_empty(folder_)) _exit(2);
    auto small = RegionWriter::create(path(), {wide_group(3)});
    if (!small) _exit(3);
    small->publish(0, 1, std::vector{1.0, 2.0, 3.0});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "needs root or user namespaces, to mount a small file system";
  }
  EXPECT_EQ(status, 0) << "a signal, or the step that failed";
}

// Claim:  a SIGBUS that is nobody's region still ends the program.
TEST_F(Region, OtherBusErrorsAreNotHidden) {
  ASSERT_TRUE(RegionWriter::create(path(), {wide_group(3)}));
  EXPECT_EXIT(
      {
        const ArenaReader reader = reader_of(path());
        const int file = open((folder_ + "/plain").c_str(), O_RDWR | O_CREAT, 0600);
        char* const bytes = static_cast<char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
        _exit(*static_cast<volatile char*>(bytes));
      },
      [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }, "");
}

}  // namespace
}  // namespace greynic::zero
