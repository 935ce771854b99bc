#include "traffic/heartbeat.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

namespace greynic::verbs {
namespace {

/// A real-time signal that nobody else here uses. Its handler stays for good: a last signal may
/// come after the timer is gone, and without a handler it would end the process.
int signal_number() {
  static const int number = [] {
    const int chosen = SIGRTMIN + 3;
    struct sigaction action {};
    action.sa_handler = [](int) {};  // and no SA_RESTART: to interrupt is all it is for
    sigaction(chosen, &action, nullptr);
    return chosen;
  }();
  return number;
}

}  // namespace

Heartbeat::Heartbeat(std::chrono::milliseconds period) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(period);
  const std::chrono::nanoseconds rest = period - seconds;
  itimerspec beat{};
  beat.it_interval = {seconds.count(), rest.count()};
  beat.it_value = beat.it_interval;
  beats_ = timer_settime(timer_, 0, &beat, nullptr) == 0;
  if (!beats_) timer_delete(timer_);
}

Heartbeat::~Heartbeat() {
  if (beats_) timer_delete(timer_);
}

}  // namespace greynic::verbs
