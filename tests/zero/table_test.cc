#include "greynic/zero/table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "greynic/zero/reader.h"

namespace greynic::zero {
namespace {

struct TwoKinds {
  std::uint64_t a, b;
};
const zero_field kFields[] = {{"a", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "", "", ""},
                              {"b", ZERO_F64, ZERO_GAUGE, 8, 1, 0, "s", "Help", "k=\"v\""}};
const zero_schema kTwoKinds = {"pair", "", kFields, 2, sizeof(TwoKinds), ZERO_PLAIN};
const zero_schema kWholePair = {"whole", "", kFields, 2, sizeof(TwoKinds), ZERO_WHOLE};

/// A good arena of three rows that a test may spoil.
struct Spoiled {
  alignas(64) std::array<std::byte, 64 << 10> memory{};
  zero_arena* arena = nullptr;

  Spoiled() {
    const zero_arena_options options = {ZERO_PERSISTENT, sizeof memory, 16, 0, "spoiled"};
    arena = zero_arena_format(memory.data(), &options);
    for (const zero_schema* schema : {&kTwoKinds, &kTwoKinds, &kWholePair}) {
      void* const row = zero_arena_malloc(arena, 64);
      EXPECT_EQ(zero_arena_publish(arena, row, schema, "x=\"1\""), 0) << zero_error();
    }
  }
  ~Spoiled() { zero_arena_destroy(arena); }
  zero_header& header() { return *reinterpret_cast<zero_header*>(memory.data()); }
  zero_row& row(std::size_t i) {
    return reinterpret_cast<zero_row*>(memory.data() + header().rows_offset)[i];
  }
  std::byte* schema(std::size_t i) { return memory.data() + row(i).schema; }
  void sign(std::size_t i) {
    zero_schema_head head;
    std::memcpy(&head, schema(i), sizeof head);
    std::uint64_t check = 0xcbf29ce484222325ULL;
    for (std::uint32_t at = 8; at < head.bytes; ++at) {
      check = (check ^ std::to_integer<std::uint64_t>(schema(i)[at])) * 0x100000001b3ULL;
    }
    std::memcpy(schema(i), &check, sizeof check);
  }
  zero_schema_field& field(std::size_t i, std::size_t f) {
    return *reinterpret_cast<zero_schema_field*>(schema(i) + sizeof(zero_schema_head) +
                                                 f * sizeof(zero_schema_field));
  }
  Result<std::size_t> read() {
    auto reader = ArenaReader::open(memory_source(memory));
    if (!reader) return pass_on(reader);
    const auto readings = reader->look();
    if (!readings) return pass_on(readings);
    return readings->size();
  }
};

struct Case {
  const char* says;
  std::function<void(Spoiled&)> spoil;
};

// Claim:  each way to be hostile is refused, by a message that names it.
TEST(Table, HostileOnesAreRefusedByName) {
  const std::vector<Case> cases = {
      {"first bytes", [](Spoiled& s) { s.header().magic[7] = '3'; }},
      {"version 3", [](Spoiled& s) { s.header().version = 3; }},
      {"of kind 2", [](Spoiled& s) { s.header().kind = ZERO_KIND_DIRECTORY; }},
      {"do not fit together", [](Spoiled& s) { s.header().bytes = UINT64_MAX; }},
      {"do not fit together", [](Spoiled& s) { s.header().row_bytes = 64; }},
      {"do not fit together", [](Spoiled& s) { s.header().row_count = UINT64_MAX; }},
      {"do not fit together", [](Spoiled& s) { s.header().incarnation = 0; }},
      {"do not fit together", [](Spoiled& s) { s.header().metric_class = 3; }},
      {"do not lie within", [](Spoiled& s) { s.header().rows_offset = UINT64_MAX - 63; }},
      {"do not lie within", [](Spoiled& s) { s.header().row_capacity = ZERO_MOST_ROWS; }},
      {"do not lie within", [](Spoiled& s) { s.header().schemas_used = UINT64_MAX - 7; }},
      {"do not lie within", [](Spoiled& s) { s.header().data_offset = 1 << 20; }},
      {"do not lie within", [](Spoiled& s) { s.header().schemas_offset = 256; }},
      {"no plain text", [](Spoiled& s) { std::memset(s.header().name, 0x1b, 64); }},
      {"shorter than its table",
       [](Spoiled& s) { s.header().bytes = 1 << 20, s.row(1).offset = 1 << 19; }},
      {"rows 0 and 1 overlap", [](Spoiled& s) { s.row(1).offset = s.row(0).offset + 8; }},
      {"row 0: lies outside", [](Spoiled& s) { s.row(0).offset = 0; }},
      {"row 0: lies outside", [](Spoiled& s) { s.row(0).offset = s.header().bytes - 8; }},
      {"row 0: lies outside", [](Spoiled& s) { s.row(0).offset = UINT64_MAX - 7; }},
      {"row 0: lies outside", [](Spoiled& s) { s.row(0).size = UINT32_MAX; }},
      {"no multiple of 8", [](Spoiled& s) { s.row(0).offset += 4; }},
      {"beyond the end",
       [](Spoiled& s) { s.row(0).segment = 1, s.row(0).offset = UINT64_MAX - 7; }},
      {"unknown segment", [](Spoiled& s) { s.row(0).segment = 2; }},
      {"unknown state", [](Spoiled& s) { s.row(0).state = 9; }},
      {"instance 1 of another", [](Spoiled& s) { s.row(1).instance = 1; }},
      {"another size", [](Spoiled& s) { s.row(1).size = 8; }},
      {"another size or place", [](Spoiled& s) { s.row(2).offset += 8; }},
      {"another size or place", [](Spoiled& s) { s.row(2).segment = 1; }},
      {"labels", [](Spoiled& s) { s.row(0).label[0].text[0] = '='; }},
      {"labels", [](Spoiled& s) { std::memset(s.row(0).label[0].text, 'a', 56); }},
      {"its schema lies outside", [](Spoiled& s) { s.row(0).schema = 0; }},
      {"lies outside", [](Spoiled& s) { s.row(0).schema = UINT64_MAX - 7; }},
      {"wrong checksum", [](Spoiled& s) { s.schema(0)[40] ^= std::byte{1}; }},
      {"do not fit",
       [](Spoiled& s) { s.schema(0)[8] = std::byte{0xff}, s.schema(0)[10] = std::byte{1}; }},
      {"field a does not fit", [](Spoiled& s) { s.field(0, 0).offset = 16, s.sign(0); }},
      {"field a does not fit", [](Spoiled& s) { s.field(0, 0).count = UINT32_MAX, s.sign(0); }},
      {"field a does not fit", [](Spoiled& s) { s.field(0, 0).type = 99, s.sign(0); }},
      {"field a does not fit", [](Spoiled& s) { s.field(0, 0).kind = ZERO_HISTOGRAM, s.sign(0); }},
      {"no good name", [](Spoiled& s) { s.field(0, 0).name_at = 4, s.sign(0); }},
      {"no good name", [](Spoiled& s) { s.field(0, 0).unit_at = UINT32_MAX, s.sign(0); }},
      {"stands twice",
       [](Spoiled& s) {
         s.field(0, 1).name_at = s.field(0, 0).name_at,
                    s.field(0, 1).labels_at = s.field(0, 0).labels_at, s.sign(0);
       }},
  };
  ASSERT_EQ(Spoiled().read().value(), 3U);
  for (const Case& one : cases) {
    Spoiled spoiled;
    one.spoil(spoiled);
    const auto read = spoiled.read();
    ASSERT_FALSE(read) << one.says;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput) << one.says;
    EXPECT_NE(read.error().message.find(one.says), std::string::npos) << read.error().message;
  }
}

// Claim: generations and epochs that go round in circles are told while the arena is watched.
TEST(Table, ThatGoesBackIsRefused) {
  Spoiled spoiled;
  auto reader = ArenaReader::open(memory_source(spoiled.memory));
  ASSERT_TRUE(reader && reader->look());
  spoiled.header().epoch += 2;
  zero_row& row = spoiled.row(1);
  row.generation = 4;
  for (auto& line : row.label) line.generation = 4;
  ASSERT_TRUE(reader->look());
  spoiled.header().epoch += 2;
  row.generation = 2;
  for (auto& line : row.label) line.generation = 2;
  auto looked = reader->look();
  ASSERT_FALSE(looked);
  EXPECT_NE(looked.error().message.find("generation went back from 4 to 2"), std::string::npos);
  spoiled.header().epoch = 2;
  looked = reader->look();
  ASSERT_FALSE(looked);
  EXPECT_NE(looked.error().message.find("epoch went back"), std::string::npos);
}

// Claim: an owner that died in the middle of a change leaves its whole rows readable.
TEST(Table, OfADeadOwnerIsReadAsFarAsItIsWhole) {
  Spoiled spoiled;
  spoiled.header().epoch |= 1;
  spoiled.row(1).label[2].generation = 3;
  EXPECT_EQ(spoiled.read().value(), 2U);
  // In the middle of a write: that structure is left out.
  reinterpret_cast<zero_line*>(spoiled.memory.data() + spoiled.row(2).offset)->version = 7;
  EXPECT_EQ(spoiled.read().value(), 1U);
}

// Claim:  whatever the bytes are, the reader answers, within the memory.
// Method: words of a good arena are replaced by words that hurt. Run with the sanitizers, too.
TEST(Table, AnyBytesAreAnswered) {
  std::mt19937_64 random(19);
  const std::uint64_t hurting[] = {0, 1, 2, 7, 64, 4096, 65536, UINT32_MAX, UINT64_MAX, 1ULL << 63};
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    Spoiled spoiled;
    const std::size_t region = round % 3 == 0   ? 32
                               : round % 3 == 1 ? 160
                                                : spoiled.memory.size() / 8;
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      const std::uint64_t word = random() % 2 == 0 ? hurting[random() % 10] : random();
      std::memcpy(spoiled.memory.data() + random() % region * 8, &word, sizeof word);
    }
    refused += spoiled.read() ? 0 : 1;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace greynic::zero
