// Runs where an RDMA device is, such as the twin's inside `greynic lab-run`. Both ends are on the
// first one.

#include <array>
#include <atomic>
#include <numeric>

#include "greynic/verbs/device.h"
#include "greynic/zero/reader.h"
#include "greynic_zero.h"
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
  }
  HostSpec by_device(const std::string& name, const std::string& certificates) const {
    HostSpec spec = behind_door(name, certificates);
    spec.device = device_;
    return spec;
  }
  RdmaQueue queue() const {
    auto made = RdmaQueue::create(**remote::shared_device(device_), RdmaReader::kPosted);
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

remote::Place place_of(const remote::Exposed& exposed) {
  return {exposed.address, exposed.region.remote_key(), exposed.bytes};
}

std::span<std::byte> bytes_of(std::vector<std::uint64_t>& words) {
  return std::as_writable_bytes(std::span(words));
}

// Claim:  through a queue pair a collector sees what one on the host itself sees, last values of
//         what lived for milliseconds among them; an agent that is started anew is read again.
TEST_F(RdmaHost, IsReadLikeOneOfThisMachine) {
  make_lab({"alice"});
  start_agent();
  open_door();
  start_remote_collector({by_device("far", of_client("alice")), by_agent("near")});
  Program program({ZERO_WATCHED_C, "60"});
  ASSERT_EQ(program.line(), "counting");
  ASSERT_TRUE(wait_for([&] {
    auto values = latest();
    return values["far" + kRequests] > 20 && values["near" + kRequests] > 20;
  })) << told_
      << collector_->hosts()[0].reason;
  const std::string address = door_->address();
  door_.reset();
  EXPECT_TRUE(goes_down(0, "READ")) << collector_->hosts()[0].reason;
  stop_agent();
  start_agent();
  open_door({}, address);
  const double before = latest()["near" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["far" + kRequests] > before + 20; })) << told_;
  program.end();
  EXPECT_TRUE(wait_for([&] { return !latest().contains("far" + kRequests); }));
  stop_collector();
  std::map<std::string, std::set<std::string>> series;
  const auto found = series::summarize(store(), {});
  ASSERT_TRUE(found);
  for (const series::Summary& one : *found) {
    if (!one.name.starts_with("call_")) series[one.host].insert(one.name + one.labels);
  }
  EXPECT_FALSE(series["near"].empty());
  EXPECT_EQ(series["far"], series["near"]);
}

// Claim:  a client sees its classes and no other, one that is revoked sees nothing any more, though
//         its queue pair needs nobody's help, and an agent without a device says so.
TEST_F(RdmaHost, ShowsAClientItsClassesUntilItIsRevoked) {
  make_lab({"alice", "bob"});
  start_agent();
  open_door({"alice=persistent", "bob=persistent"});
  Program program({ZERO_WATCHED_C, "60"});
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
  })) << told_
      << collector_->hosts()[0].reason;
  EXPECT_EQ(classes, std::set<int>{ZERO_PERSISTENT});
  ASSERT_TRUE(agent::revoke_certificate(lab(), of_client("bob") + "/client.pem"));
  EXPECT_TRUE(goes_down(1, "revoked")) << collector_->hosts()[1].reason;
  const double before = latest()["alice" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["alice" + kRequests] > before + 5; })) << told_;
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
    RdmaReader bob(queue(), std::chrono::seconds(5));
    join(bob.queue(), of_bob);
    const auto stolen = bob.read(place_of(*exposed), std::span(&whole, 1));
    ASSERT_FALSE(stolen);
    EXPECT_NE(stolen.error().message.find("not exposed"), std::string::npos)
        << stolen.error().message;
    EXPECT_EQ(into[5], 0U);
    EXPECT_FALSE(bob.read(place_of(*exposed), std::span(&whole, 1))) << "useless after an error";
  }
  RdmaReader alice(queue(), std::chrono::seconds(5));
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
  RdmaReader again(queue(), std::chrono::seconds(5));
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
//         once.
// Oracle: a writer adds to the first word before it adds to the last, so who reads the last before
//         the first finds no less in the first. Method: until 300 READs saw a change.
TEST_F(RdmaHost, IsReadInTheOrderOfThePieces) {
  std::vector<std::uint64_t> memory(64 * 8), into(200);
  RdmaQueue near = queue();
  RdmaReader reader(queue(), std::chrono::seconds(5));
  join(reader.queue(), near);
  auto exposed = remote::expose(near, std::as_bytes(std::span(memory)));
  ASSERT_TRUE(exposed) << exposed.error().message;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    while (!over) {
      for (const std::size_t at : {std::size_t{0}, memory.size() - 1}) {
        std::atomic_ref(memory[at]).fetch_add(1);
      }
    }
  });
  std::vector<zero::Piece> pieces;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::size_t word = i % 2 == 0 ? memory.size() - 1 : 0;
    pieces.push_back({false, word * 8, bytes_of(into).subspan(i * 8, 8)});
  }
  int changed = 0;
  std::uint64_t last = 0;
  for (int looks = 0; changed < 300 && looks < 100'000; ++looks) {
    const auto got = reader.read(place_of(*exposed), pieces);
    ASSERT_TRUE(got) << got.error().message;
    for (std::size_t i = 1; i < into.size(); ++i) {
      ASSERT_GE(into[i] + (i % 2 == 0 ? 1 : 0), into[i - 1]) << i;
    }
    changed += into.back() != last ? 1 : 0;
    last = into.back();
  }
  over = true;
  writer.join();
  EXPECT_EQ(changed, 300);
}

// Claim:  memory that is withdrawn and unmapped while READs of it are under way ends them with an
//         error, and not before every value was right.
TEST_F(RdmaHost, MemoryThatGoesUnderAReadEndsItCleanly) {
  for (int round = 0; round < 10; ++round) {
    auto memory = std::make_unique<std::vector<std::uint64_t>>(1 << 15, 7);
    std::vector<std::uint64_t> into(1 << 15);
    const zero::Piece whole{false, 0, bytes_of(into)};
    RdmaQueue near = queue();
    RdmaReader reader(queue(), std::chrono::seconds(5));
    join(reader.queue(), near);
    std::optional<remote::Exposed> exposed =
        std::move(*remote::expose(near, std::as_bytes(std::span(*memory))));
    const remote::Place place = place_of(*exposed);
    std::atomic<int> good{0};
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
    });
    while (good < 1 + round) std::this_thread::yield();
    exposed.reset();
    memory.reset();
    reading.join();
    EXPECT_NE(ended.find("READ ended with"), std::string::npos) << ended;
  }
}

}  // namespace
}  // namespace greynic::monitor
