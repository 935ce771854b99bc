#pragma once

/// A program of a lab, as a child of ours that does not outlive us.

#include <sys/types.h>

#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::lab {

struct Place {
  std::string socket;        ///< where the lab meets
  std::uint32_t host = 0;
  std::string own_address;   ///< servers that listen on all addresses get this one; empty: as is
  std::string turns;         ///< virtual time: Sequencer::path(); empty: real time
};

class Child {
 public:
  /// `output`: a descriptor for its standard output and error; -1: ours.
  [[nodiscard]] static Result<Child> start(const std::vector<std::string>& words,
                                           const Place& place, int output);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  /// Ends it, if it runs: asks, and kills it after two seconds.
  ~Child();

  /// Readable when it has ended.
  [[nodiscard]] int ended() const { return ended_; }
  /// Waits for the end; the exit code, or 128 and the signal.
  int wait();

 private:
  explicit Child(pid_t pid, int ended) : pid_(pid), ended_(ended) {}
  pid_t pid_ = -1;
  int ended_ = -1;
};

}  // namespace greynic::lab
