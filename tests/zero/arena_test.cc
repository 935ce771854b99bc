#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "greynic/zero/reader.h"
#include "greynic_zero.h"

namespace greynic::zero {
namespace {

struct Pair {
  std::uint64_t id;
  std::uint64_t value;
};
const zero_field kPairFields[] = {
    {"id", ZERO_U64, ZERO_GAUGE, offsetof(Pair, id), 1, 0, "", "", ""},
    {"value", ZERO_U64, ZERO_COUNTER, offsetof(Pair, value), 1, 0, "B", "What it has", ""}};
const zero_schema kPlain = {"pair", "Two numbers", kPairFields, 2, sizeof(Pair), ZERO_PLAIN};

constexpr int kWide = 40;
struct Wide {
  std::uint64_t words[kWide];
};
const zero_field kWideFields[] = {{"words", ZERO_U64, ZERO_GAUGE, 0, kWide, 0, "", "", ""}};
const zero_schema kWhole = {"wide", "", kWideFields, 1, sizeof(Wide), ZERO_WHOLE};

struct Closer {
  void operator()(zero_arena* arena) const { zero_arena_destroy(arena); }
};
using Arena = std::unique_ptr<zero_arena, Closer>;

Arena make(zero_arena_options options) { return Arena(zero_arena_create(&options)); }

ArenaReader reader_of(const Arena& arena) {
  return *ArenaReader::open(
      memory_source({static_cast<const std::byte*>(zero_arena_memory(arena.get())),
                     zero_arena_bytes(arena.get())}));
}

std::uint64_t word_of(const Reading& reading, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, reading.bytes.data() + index * sizeof word, sizeof word);
  return word;
}

// Claim:  whatever a program does, a reader sees what lives, and each row that ended once more.
// Oracle: a map of what was published, with plain values.
// Method: random calls on an arena so small that it is full again and again.
TEST(Arena, IsReadAsAPlainModelSays) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Arena arena = make({.metric_class = ZERO_TIDAL,
                              .bytes = 64 << 10,
                              .rows = 40,
                              .linger_ns = seed % 2 == 0 ? UINT64_MAX : 0,
                              .name = "model"});
    ASSERT_TRUE(arena) << zero_error();
    ArenaReader reader = reader_of(arena);
    struct Kept {
      void* memory;
      bool whole;
      std::uint64_t value;
    };
    std::map<std::string, Kept> model;
    std::map<std::string, std::uint64_t> ended;
    std::set<std::string> told;
    int full = 0;
    for (int step = 0; step < 4000; ++step) {
      const std::uint64_t what = random() % 10;
      if (what < 4) {
        const bool whole = random() % 3 == 0;
        const std::string labels = fmt::format("n=\"{}\"", step);
        void* const memory =
            zero_arena_malloc(arena.get(), whole ? zero_whole_size(sizeof(Wide)) : sizeof(Pair));
        if (memory == nullptr) {
          ++full;
        } else if (zero_arena_publish(arena.get(), memory, whole ? &kWhole : &kPlain,
                                      labels.c_str()) != 0) {
          ++full;
          ASSERT_EQ(zero_arena_free(arena.get(), memory), 0);
        } else {
          model[labels] = {memory, whole, 0};
        }
      } else if (!model.empty()) {
        auto at = std::next(model.begin(), static_cast<long>(random() % model.size()));
        if (what < 7) {
          at->second.value = random();
          if (at->second.whole) {
            Wide wide;
            std::fill(std::begin(wide.words), std::end(wide.words), at->second.value);
            zero_write(at->second.memory, &wide, sizeof wide);
          } else {
            static_cast<Pair*>(at->second.memory)->value = at->second.value;
          }
        } else {
          ASSERT_EQ(zero_arena_free(arena.get(), at->second.memory), 0);
          ASSERT_NE(zero_arena_free(arena.get(), at->second.memory), 0) << "freed twice";
          ended[at->first] = at->second.value;
          model.erase(at);
        }
      }
      if (random() % 4 != 0) continue;
      const auto readings = reader.look();
      ASSERT_TRUE(readings) << readings.error().message;
      std::size_t live = 0;
      for (const Reading& reading : *readings) {
        const std::string& labels = reading.row->labels;
        const bool is_whole = reading.row->schema->layout == ZERO_WHOLE;
        if (reading.row->ended) {
          ASSERT_TRUE(ended.contains(labels));
          ASSERT_TRUE(told.insert(labels).second) << labels << " was told twice";
        } else {
          ASSERT_TRUE(model.contains(labels)) << labels;
          ++live;
        }
        const std::uint64_t value = reading.row->ended ? ended[labels] : model[labels].value;
        for (std::size_t i = is_whole ? 0 : 1; i < reading.bytes.size() / 8; ++i) {
          ASSERT_EQ(word_of(reading, i), value) << labels;
        }
      }
      ASSERT_EQ(live, model.size());
    }
    ASSERT_TRUE(reader.look());
    EXPECT_EQ(reader.header().refused, static_cast<std::uint64_t>(full));
    if (seed % 2 == 1) {
      EXPECT_GT(full, 0) << "nothing is reused while it lingers, so the arena fills";
    } else {
      EXPECT_GT(reader.header().ended, 500U);
    }
  }
}

// Claim:  with writers, and with rows that come and go, no value is torn, none is of another row,
//         and the last value of each is seen once.
// Oracle: what a row may hold follows from its label.
TEST(Arena, IsNeverTornOldOrLostUnderWriters) {
  constexpr std::uint64_t kCalls = 30000;
  const Arena arena = make({.metric_class = ZERO_TIDAL,
                            .bytes = 64 << 20,
                            .rows = kCalls + 100,
                            .linger_ns = 20'000'000'000,
                            .name = "stress"});
  ASSERT_TRUE(arena) << zero_error();
  void* const wide = zero_arena_malloc(arena.get(), zero_whole_size(sizeof(Wide)));
  ASSERT_EQ(zero_arena_publish(arena.get(), wide, &kWhole, ""), 0);
  std::atomic<bool> stop = false, called = false;
  std::thread writer([&] {
    Wide value;
    for (std::uint64_t n = 1; !stop; ++n) {
      std::fill(std::begin(value.words), std::end(value.words), n);
      zero_write(wide, &value, sizeof value);
      if (n % 16 == 0) std::this_thread::yield();
    }
  });
  std::thread caller([&] {
    for (std::uint64_t n = 0; n < kCalls; ++n) {
      void* const memory = zero_arena_malloc(arena.get(), sizeof(Pair));
      ASSERT_NE(memory, nullptr) << zero_error();
      zero_add(&static_cast<Pair*>(memory)->id, n);
      ASSERT_EQ(
          zero_arena_publish(arena.get(), memory, &kPlain, fmt::format("n=\"{}\"", n).c_str()), 0);
      zero_add(&static_cast<Pair*>(memory)->value, n * 7);
      ASSERT_EQ(zero_arena_free(arena.get(), memory), 0);
      if (n % 32 == 0) std::this_thread::yield();
    }
    called = true;
  });
  ArenaReader reader = reader_of(arena);
  std::vector<int> ends(kCalls, 0);
  std::uint64_t last = 0, looks = 0, moved = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (bool over = false; !over;) {
    // One more look after the last call.
    over = called && (moved > 20 || std::chrono::steady_clock::now() > deadline);
    const auto readings = reader.look();
    if (!readings && readings.error().code == ErrorCode::kRefused && !over) continue;
    ASSERT_TRUE(readings) << readings.error().message;
    ++looks;
    for (const Reading& reading : *readings) {
      if (reading.row->schema->layout == ZERO_WHOLE) {
        for (std::size_t i = 1; i < kWide; ++i) ASSERT_EQ(word_of(reading, i), word_of(reading, 0));
        ASSERT_GE(word_of(reading, 0), last);
        moved += word_of(reading, 0) > last ? 1 : 0;
        last = word_of(reading, 0);
        continue;
      }
      const std::uint64_t id = word_of(reading, 0);
      ASSERT_EQ(reading.row->labels, fmt::format("n=\"{}\"", id));
      if (reading.row->ended) {
        ASSERT_EQ(word_of(reading, 1), id * 7);
        ++ends[id];
      } else {
        ASSERT_TRUE(word_of(reading, 1) == 0 || word_of(reading, 1) == id * 7);
      }
    }
  }
  stop = true;
  writer.join();
  caller.join();
  for (std::uint64_t n = 0; n < kCalls; ++n) ASSERT_EQ(ends[n], 1) << n;
  EXPECT_GT(looks, 5U);
  EXPECT_GT(moved, 20U) << "the writer never moved while it was watched";
}

// Claim: an arena that was started anew in the same memory is told from the one before.
TEST(Arena, StartedAnewIsNotTakenForAlive) {
  std::vector<std::uint64_t> memory((64 << 10) / 8 + 8);
  void* const aligned =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  const zero_arena_options options = {ZERO_SYSTEM, 64 << 10, 20, 0, "first"};
  Arena first(zero_arena_format(aligned, &options));
  void* const row = zero_arena_malloc(first.get(), sizeof(Pair));
  ASSERT_EQ(zero_arena_publish(first.get(), row, &kPlain, ""), 0);
  auto reader =
      ArenaReader::open(memory_source({static_cast<const std::byte*>(aligned), 64 << 10}));
  ASSERT_TRUE(reader && reader->look());
  first.reset();
  const Arena second(zero_arena_format(aligned, &options));
  void* const again = zero_arena_malloc(second.get(), sizeof(Pair));
  ASSERT_EQ(zero_arena_publish(second.get(), again, &kPlain, ""), 0);
  const auto readings = reader->look();
  ASSERT_FALSE(readings);
  EXPECT_EQ(readings.error().code, ErrorCode::kRefused);
}

// Claim: what no table can hold is refused in words, and nothing is published.
TEST(Arena, RefusesWhatIsNoMetric) {
  const Arena arena = make({.metric_class = ZERO_SYSTEM, .bytes = 64 << 10, .rows = 8});
  void* const memory = zero_arena_malloc(arena.get(), sizeof(Pair));
  zero_field field = kPairFields[0];
  zero_schema bad = kPlain;
  bad.fields = &field;
  bad.field_count = 1;
  const auto refused = [&] { return zero_arena_publish(arena.get(), memory, &bad, "") < 0; };
  field.name = "1st";
  EXPECT_TRUE(refused());
  field = kPairFields[0];
  field.offset = 12;
  EXPECT_TRUE(refused());
  field = kPairFields[0];
  field.count = 3;
  EXPECT_TRUE(refused());
  field = kPairFields[0];
  bad.size = 1 << 10;
  EXPECT_TRUE(refused()) << "larger than its memory";
  for (const char* labels : {"a", "a=", "a=\"", "a=\"b\",", "1=\"b\"", "a=\"\n\"", "a=\"b\"c"}) {
    EXPECT_LT(zero_arena_publish(arena.get(), memory, &kPlain, labels), 0) << labels;
  }
  EXPECT_LT(zero_arena_publish(arena.get(), &field, &kPlain, ""), 0) << "not of the arena";
  EXPECT_EQ(zero_arena_malloc(arena.get(), 1 << 20), nullptr);
  EXPECT_TRUE(reader_of(arena).rows().empty());
  EXPECT_EQ(zero_arena_publish(arena.get(), memory, &kPlain, "a=\"b\\\"\",c=\"\""), 0);
  EXPECT_EQ(reader_of(arena).rows().size(), 1U);
}

// Claim: an arena cannot be cut or grown by whoever gets its memfd, nor be written, where the kernel
//        lets an RDMA device read it all the same (6.2).
TEST(Arena, IsSealed) {
  const Arena arena = make({.metric_class = ZERO_SYSTEM, .bytes = 64 << 10, .rows = 8});
  const int file = zero_arena_file(arena.get());
  EXPECT_NE(ftruncate(file, 4096), 0);
  EXPECT_NE(ftruncate(file, 1 << 20), 0);
  utsname kernel{};
  int major = 0, minor = 0;
  ASSERT_EQ(uname(&kernel), 0);
  ASSERT_EQ(std::sscanf(kernel.release, "%d.%d", &major, &minor), 2);
  if (major < 6 || (major == 6 && minor < 2)) return;
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  EXPECT_LT(pwrite(file, "x", 1, 0), 0);
}

// Claim: a histogram's buckets follow one another, and hold what they say.
TEST(Histogram, BucketsHoldTheirValues) {
  for (const unsigned bits : {0U, 2U, 3U, 8U}) {
    for (std::size_t bucket = 0; bucket < ZERO_HISTOGRAM_BUCKETS(bits); ++bucket) {
      const std::uint64_t begin = zero_bucket_begin(bucket, bits);
      ASSERT_EQ(zero_bucket(begin, bits), bucket) << bits;
      if (bucket > 0) ASSERT_EQ(zero_bucket(begin - 1, bits), bucket - 1) << bits;
    }
    EXPECT_EQ(zero_bucket(UINT64_MAX, bits), ZERO_HISTOGRAM_BUCKETS(bits) - 1);
  }
}

}  // namespace
}  // namespace greynic::zero
