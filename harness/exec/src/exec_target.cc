#include "greynic/exec/exec_target.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "conversation.h"
#include "greynic/core/units.h"
#include "greynic/os/piped_command.h"
#include "greynic/target/interrupt.h"

namespace greynic::exec {
namespace {

using Clock = std::chrono::steady_clock;
using target::MeasureRequest;
using target::ObservationSink;

constexpr int kTickMs = 200;                         ///< how often limits and Ctrl-C are looked at
constexpr std::size_t kAhead = 65536;                ///< bytes of requests made ready for the pipe
constexpr std::size_t kLongestLine = 64UL << 20U;    ///< no answer is longer; guards the memory
constexpr std::uint64_t kMostChatter = 16UL << 20U;  ///< bytes between two answers
constexpr int kCommandNotFound = 127;
constexpr int kCommandNotExecutable = 126;

class ExecTarget final : public target::Target {
 public:
  ExecTarget(std::string name, std::string command,
             std::optional<std::chrono::nanoseconds> silence_limit)
      : name_(std::move(name)), command_(std::move(command)), silence_limit_(silence_limit) {}

  target::Info info() const override {
    target::Info info;
    info.name = name_;
    info.description = "your own command, one JSON object a line in and out";
    info.environment["command"] = command_;
    utsname system{};
    if (::uname(&system) == 0) {
      info.environment["host"] = system.nodename;
      info.environment["kernel"] = system.release;
    }
    return info;
  }

  Result<void> measure(std::span<const MeasureRequest> requests,
                       const ObservationSink& sink) override {
    if (requests.empty()) return {};
    if (!child_) {
      auto started = os::PipedCommand::start(command_);
      if (!started) return pass_on(started);
      child_.emplace(std::move(*started));
      unsent_.clear();
      received_.clear();
      looked_at_ = 0;
      conversation_.begin();
    }
    conversation_.ask(requests, info().environment);
    auto done = converse(requests, sink);
    conversation_.abandon();
    return done;
  }

 private:
  Result<void> converse(std::span<const MeasureRequest> requests, const ObservationSink& sink) {
    const auto limit = limit_for(requests);
    while (!conversation_.finished()) {
      if (target::interrupted()) return fail(ErrorCode::kInterrupted, "stopped by the user");
      const bool alive = exchange_bytes();
      if (!take_answers(sink)) return {};
      if (!alive || received_.size() > kLongestLine) return end_of_command(sink);
      if (conversation_.only_malformed_left()) {
        conversation_.settle_malformed(sink);
        return {};
      }
      if (conversation_.idle_bytes() > kMostChatter) return end_of_chatter(sink);
      if (Clock::now() - conversation_.last_answer() > limit) return end_of_patience(limit, sink);
    }
    return {};
  }

  [[nodiscard]] std::chrono::nanoseconds limit_for(std::span<const MeasureRequest> requests) const {
    if (silence_limit_) return *silence_limit_;
    std::chrono::nanoseconds longest{0};
    for (const MeasureRequest& request : requests) longest = std::max(longest, request.duration);
    return kSilenceLimit + 10 * longest;
  }

  /// Waits for a tick at most; false when the command has closed its output or no longer reads.
  bool exchange_bytes() {
    while (unsent_.size() < kAhead && conversation_.next_request(unsent_)) {
    }
    std::array<pollfd, 2> polled = {
        pollfd{.fd = child_->output(), .events = POLLIN, .revents = 0},
        pollfd{.fd = unsent_.empty() ? -1 : child_->input(), .events = POLLOUT, .revents = 0}};
    if (::poll(polled.data(), polled.size(), kTickMs) <= 0) return true;
    if (polled[1].revents != 0) {
      const auto written = child_->write(unsent_);
      // A command that has closed its input may still have answers for us: what it has read counts.
      if (!written) child_->close_input();
      unsent_.erase(0, written.value_or(unsent_.size()));
    }
    if (polled[0].revents == 0) return true;
    return child_->read_into(received_);
  }

  /// False when the sink wants no more.
  bool take_answers(const ObservationSink& sink) {
    std::size_t begin = 0;
    bool go_on = true;
    for (std::size_t end = received_.find('\n', looked_at_); go_on && end != std::string::npos;
         end = received_.find('\n', begin)) {
      go_on = conversation_.answer(std::string_view(received_).substr(begin, end - begin), sink);
      begin = end + 1;
    }
    received_.erase(0, begin);
    // A long line comes in many pieces: each is looked at once.
    looked_at_ = go_on ? received_.size() : 0;
    return go_on;
  }

  Result<void> end_of_command(const ObservationSink& sink) {
    int status = 0;
    const std::string how = child_->stop(status);
    child_.reset();
    if (!received_.empty() && !conversation_.answer(received_, sink)) return {};
    if (conversation_.answers() == 0 &&
        (status == kCommandNotFound || status == kCommandNotExecutable)) {
      return fail(
          ErrorCode::kMissing,
          fmt::format("the command \"{}\" {}: it is not there or cannot be run", command_, how));
    }
    conversation_.settle_malformed(sink);
    conversation_.give_up(Outcome::kFailed, "the command " + how + " before it answered", sink);
    return {};
  }

  Result<void> end_of_patience(std::chrono::nanoseconds limit, const ObservationSink& sink) {
    return end_it(Outcome::kTimedOut,
                  "the command answered nothing for " + to_string(limit) + " and was ended", sink);
  }

  Result<void> end_of_chatter(const ObservationSink& sink) {
    return end_it(Outcome::kFailed,
                  fmt::format("the command printed {} MiB that answer nothing and was ended",
                              kMostChatter >> 20U),
                  sink);
  }

  Result<void> end_it(Outcome outcome, const std::string& reason, const ObservationSink& sink) {
    int status = 0;
    child_->stop(status);
    child_.reset();
    conversation_.settle_malformed(sink);
    conversation_.give_up(outcome, reason, sink);
    return {};
  }

  std::string name_;
  std::string command_;
  std::optional<std::chrono::nanoseconds> silence_limit_;
  std::optional<os::PipedCommand> child_;
  Conversation conversation_;
  std::string unsent_;
  std::string received_;
  std::size_t looked_at_ = 0;  ///< bytes of it that end no line
};

/// "timeout=30s COMMAND" or just COMMAND.
Result<std::unique_ptr<target::Target>> open(const target::Spec& spec) {
  constexpr std::string_view kTimeout = "timeout=";
  std::string command = spec.place;
  std::optional<std::chrono::nanoseconds> limit;
  if (command.starts_with(kTimeout)) {
    const std::size_t end = std::min(command.find(' '), command.size());
    auto parsed = parse_duration(command.substr(kTimeout.size(), end - kTimeout.size()));
    if (!parsed) return parsed.error().while_doing("target '" + spec.text + "': timeout");
    limit = *parsed;
    command.erase(0, end);
  }
  if (command.find_first_not_of(' ') == std::string::npos) {
    return fail(ErrorCode::kBadInput,
                fmt::format("target '{}' names no command; write exec:./measure.sh", spec.text));
  }
  return std::make_unique<ExecTarget>(spec.text, command, limit);
}

std::vector<target::Candidate> probe() {
  return {{.spec = "exec:COMMAND",
           .available = true,
           .what = "your own command, one JSON object a line in and out (docs/formats/exec.md)",
           .why_not = {},
           .remedy = {}}};
}

}  // namespace

target::Kind kind() { return {.name = "exec", .open = open, .probe = probe}; }

}  // namespace greynic::exec
