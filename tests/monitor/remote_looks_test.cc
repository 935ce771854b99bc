#include "remote_looks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace greynic::monitor {
namespace {

// Claim:  each host that is asked answers once for each job, no host is asked twice at once, a host
//         that hangs holds no other, and the end waits for who is still being asked.
// Oracle: counts by host, kept by the one who answers; host 0 hangs until all others have answered.
TEST(RemoteLooks, AskEachHostOnceAtATime) {
  constexpr std::uint32_t kHosts = 40;
  constexpr int kRounds = 50;
  std::array<std::atomic<int>, kHosts> asked{}, inside{};
  std::atomic<bool> hang{true}, twice{false};
  std::array<int, kHosts> answered{};
  {
    // The delays of this machine cut the window to its least: a job for each thread.
    RemoteLooks looks({.least_jobs = 4}, 4, [&](std::uint32_t host) {
      if (inside[host].fetch_add(1) != 0) twice = true;
      while (host == 0 && hang) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++asked[host];
      inside[host].fetch_sub(1);
      return host % 7 != 3;  // some never answer
    });
    const auto add = [&](std::uint32_t host) {
      looks.add({host, 4096, static_cast<std::uint8_t>(host % 3), static_cast<double>(host)});
    };
    for (std::uint32_t host = 0; host < kHosts; ++host) add(host);
    int left = (kHosts - 1) * kRounds;
    while (left > 0) {
      for (const std::uint32_t host : looks.turn()) {
        --left;
        if (++answered[host] < kRounds) add(host);
      }
      const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
      looks.wait_until_ns(
          std::chrono::duration_cast<std::chrono::nanoseconds>(soon.time_since_epoch()).count());
    }
    EXPECT_EQ(answered[0], 0);
    for (std::uint32_t host = 1; host < kHosts; ++host) {
      EXPECT_EQ(answered[host], kRounds) << host;
      EXPECT_EQ(asked[host], kRounds) << host;
    }
    hang = false;
  }
  EXPECT_EQ(asked[0], 1) << "the end waits for it";
  EXPECT_FALSE(twice);
}

}  // namespace
}  // namespace greynic::monitor
