// Runs where an RDMA device is: the twin's inside `greynic lab-run`, Soft-RoCE in the small machine.
// The host's end is on the first one, the collector's on the last.

#include <array>
#include <atomic>
#include <cstring>
#include <numeric>

#include "greynic/verbs/device.h"
#include "greynic/zero/reader.h"
#include "greynic_zero.h"
#include "keys.h"
#include "queue_pairs.h"
#include "rdma.h"
#include "remote_fixture.h"

namespace greynic::monitor {
namespace {

using remote::RdmaQueue;
using remote::RdmaReader;

class RdmaHost : public RemoteHost {
 protected:
  void SetUp() override {
    RemoteHost::SetUp();
    const auto names = verbs::device_names();
    if (names.empty())
      GTEST_SKIP() << "no RDMA device; run under `greynic lab-run --session NAME --host 0 --`";
    device_ = names.front();
    reading_device_ = names.back();
  }
  HostSpec by_device(const std::string& name, const std::string& certificates) const {
    HostSpec spec = behind_door(name, certificates);
    spec.device = reading_device_;
    return spec;
  }
  RdmaQueue queue() const { return queue_of(device_); }
  RdmaQueue reading_queue() const { return queue_of(reading_device_); }

  std::string reading_device_;

 private:
  static RdmaQueue queue_of(const std::string& device) {
    auto made = RdmaQueue::create(**remote::shared_device(device), RdmaReader::kPosted);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
};

void join(RdmaQueue& one, RdmaQueue& other) {
  const auto there = one.connect(other.end());
  ASSERT_TRUE(there) << there.error().message;
  const auto back = other.connect(one.end());
  ASSERT_TRUE(back) << back.error().message;
}

/// A host of one number, for collectors whose queue pairs come and go.
struct FarHost {
  FarHost(RdmaQueue made, std::uint64_t value) : queue(std::move(made)), memory(512, value) {
    exposed.emplace(std::move(*remote::expose(queue, std::as_bytes(std::span(memory)))));
  }
  Result<void> join(RdmaQueue& from) {
    if (auto ready = queue.reset(); !ready) return ready;
    if (auto there = queue.connect(from.end()); !there) return there;
    return from.connect(queue.end());
  }
  RdmaQueue queue;
  std::vector<std::uint64_t> memory;
  std::optional<remote::Exposed> exposed;
};

remote::Place place_of(const remote::Exposed& exposed) {
  return {exposed.address, exposed.region.remote_key(), exposed.bytes};
}

std::span<std::byte> bytes_of(std::vector<std::uint64_t>& words) {
  return std::as_writable_bytes(std::span(words));
}

// Claim:  through a queue pair a collector sees what one on the host itself sees; an agent that is
//         started anew is read again.
TEST_F(RdmaHost, IsReadLikeOneOfThisMachine) {
  make_lab({"alice"});
  start_agent();
  open_door();
  read_like_here(by_device("far", of_client("alice")), "READ");
}

// Claim:  a client sees its classes and no other, one that is revoked sees nothing any more, though
//         its queue pair needs nobody's help, and an agent without a device says so.
TEST_F(RdmaHost, ShowsAClientItsClassesUntilItIsRevoked) {
  make_lab({"alice", "bob"});
  start_agent();
  open_door({"alice=persistent", "bob=persistent"});
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  start_remote_collector(
      {by_device("alice", of_client("alice")), by_device("bob", of_client("bob"))});
  std::set<int> classes;
  ASSERT_TRUE(wait_for([&] {
    collector_->latest([&](const series::Group& group, std::int64_t, auto) {
      classes.insert(group.metric_class);
    });
    auto values = latest();
    return values["alice" + kRequests] > 5 && values["bob" + kRequests] > 5;
  })) << told()
      << collector_->hosts()[0].reason;
  EXPECT_EQ(classes, std::set<int>{ZERO_PERSISTENT});
  ASSERT_TRUE(agent::revoke_certificate(lab(), of_client("bob") + "/client.pem"));
  EXPECT_TRUE(goes_down(1, "revoked")) << collector_->hosts()[1].reason;
  const double before = latest()["alice" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["alice" + kRequests] > before + 5; })) << told();
  stop_collector();
  door_.reset();
  device_.clear();
  open_door();
  device_ = verbs::device_names().front();
  start_remote_collector({by_device("plain", of_client("alice"))});
  EXPECT_TRUE(goes_down(0, "--device")) << collector_->hosts()[0].reason;
}

// Claim:  a key opens nothing but through the queue pair of the caller that it was given to, and
//         nothing once it was withdrawn; the refusal is told, and a new queue pair works.
TEST_F(RdmaHost, AKeyOpensNothingForOthersNorLater) {
  std::vector<std::uint64_t> memory(1024), into(1024);
  std::iota(memory.begin(), memory.end(), 1);
  const zero::Piece whole{false, 0, bytes_of(into)};
  RdmaQueue of_alice = queue(), of_bob = queue();
  auto exposed = remote::expose(of_alice, std::as_bytes(std::span(memory)));
  ASSERT_TRUE(exposed) << exposed.error().message;
  {
    RdmaReader bob(reading_queue(), std::chrono::seconds(20));
    join(bob.queue(), of_bob);
    const auto stolen = bob.read(place_of(*exposed), std::span(&whole, 1));
    ASSERT_FALSE(stolen);
    EXPECT_NE(stolen.error().message.find("not exposed"), std::string::npos)
        << stolen.error().message;
    EXPECT_EQ(into[5], 0U);
    EXPECT_FALSE(bob.read(place_of(*exposed), std::span(&whole, 1))) << "useless after an error";
  }
  RdmaReader alice(reading_queue(), std::chrono::seconds(20));
  join(alice.queue(), of_alice);
  const auto got = alice.read(place_of(*exposed), std::span(&whole, 1));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(into, memory);
  remote::Place wide = place_of(*exposed);
  wide.bytes += 64;
  const zero::Piece beyond{false, exposed->bytes - 8, bytes_of(into).first(16)};
  EXPECT_EQ(alice.read(place_of(*exposed), std::span(&beyond, 1)).error().code,
            ErrorCode::kBadInput);
  EXPECT_EQ(alice.read(wide, std::span(&beyond, 1)).error().code, ErrorCode::kIo)
      << "the device holds the bound too";
  RdmaReader again(reading_queue(), std::chrono::seconds(20));
  RdmaQueue anew = queue();
  join(again.queue(), anew);
  auto second = remote::expose(anew, std::as_bytes(std::span(memory)));
  ASSERT_TRUE(second);
  ASSERT_TRUE(again.read(place_of(*second), std::span(&whole, 1)));
  const remote::Place place = place_of(*second);
  { const remote::Exposed withdrawn = std::move(*second); }
  EXPECT_EQ(again.read(place, std::span(&whole, 1)).error().code, ErrorCode::kIo);
}

// Claim:  pieces come in the order in which they are asked for, also more of them than are posted at
//         once, and each word whole.
// Oracle: a writer counts in the first word before it counts in the last, so who reads the last before
//         the first finds no less in the first. Both halves of a word are the count.
// Method: until 100 READs saw a change. Soft-RoCE copies bytes, and an emulated processor copies them
//         one by one, so words that are torn are left out there.
TEST_F(RdmaHost, IsReadInTheOrderOfThePieces) {
  std::vector<std::uint64_t> memory(64 * 8), into(200);
  RdmaQueue near = queue();
  RdmaReader reader(reading_queue(), std::chrono::seconds(20));
  join(reader.queue(), near);
  auto exposed = remote::expose(near, std::as_bytes(std::span(memory)));
  ASSERT_TRUE(exposed) << exposed.error().message;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t count = 1; !over; ++count) {
      for (const std::size_t at : {std::size_t{0}, memory.size() - 1}) {
        std::atomic_ref(memory[at]).store(count << 32 | count);
      }
    }
  });
  std::vector<zero::Piece> pieces;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::size_t word = i % 2 == 0 ? memory.size() - 1 : 0;
    pieces.push_back({false, word * 8, bytes_of(into).subspan(i * 8, 8)});
  }
  const auto is_whole = [](std::uint64_t word) { return word >> 32 == (word & UINT32_MAX); };
  constexpr int kChanges = 100;
  int changed = 0;
  std::uint64_t last = 0, torn = 0;
  for (int looks = 0; changed < kChanges && looks < 100'000 && !HasFailure(); ++looks) {
    const auto got = reader.read(place_of(*exposed), pieces);
    EXPECT_TRUE(got) << got.error().message;
    std::uint64_t before = 0;
    for (std::size_t i = 0; got && i < into.size(); ++i) {
      const std::uint64_t count = into[i] >> 32;
      if (!is_whole(into[i])) {
        ++torn;
      } else {
        EXPECT_GE(count + (i % 2 == 0 ? 1 : 0), before) << i;
        before = count;
      }
    }
    changed += into.back() != last ? 1 : 0;
    last = into.back();
  }
  over = true;
  writer.join();
  EXPECT_EQ(changed, kChanges);
  if (!device_.starts_with("rxe")) EXPECT_EQ(torn, 0U);
}

// Claim:  memory that is withdrawn and unmapped while READs of it are under way ends them with an
//         error, and not before every value was right.
TEST_F(RdmaHost, MemoryThatGoesUnderAReadEndsItCleanly) {
  for (int round = 0; round < 5; ++round) {
    auto memory = std::make_unique<std::vector<std::uint64_t>>(1 << 15, 7);
    std::vector<std::uint64_t> into(1 << 15);
    const zero::Piece whole{false, 0, bytes_of(into)};
    RdmaQueue near = queue();
    RdmaReader reader(reading_queue(), std::chrono::seconds(5));
    join(reader.queue(), near);
    std::optional<remote::Exposed> exposed =
        std::move(*remote::expose(near, std::as_bytes(std::span(*memory))));
    const remote::Place place = place_of(*exposed);
    std::atomic<int> good{0};
    std::atomic<bool> over{false};
    std::string ended;
    std::thread reading([&] {
      while (ended.empty()) {
        const auto got = reader.read(place, std::span(&whole, 1));
        if (!got) ended = got.error().message;
        if (got) {
          EXPECT_EQ(std::count(into.begin(), into.end(), 7U), 1 << 15);
          ++good;
        }
      }
      over = true;
    });
    while (good < 1 + round && !over) std::this_thread::yield();
    EXPECT_GT(good, round);
    exposed.reset();
    memory.reset();
    reading.join();
    // Some devices refuse the rest of the READ, some say nothing any more.
    EXPECT_TRUE(ended.find("READ ended with") != std::string::npos ||
                ended.find("no answer in time") != std::string::npos)
        << ended;
  }
}

// Claim:  hosts share fewer queue pairs than they are: each look is at its own host, the queue pair
//         that rested longest is the one that goes, and one that failed works again.
TEST_F(RdmaHost, TakeTurnsWithFewQueuePairs) {
  remote::QueuePairs shared(*remote::shared_device(reading_device_), 2);
  std::vector<FarHost> hosts;
  hosts.reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) hosts.emplace_back(queue(), 100 + i);
  std::vector<std::uint64_t> into(512);
  const zero::Piece whole{false, 0, bytes_of(into)};
  const auto look = [&](std::size_t at, std::uint64_t beyond = 0) {
    auto taken = shared.take(at + 1, std::chrono::seconds(20),
                             [&](RdmaQueue& from) { return hosts[at].join(from); });
    EXPECT_TRUE(taken) << taken.error().message;
    remote::Place place = place_of(*hosts[at].exposed);
    place.address += beyond;
    return taken && taken->reader().read(place, std::span(&whole, 1));
  };
  std::vector<std::uint64_t> joined;
  for (const std::size_t at : {0, 1, 0, 2, 0, 1, 1, 2, 0}) {
    into.assign(512, 0);
    ASSERT_TRUE(look(at)) << at;
    EXPECT_EQ(into, hosts[at].memory);
    joined.push_back(shared.counts().joined);
  }
  EXPECT_EQ(joined, (std::vector<std::uint64_t>{1, 2, 2, 3, 3, 4, 4, 5, 6}));
  EXPECT_EQ(shared.counts().queue_pairs, 2U);
  EXPECT_FALSE(look(0, 64)) << "beyond what is exposed";
  EXPECT_FALSE(look(0)) << "its queue pair is of no use";
  shared.forget(1);
  EXPECT_TRUE(look(0));
  EXPECT_TRUE(look(2));
  EXPECT_EQ(shared.counts().queue_pairs, 2U);
}

// Claim:  who finds all queue pairs in use waits for its patience and no longer, is told the remedy, and
//         is served once one is given back.
TEST_F(RdmaHost, WaitsNoLongerThanItsPatienceForAQueuePair) {
  remote::QueuePairs shared(*remote::shared_device(reading_device_), 2);
  std::vector<FarHost> hosts;
  hosts.reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) hosts.emplace_back(queue(), 100 + i);
  const auto take = [&](std::size_t at, milliseconds patience) {
    return shared.take(at + 1, patience, [&](RdmaQueue& from) { return hosts[at].join(from); });
  };
  auto first = take(0, std::chrono::seconds(30));
  auto second = take(1, std::chrono::seconds(30));
  ASSERT_TRUE(first && second);
  const auto begin = std::chrono::steady_clock::now();
  const auto third = take(2, milliseconds(200));
  const auto waited = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kIo);
  EXPECT_NE(third.error().message.find("--queue-pairs"), std::string::npos)
      << third.error().message;
  EXPECT_GE(waited, milliseconds(200));
  EXPECT_LT(waited, std::chrono::seconds(20));
  std::thread giving([&] {
    std::this_thread::sleep_for(milliseconds(50));
    const remote::QueuePairs::Taken back = std::move(*first);
  });
  EXPECT_TRUE(take(2, std::chrono::seconds(20)));
  giving.join();
}

// Claim:  hundreds of hosts share eight queue pairs, asked by 16 threads at once: none waits without
//         end, and each READ is of its own host.
TEST_F(RdmaHost, ShareFewQueuePairsByHundreds) {
  constexpr std::size_t kThreads = 16, kPairs = 8;
  // Fewer where an emulated processor joins them.
  const std::size_t host_count = device_.starts_with("rxe") ? 64 : 300;
  remote::QueuePairs shared(*remote::shared_device(reading_device_), kPairs);
  std::vector<FarHost> hosts;
  hosts.reserve(host_count);
  for (std::uint64_t i = 0; i < host_count; ++i) hosts.emplace_back(queue(), 100 + i);
  std::atomic<std::size_t> read{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::uint64_t> into(512);
      const zero::Piece whole{false, 0, bytes_of(into)};
      for (std::size_t turn = 0; turn < 2; ++turn) {
        for (std::size_t at = thread; at < host_count; at += kThreads) {
          auto taken = shared.take(at + 1, std::chrono::seconds(30),
                                   [&](RdmaQueue& from) { return hosts[at].join(from); });
          ASSERT_TRUE(taken) << at << ": " << taken.error().message;
          const auto got = taken->reader().read(place_of(*hosts[at].exposed), std::span(&whole, 1));
          ASSERT_TRUE(got) << at << ": " << got.error().message;
          ASSERT_EQ(into, hosts[at].memory) << at;
          ++read;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read, 2 * host_count);
  EXPECT_LE(shared.counts().queue_pairs, kPairs);
}

// Claim:  a collector with one queue pair reads three hosts, each by its own keys.
TEST_F(RdmaHost, IsReadInTurnsThroughOneQueuePair) {
  make_lab({"alice"});
  start_agent();
  open_door();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  links_.queue_pairs = 1;
  std::vector<HostSpec> hosts;
  for (const char* name : {"one", "two", "three"}) {
    hosts.push_back(by_device(name, of_client("alice")));
    hosts.back().interval = milliseconds(50);
  }
  start_remote_collector(hosts);
  const auto read_beyond = [&](double value) {
    return wait_for([&] {
      auto values = latest();
      return values["one" + kRequests] > value && values["two" + kRequests] > value &&
             values["three" + kRequests] > value;
    });
  };
  ASSERT_TRUE(read_beyond(0)) << told();
  EXPECT_TRUE(read_beyond(latest()["one" + kRequests] + 5)) << told();
  stop_collector();
}

// Claim:  the table of keys says what was shown last and nothing that was withdrawn, is READ whole
//         only when it has changed, and when it is hostile it is refused.
TEST_F(RdmaHost, FindsItsArenasInATableOfKeys) {
  RdmaQueue near = queue();
  auto keys = remote::Keys::create(near);
  ASSERT_TRUE(keys) << keys.error().message;
  RdmaReader reader(reading_queue(), std::chrono::seconds(20));
  join(reader.queue(), near);
  int reads = 0;
  std::function<void(std::span<std::byte>)> spoil = [](std::span<std::byte>) {};
  const remote::KeysReader::Read read = [&](const remote::Place& place,
                                            std::span<const zero::Piece> pieces) {
    ++reads;
    auto got = reader.read(place, pieces);
    for (const zero::Piece& piece : pieces) spoil(piece.into);
    return got;
  };
  remote::KeysReader seen(keys->place());
  const auto key_of = [&](std::uint64_t incarnation) -> std::uint64_t {
    const auto found = seen.find(incarnation, read);
    EXPECT_TRUE(found) << found.error().message;
    return found && *found ? (*found)->key : 0;
  };
  EXPECT_EQ(key_of(7), 0U);
  for (std::uint64_t i = 1; i <= remote::kKeyRows; ++i) {
    ASSERT_TRUE(keys->show(i, {i << 12, static_cast<std::uint32_t>(i), 4096}));
  }
  EXPECT_EQ(keys->show(9999, {1, 1, 1}).error().code, ErrorCode::kTooBig);
  for (const std::uint64_t i : {std::uint64_t{1}, std::uint64_t{7}, remote::kKeyRows}) {
    EXPECT_EQ(key_of(i), i);
  }
  reads = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(key_of(7), 7U);
  EXPECT_EQ(reads, 10) << "its head tells that nothing has changed";
  keys->withdraw(7);
  EXPECT_EQ(key_of(7), 0U);
  ASSERT_TRUE(keys->show(8, {1 << 20, 88, 4096}));
  EXPECT_EQ(key_of(8), 88U);
  // Words of the head and of the first row, each as a liar would have it.
  const auto lie = [&](std::size_t bytes, std::size_t word, std::uint64_t value) {
    spoil = [=](std::span<std::byte> into) {
      const bool is_row = into.size() > sizeof(remote::KeyTable);
      if (is_row == (bytes > 0)) std::memcpy(into.data() + word * 8, &value, 8);
    };
    remote::KeysReader fresh(keys->place());
    const auto found = fresh.find(8, read);
    ASSERT_FALSE(found) << bytes << " " << word;
    EXPECT_EQ(found.error().code, ErrorCode::kIo);
  };
  lie(0, 0, 0);                       // no magic
  lie(0, 1, 3);                       // never at rest
  lie(0, 2, remote::kKeyRows + 1);    // more rows than fit
  lie(1, 0, 1);                       // a row that is being changed for ever
  lie(1, 1, 8);                       // one arena twice
  lie(1, 2, UINT64_MAX);              // beyond all addresses
  lie(1, 3, 0);                       // of no bytes
  lie(1, 4, std::uint64_t{1} << 32);  // no key
}

}  // namespace
}  // namespace greynic::monitor
