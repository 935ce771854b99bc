#include "greynic/daemon/hang_up.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace greynic::daemon {
namespace {

constexpr int kMostThreads = 64;
constexpr std::chrono::seconds kIdle{1};

struct Closers {
  std::mutex mutex;
  std::condition_variable comes;
  std::deque<int> waiting;
  int threads = 0;
  int idle = 0;

  void close_all() {
    std::unique_lock lock(mutex);
    for (;;) {
      ++idle;
      const bool any = comes.wait_for(lock, kIdle, [&] { return !waiting.empty(); });
      --idle;
      if (!any) break;
      const int descriptor = waiting.front();
      waiting.pop_front();
      lock.unlock();
      const linger none{};
      (void)setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      ::close(descriptor);
      lock.lock();
    }
    --threads;
  }

  void take(int descriptor) {
    const std::lock_guard lock(mutex);
    waiting.push_back(descriptor);
    if (idle < static_cast<int>(waiting.size()) && threads < kMostThreads) {
      ++threads;
      std::thread([this] { close_all(); }).detach();
    }
    comes.notify_one();
  }
};

/// Never destroyed: its threads may still wait when the process ends.
Closers& closers() {
  static auto* const all = new Closers;
  return *all;
}

}  // namespace

void close_apart(int descriptor) {
  if (descriptor < 0) return;
  // Only files in memory have seals, whatever these are.
  if (fcntl(descriptor, F_GET_SEALS) >= 0) {
    ::close(descriptor);
  } else {
    closers().take(descriptor);
  }
}

void hang_up(int socket) {
  if (socket < 0) return;
  char byte = 0;
  const bool has_unread = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
  // An empty packet cannot be told from the end.
  if (has_unread) {
    closers().take(socket);
  } else {
    ::close(socket);
  }
}

}  // namespace greynic::daemon
