#pragma once

/// What was asked of a command and what it still owes: gives requests their ids, takes answer lines
/// in any order and turns each into the observation of its request.
///
/// A line that cannot be understood names no request. It is held against the request that has
/// waited longest, but only for as long as nothing better comes: the true answer to that request
/// may follow (a stray print), and then it counts.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "greynic/target/target.h"

namespace greynic::exec {

class Conversation {
 public:
  /// The command was started: its answer lines are counted from 1.
  void begin();
  /// Takes on requests, which must outlive the exchange.
  void ask(std::span<const target::MeasureRequest> requests,
           std::map<std::string, std::string> environment);
  /// Appends the next request's line to `lines`; false when all were given out.
  bool next_request(std::string& lines);
  /// Takes one line of the command. False when the sink wants no more.
  bool answer(std::string_view line, const target::ObservationSink& sink);
  /// All that is owed becomes this outcome.
  void give_up(Outcome outcome, const std::string& reason, const target::ObservationSink& sink);
  /// Every request that is owed has a line held against it, and the command prints nothing else.
  [[nodiscard]] bool only_malformed_left() const;
  /// Lines held against requests become their failed outcomes.
  void settle_malformed(const target::ObservationSink& sink);
  /// When the last answer came that was owed, or ask() if there was none: chatter is no sign.
  [[nodiscard]] std::chrono::steady_clock::time_point last_answer() const { return last_delivery_; }
  /// Bytes of lines since then: answers to nothing, blank lines, what cannot be understood. A line
  /// counts as 64 bytes at least.
  [[nodiscard]] std::uint64_t idle_bytes() const { return idle_bytes_; }
  /// Nobody waits for the rest any more; late answers to it are no mistake.
  void abandon();

  [[nodiscard]] bool finished() const { return owed_.empty() && next_ == requests_.size(); }
  /// Answers understood since begin().
  [[nodiscard]] std::uint64_t answers() const { return answers_; }

 private:
  struct Owed {
    std::size_t index = 0;  ///< of the request
    std::string complaint;  ///< about a line that may have been its answer
  };

  bool deliver(std::uint64_t id, Observation observation, const target::ObservationSink& sink);
  void blame(const std::string& complaint);
  void report(const std::string& complaint);
  Observation empty_observation(std::size_t index) const;

  std::span<const target::MeasureRequest> requests_;
  std::map<std::string, std::string> environment_;
  std::size_t next_ = 0;       ///< first request not given out
  std::uint64_t last_id_ = 0;  ///< ids are never used twice, so late answers are recognised
  std::map<std::uint64_t, Owed> owed_;
  std::set<std::uint64_t> abandoned_;
  std::uint64_t line_number_ = 0;
  std::uint64_t answers_ = 0;
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t complaints_ = 0;  ///< told on stderr since begin()
  bool chatters_ = false;         ///< a line held against a request turned out to be a stray print
  std::chrono::steady_clock::time_point last_delivery_;
};

}  // namespace greynic::exec
