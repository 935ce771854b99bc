#include "progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "greynic/core/text.h"
#include "greynic/core/units.h"
#include "talk.h"

namespace greynic::cli {

using namespace std::chrono_literals;

Progress::Progress(std::string what, double total)
    : what_(std::move(what)),
      total_(std::max(total, 1e-12)),
      start_(Clock::now()),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::update(double done, const std::string& note) {
  const auto now = Clock::now();
  if (first_done_ < 0.0) first_done_ = done;
  if (!terminal_ || now - start_ < 2s || now - drawn_ < 200ms) return;
  drawn_ = now;
  const double share = std::clamp(done / total_, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * 30.0);
  std::string left = "?";
  if (done > first_done_) {
    const double ns = std::chrono::duration<double, std::nano>(now - start_).count() *
                      (total_ - done) / (done - first_done_);
    left = to_string(std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(ns, 0.0))));
  }
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {:.0f} % {} left {}", what_, std::string(filled, '#'),
             std::string(30 - filled, ' '), share * 100.0, left, printable(note));
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

loop::Talk terminal_talk() {
  struct Screen {
    std::string what;
    std::optional<Progress> bar;
  };
  auto screen = std::make_shared<Screen>();
  const auto line = [screen](const std::string& text) {
    if (screen->bar) screen->bar->clear();
    say(text);
  };
  const auto show = [screen](const std::string& what, double done, double total,
                             const std::string& note) {
    if (!screen->bar || screen->what != what) {
      screen->what = what;
      screen->bar.emplace(what, total);
    }
    screen->bar->update(done, note);
  };
  return {line, show};
}

}  // namespace greynic::cli
