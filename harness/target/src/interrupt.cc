#include "greynic/target/interrupt.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace greynic::target {
namespace {

// Of a signal to any thread, which others read.
std::atomic<bool> flag = false;
static_assert(std::atomic<bool>::is_always_lock_free);
int guards = 0;
std::array<struct sigaction, 2> before{};
constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

extern "C" void remember(int) { flag = true; }

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards++ > 0) return;
  struct sigaction action {};
  action.sa_handler = remember;
  // The second signal finds the default action; no SA_RESTART, so that a blocked poll() wakes up.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

InterruptGuard::~InterruptGuard() {
  if (--guards > 0) return;
  flag = false;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

bool interrupted() { return flag; }

}  // namespace greynic::target
