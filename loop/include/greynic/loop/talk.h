#pragma once

#include <functional>
#include <string>

namespace greynic::loop {

/// How a step says what it is doing. The loop prints nothing itself: whoever calls it does, and
/// leaves empty what it does not want to hear.
struct Talk {
  /// One line for people: a warning, a hint, the name of the step that begins.
  std::function<void(const std::string& line)> say;
  /// How much of the work called `what` is done; `done` and `total` have one unit.
  std::function<void(const std::string& what, double done, double total, const std::string& note)>
      progress;

  void line(const std::string& text) const {
    if (say) say(text);
  }
  void show(const std::string& what, double done, double total,
            const std::string& note = {}) const {
    if (progress) progress(what, done, total, note);
  }
};

}  // namespace greynic::loop
