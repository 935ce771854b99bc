#include "greynic/monitor/json_lines.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "greynic/files/json_file.h"
#include "greynic/series/query.h"
#include "greynic_zero.h"

namespace greynic::monitor {
namespace {

/// What a pipe takes at once when it takes anything.
constexpr std::size_t kPipeBytes = 4096;
constexpr std::size_t kFileBytes = 1 << 20;
constexpr std::chrono::milliseconds kTryAgain{100};

/// The line of a series up to its value: `{"host":...,"time_ns":`.
std::string begin_of(const series::Group& group, const series::Field& field, std::uint32_t index) {
  std::string labels = field.labels;
  if (field.count > 1 && field.kind != ZERO_HISTOGRAM) {
    labels += fmt::format("{}index=\"{}\"", labels.empty() ? "" : ",", index);
  }
  std::string line = files::json_text(nlohmann::json{{"host", group.host},
                                                     {"program", group.source},
                                                     {"name", field.name},
                                                     {"labels", labels},
                                                     {"unit", field.unit}});
  line.pop_back();
  return line + R"(,"time_ns":)";
}

void add_value(fmt::memory_buffer& to, const series::Field& field, std::uint64_t word) {
  const auto out = std::back_inserter(to);
  if (!field.floating) {
    fmt::format_to(out, R"(,"value":{}}})", series::text_of(field, word));
  } else if (const double value = series::value_of(field, word); std::isfinite(value)) {
    fmt::format_to(out, R"(,"value":{}}})", value);
  } else {
    fmt::format_to(out, R"(,"value":null}})");
  }
}

}  // namespace

struct JsonLines::State {
  int file = -1;
  bool is_stdout = false, is_regular = false;
  std::size_t most_bytes = 0;
  std::string name;

  // Of the thread that brings samples.
  std::unordered_map<std::uint64_t, std::vector<std::string>> begins;  ///< of lines, by group
  fmt::memory_buffer made;

  mutable std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::string waiting;
  std::uint64_t waiting_lines = 0;
  Counts counts;
  bool over = false, closed = false, hung_up = false;
  bool writing = false;  ///< the thread holds lines that were not written yet
  std::thread thread;

  void hand_over(std::uint64_t lines);
  void serve();
  enum class Wrote { kSome, kNotReady, kFailed };
  Wrote write(const std::string& text, std::size_t& done);
  void cut(const std::string& text, std::size_t done) const;
  void note_failure(int error);
};

void JsonLines::State::hand_over(std::uint64_t lines) {
  {
    const std::lock_guard lock(mutex);
    if (closed || over || waiting.size() + made.size() > most_bytes) {
      counts.lost += lines;
    } else {
      waiting.append(made.data(), made.size());
      waiting_lines += lines;
    }
  }
  changed.notify_all();
  made.clear();
}

void JsonLines::State::note_failure(int error) {
  const std::lock_guard lock(mutex);
  counts.last_failure = fmt::format("{}: {}", name, std::strerror(error));
  hung_up = error == EPIPE || error == ECONNRESET;
  closed = hung_up || error == EBADF;
}

/// Takes back the part of a line that a file has got.
void JsonLines::State::cut(const std::string& text, std::size_t done) const {
  struct stat status {};
  if (!is_regular || is_stdout || done == 0 || ::fstat(file, &status) != 0) return;
  const std::size_t line = text.rfind('\n', done - 1) + 1;  // npos + 1: the first
  (void)!::ftruncate(file, status.st_size - static_cast<off_t>(done - line));
}

/// Writes some of what is left.
JsonLines::State::Wrote JsonLines::State::write(const std::string& text, std::size_t& done) {
  pollfd ready{file, POLLOUT, 0};
  // A pipe that is ready takes a page without a wait, so a reader that stands still holds no end up.
  if (!is_regular && ::poll(&ready, 1, static_cast<int>(kTryAgain.count())) <= 0) {
    return Wrote::kNotReady;
  }
  const std::size_t most = is_regular ? kFileBytes : kPipeBytes;
  const ssize_t got = ::write(file, text.data() + done, std::min(most, text.size() - done));
  if (got > 0) done += static_cast<std::size_t>(got);
  if (got >= 0 || errno == EINTR) return Wrote::kSome;
  note_failure(errno);
  return Wrote::kFailed;
}

void JsonLines::State::serve() {
  std::string text;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return over || !waiting.empty(); });
    if (waiting.empty()) return;
    text.swap(waiting);
    const std::uint64_t lines = std::exchange(waiting_lines, 0);
    writing = true;
    std::size_t done = 0;
    while (done < text.size() && !closed && !over) {
      lock.unlock();
      const Wrote wrote = write(text, done);
      lock.lock();
      if (wrote == Wrote::kFailed && !closed)
        changed.wait_for(lock, kTryAgain, [this] { return over; });
    }
    if (done < text.size()) cut(text, done);
    const auto left = static_cast<std::uint64_t>(
        std::count(text.begin() + static_cast<std::ptrdiff_t>(done), text.end(), '\n'));
    counts.written += lines - left;
    counts.lost += left;
    writing = false;
    text.clear();
    if (closed || over) {
      counts.lost += std::exchange(waiting_lines, 0);
      waiting.clear();
    }
    changed.notify_all();
  }
}

JsonLines::JsonLines(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<JsonLines>> JsonLines::open(const JsonLinesOptions& options) {
  auto state = std::make_unique<State>();
  state->most_bytes = options.most_bytes;
  state->is_stdout = options.path == "-";
  state->name = state->is_stdout ? "standard output" : options.path;
  state->file = state->is_stdout
                    ? ::dup(STDOUT_FILENO)
                    : ::open(options.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (state->file < 0) {
    return fail(ErrorCode::kIo,
                fmt::format("{} cannot be written: {}", state->name, std::strerror(errno)));
  }
  struct stat status {};
  state->is_regular = ::fstat(state->file, &status) == 0 && S_ISREG(status.st_mode);
  // A line that an earlier writer could not end is one of its own.
  char last = '\n';
  if (state->is_regular && !state->is_stdout && status.st_size > 0 &&
      ::pread(state->file, &last, 1, status.st_size - 1) == 1 && last != '\n') {
    state->waiting = "\n";
  }
  State& made = *state;
  made.thread = std::thread([&made] { made.serve(); });
  return std::unique_ptr<JsonLines>(new JsonLines(std::move(state)));
}

JsonLines::~JsonLines() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  ::close(state_->file);
}

void JsonLines::sample(std::uint64_t number, const series::Group& group, std::int64_t time_ns,
                       std::span<const std::uint64_t> values) {
  State& s = *state_;
  auto& begins = s.begins[number];
  if (begins.empty()) {
    for (const series::Field& field : group.fields) {
      const std::uint32_t count = field.kind == ZERO_HISTOGRAM ? 1 : field.count;
      for (std::uint32_t i = 0; i < count; ++i) begins.push_back(begin_of(group, field, i));
    }
  }
  const auto out = std::back_inserter(s.made);
  std::size_t line = 0, column = 0;
  for (const series::Field& field : group.fields) {
    const auto words = values.subspan(column, field.count);
    column += field.count;
    if (field.kind == ZERO_HISTOGRAM) {
      fmt::format_to(out,
                     R"({}{},"count":{},"sum":{},"p50":{},"p99":{}}})"
                     "\n",
                     begins[line++], time_ns,
                     std::accumulate(words.begin() + 1, words.end(), std::uint64_t{0}), words[0],
                     series::quantile_of(field, words, 0.5),
                     series::quantile_of(field, words, 0.99));
      continue;
    }
    for (const std::uint64_t word : words) {
      fmt::format_to(out, "{}{}", begins[line++], time_ns);
      add_value(s.made, field, word);
      s.made.push_back('\n');
    }
  }
  s.hand_over(line);
}

void JsonLines::ended(std::uint64_t number) { state_->begins.erase(number); }

void JsonLines::gap(const series::Gap& gap) {
  const std::string line = files::json_text(nlohmann::json{{"host", gap.host},
                                                           {"begin_ns", gap.begin_ns},
                                                           {"end_ns", gap.end_ns},
                                                           {"reason", gap.reason}}) +
                           "\n";
  state_->made.append(line.data(), line.data() + line.size());
  state_->hand_over(1);
}

void JsonLines::finish(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  const auto done = [this] { return state_->waiting.empty() && !state_->writing; };
  state_->changed.wait_for(lock, patience, done);
  state_->over = true;
  state_->changed.notify_all();
  state_->changed.wait(lock, done);
}

Result<void> JsonLines::complete() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->counts.lost == 0 || state_->counts.last_failure.empty() || state_->hung_up) return {};
  return fail(ErrorCode::kIo, fmt::format("{}: {} lines of JSON are lost",
                                          state_->counts.last_failure, state_->counts.lost));
}

bool JsonLines::closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

JsonLines::Counts JsonLines::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace greynic::monitor
