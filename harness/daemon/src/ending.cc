#include "greynic/daemon/ending.h"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <thread>

#include "greynic/daemon/log.h"

namespace greynic::daemon {

struct Ending::Watch {
  std::string name;
  std::chrono::milliseconds patience;
  std::atomic<bool> asked = false;
  std::atomic<bool> over = false;
  std::atomic<bool> at_once = false;
  sigset_t signals{};
  std::thread thread;

  void run() {
    using Clock = std::chrono::steady_clock;
    constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
    Clock::time_point limit;
    while (!over) {
      // Until it is asked to end it costs nothing: a daemon's own share may be less than looks are.
      const int got =
          asked ? sigtimedwait(&signals, nullptr, &kLook) : sigwaitinfo(&signals, nullptr);
      if (got > 0 && !over) {
        if (asked.exchange(true) || at_once) _exit(0);
        limit = Clock::now() + patience;
      }
      if (asked && Clock::now() > limit) {
        Log(name).line(fmt::format("what was under way did not end within {} ms; ended without it",
                                   patience.count()));
        _exit(0);
      }
    }
  }
};

Ending::Ending(std::string name, std::chrono::milliseconds patience) : watch_(new Watch) {
  watch_->name = std::move(name);
  watch_->patience = patience;
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&watch_->signals);
  sigaddset(&watch_->signals, SIGINT);
  sigaddset(&watch_->signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &watch_->signals, nullptr);
  watch_->thread = std::thread([watch = watch_.get()] { watch->run(); });
}

Ending::~Ending() {
  watch_->over = true;
  pthread_kill(watch_->thread.native_handle(), SIGTERM);  // to it alone, so that it sees the end
  watch_->thread.join();
}

void Ending::end_at_once(bool wanted) const {
  watch_->at_once = wanted;
  if (wanted && watch_->asked) _exit(0);
}

const std::atomic<bool>& Ending::asked() const { return watch_->asked; }

}  // namespace greynic::daemon
