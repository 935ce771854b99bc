#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "greynic/zero/reader.h"
#include "program.h"

namespace greynic::zero {
namespace {

using Values = std::map<std::string, double>;

/// "schema{labels}.field" of all rows of a running process that live.
Values values_of(pid_t process) {
  Values values;
  const auto arenas = find_arenas(process);
  EXPECT_TRUE(arenas) << arenas.error().message;
  for (const FoundArena& arena : arenas.value_or(std::vector<FoundArena>{})) {
    auto reader = ArenaReader::open(process_source(process, arena));
    EXPECT_TRUE(reader) << reader.error().message;
    if (!reader) continue;
    const auto readings = reader->look();
    EXPECT_TRUE(readings) << readings.error().message;
    for (const Reading& reading : readings.value_or(std::span<const Reading>{})) {
      if (reading.row->ended) continue;
      for (const Field& field : reading.row->schema->fields) {
        values[fmt::format("{}{{{}}}.{}", reading.row->schema->name, reading.row->labels,
                           field.name)] = number_of(field, reading.bytes);
      }
    }
  }
  return values;
}

const Values kStatics = {{"pair{which=\"first\"}.a", 11},
                         {"pair{which=\"first\"}.b", 12},
                         {"pair{which=\"first\"}.c", 0},
                         {"pair{which=\"second\"}.a", 0},
                         {"pair{which=\"second\"}.b", 0},
                         {"pair{which=\"second\"}.c", 23},
                         {"object{}.loads", 7}};

class Statics : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_statics_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    program_ = folder_ + "/statics";
    std::filesystem::copy(ZERO_STATICS, program_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_, program_;
};

// Claim: statics of a program and of an object that it links are found when it starts, also when
//        it was stripped.
TEST_F(Statics, AreFoundInProgramsAndSharedObjects) {
  for (const char* how : {"", "strip ", "strip --strip-all -R .comment "}) {
    if (*how != 0) ASSERT_EQ(std::system((how + program_).c_str()), 0) << "needs binutils";
    Program program({program_});
    ASSERT_EQ(program.line(), "started") << how;
    EXPECT_EQ(values_of(program.pid()), kStatics) << how;
  }
}

// Claim:  they are found even where the section headers themselves are gone.
TEST_F(Statics, AreFoundWithoutSectionHeaders) {
  std::fstream file(program_, std::ios::in | std::ios::out | std::ios::binary);
  Elf64_Ehdr head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  head.e_shoff = 0;
  head.e_shnum = head.e_shstrndx = 0;
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(&head), sizeof head);
  file.close();
  Program program({program_});
  ASSERT_EQ(program.line(), "started");
  EXPECT_EQ(values_of(program.pid()), kStatics);
}

// Claim: an object that is loaded late shows its statics, and they end when it is unloaded; a child
//        counts in arenas of its own.
TEST_F(Statics, ComeAndGoWithTheirObjectAndAreNotSharedWithAChild) {
  Program program({program_, ZERO_LOADED});
  ASSERT_EQ(program.line(), "started");
  program.go_on();
  ASSERT_EQ(program.line(), "1 more");
  ASSERT_EQ(program.line(), "loaded");
  program.go_on();
  ASSERT_EQ(program.line(), "unloaded");
  EXPECT_EQ(values_of(program.pid()), kStatics);
  program.go_on();
  std::string a = program.line(), b = program.line();
  if (a == "forked") std::swap(a, b);
  const pid_t child = std::atoi(a.c_str());
  ASSERT_GT(child, 0);
  EXPECT_EQ(values_of(program.pid()), kStatics);
  Values of_child = kStatics;
  of_child["pair{which=\"first\"}.a"] = 1011;
  EXPECT_EQ(values_of(child), of_child);
  kill(child, SIGKILL);
}

// Claim: the example programs count, in each of the ways to declare a metric.
TEST(Examples, CountInEachWay) {
  for (const char* path : {ZERO_WATCHED_C, ZERO_WATCHED_CC}) {
    Program program({path, "60"});
    ASSERT_EQ(program.line(), "counting") << path;
    const bool in_c = std::string(path) == ZERO_WATCHED_C;
    std::vector<std::string> expected = {"requests{port=\"80\"}.requests"};
    if (in_c) expected = {"server{port=\"80\"}.requests", "server{port=\"81\"}.requests"};
    for (const std::string& requests : expected) {
      Values values;
      for (int i = 0; i < 2000 && values[requests] == 0; ++i) {
        usleep(10000);
        values = values_of(program.pid());
      }
      EXPECT_GT(values[requests], 0) << path << ": " << requests;
    }
  }
}

}  // namespace
}  // namespace greynic::zero
