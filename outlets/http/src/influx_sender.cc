#include "greynic/http/influx_sender.h"

#include <fmt/core.h>
#include <httplib.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "greynic/core/text.h"

namespace greynic::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{10000};
constexpr std::chrono::seconds kAnswerWithin{10};
constexpr std::chrono::milliseconds kEndWithin{300};
constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kHurry{700};
constexpr std::size_t kMostReason = 300;
constexpr std::size_t kMostAnswer = 64 << 10;

struct Destination {
  std::string server;  ///< "http://host:8086"
  std::string path;
  std::string user, password;
};

std::optional<Destination> destination_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return std::nullopt;
  const std::string kind = url.substr(0, scheme);
  if (kind != "http" && kind != "https") return std::nullopt;
  const std::size_t slash = std::min(url.find('/', scheme + 3), url.size());
  std::string host = url.substr(scheme + 3, slash - scheme - 3);
  Destination to;
  to.path = url.substr(slash);
  if (const std::size_t at = host.rfind('@'); at != std::string::npos) {
    const std::string who = host.substr(0, at);
    host.erase(0, at + 1);
    to.user = who.substr(0, who.find(':'));
    if (who.size() > to.user.size()) to.password = who.substr(to.user.size() + 1);
  }
  if (host.empty()) return std::nullopt;
  to.server = kind + "://" + host;
  const bool is_name =
      to.path.find('/', 1) == std::string::npos && to.path.find('?') == std::string::npos;
  if (is_name) {
    if (to.path.size() < 2) return std::nullopt;
    to.path = "/write?precision=ns&db=" + to.path.substr(1);
  }
  return to;
}

std::uint64_t line_count(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

struct InfluxSender::State {
  InfluxOptions options;
  Destination to;
  std::unique_ptr<httplib::Client> client;

  mutable std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  struct Piece {
    std::string text;
    std::uint64_t lines = 0;
  };
  std::deque<Piece> queue;
  std::size_t queued_bytes = 0;
  Counts counts;
  bool over = false;
  bool hurry = false;
  bool ended = false;

  void forget_oldest() {
    counts.lost += queue.front().lines;
    counts.waiting -= queue.front().lines;
    queued_bytes -= queue.front().text.size();
    queue.pop_front();
  }

  /// Takes the next batch out of the queue; empty when there is an end instead.
  Piece next_batch() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return over || !queue.empty(); });
    const auto full = [this] { return over || hurry || counts.waiting >= options.batch_lines; };
    changed.wait_for(lock, options.batch_within, full);
    Piece batch;
    while (!over && !queue.empty() && batch.lines < options.batch_lines) {
      batch.text += queue.front().text;
      batch.lines += queue.front().lines;
      queued_bytes -= queue.front().text.size();
      queue.pop_front();
    }
    return batch;
  }

  /// Whether the batch is done with: taken, or refused for good.
  bool post(const Piece& batch) {
    httplib::Request request;
    request.method = "POST";
    request.path = to.path;
    request.body = batch.text;
    request.set_header("Content-Type", "text/plain; charset=utf-8");
    // Whatever answers, its answer must not fill our memory; nor be believed to be of the database.
    std::string body;
    request.content_receiver = [&body](const char* bytes, std::size_t count, std::uint64_t,
                                       std::uint64_t) {
      body.append(bytes, count);
      return body.size() <= kMostAnswer;
    };
    const httplib::Result answer = client->send(request);
    const std::lock_guard lock(mutex);
    if (answer && answer->status / 100 == 2) {
      counts.sent += batch.lines;
      counts.waiting -= batch.lines;
      counts.last_failure.clear();
      return true;
    }
    ++counts.failures;
    counts.last_failure =
        answer ? fmt::format("{} answered {}: {}", to.server, answer->status,
                             shortened(printable(body), kMostReason))
               : fmt::format("{}: {}", to.server, httplib::to_string(answer.error()));
    // What is wrong with the lines stays wrong; a database that is missing may come.
    const bool refused =
        answer && (answer->status == 400 || answer->status == 413 || answer->status == 422);
    if (!refused) return false;
    counts.lost += batch.lines;
    counts.waiting -= batch.lines;
    return true;
  }

  void run() {
    for (;;) {
      const Piece batch = next_batch();
      std::chrono::milliseconds pause = kFirstPause;
      while (batch.lines > 0 && !post(batch)) {
        std::unique_lock lock(mutex);
        if (changed.wait_for(lock, pause, [this] { return over; })) break;
        pause = std::min(2 * pause, kLongestPause);
      }
      const std::lock_guard lock(mutex);
      changed.notify_all();
      ended = over;
      if (over) return;
    }
  }
};

InfluxSender::InfluxSender(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<InfluxSender>> InfluxSender::open(const std::string& url,
                                                         const InfluxOptions& options) {
  auto to = destination_of(url);
  if (!to) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("\"{}\" names no InfluxDB; write http://HOST:8086/DATABASE", printable(url)));
  }
  auto state = std::make_shared<State>();
  state->options = options;
  state->to = std::move(*to);
  state->client = std::make_unique<httplib::Client>(state->to.server);
  if (!state->client->is_valid()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("\"{}\" has no host and port that can be called", printable(url)));
  }
  state->client->set_keep_alive(true);
  state->client->set_connection_timeout(kAnswerWithin);
  state->client->set_read_timeout(kAnswerWithin);
  state->client->set_write_timeout(kAnswerWithin);
  if (!state->to.user.empty()) {
    state->client->set_basic_auth(state->to.user, state->to.password);
  } else if (const char* token = std::getenv("INFLUX_TOKEN")) {
    state->client->set_default_headers({{"Authorization", fmt::format("Token {}", token)}});
  }
  std::thread([state] { state->run(); }).detach();
  return std::unique_ptr<InfluxSender>(new InfluxSender(std::move(state)));
}

InfluxSender::~InfluxSender() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  // Where nobody answers, connecting takes its time, and so does stopping it. The state is theirs.
  std::thread([state = state_] { state->client->stop(); }).detach();
  state_->changed.wait_for(lock, kEndWithin, [this] { return state_->ended; });
}

void InfluxSender::send(std::string lines) {
  const std::uint64_t count = line_count(lines);
  if (count == 0) return;
  const std::lock_guard lock(state_->mutex);
  state_->queued_bytes += lines.size();
  state_->counts.waiting += count;
  state_->queue.push_back({std::move(lines), count});
  while (state_->queued_bytes > state_->options.queue_bytes && !state_->queue.empty()) {
    state_->forget_oldest();
  }
  state_->changed.notify_all();
}

bool InfluxSender::flush(std::chrono::milliseconds patience, const std::atomic<bool>* ending) {
  std::unique_lock lock(state_->mutex);
  state_->hurry = true;
  state_->changed.notify_all();
  auto limit = Clock::now() + patience;
  bool is_ending = false;
  while (state_->counts.waiting > 0 && Clock::now() < limit) {
    state_->changed.wait_for(lock, kLook);
    if (is_ending || ending == nullptr || !*ending) continue;
    is_ending = true;
    limit = std::min(limit, Clock::now() + kHurry);
  }
  state_->hurry = false;
  return state_->counts.waiting == 0;
}

InfluxSender::Counts InfluxSender::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace greynic::http
