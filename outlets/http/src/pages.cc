#include "pages.h"

#include <fmt/core.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "greynic/daemon/door.h"
#include "socket_stream.h"

namespace greynic::http {
namespace {

constexpr std::chrono::milliseconds kIdle{15000};
constexpr std::size_t kMostRequestsOfOne = 1000;
constexpr std::size_t kMostHead = 64 << 10;  // httplib reads lines of any length, and any number
constexpr std::size_t kMostBody = 64 << 10;

/// A name of this host as a browser or scraper here says it.
bool is_loopback_name(std::string_view host) {
  const bool bracket = host.starts_with('[');
  const std::size_t end = bracket ? host.find(']') : host.find(':');
  const std::string_view name = host.substr(0, end == std::string_view::npos ? end : end + bracket);
  return name == "localhost" || name == "[::1]" || daemon::is_loopback(fmt::format("{}:1", name));
}

/// httplib for what a connection says, without its sockets and its pool of threads.
class Speaker final : public httplib::Server {
 public:
  /// Without a listening socket it takes itself for shutting down, and ends every stream.
  Speaker() { svr_sock_ = 0; }
  ~Speaker() override { svr_sock_ = INVALID_SOCKET; }

  /// One request. False: the connection is to be closed.
  bool answer(httplib::Stream& stream, bool last) {
    bool closed = false;
    return process_request(stream, last, closed, [](httplib::Request&) {}) && !closed;
  }
};

}  // namespace

struct Pages::State {
  struct Events {
    std::chrono::milliseconds interval{};
    std::function<std::string()> next;
  };

  State();
  void route(const httplib::Request& in, httplib::Response& out);
  void send_events(const Events& of, httplib::Response& out);

  bool loopback = false;
  Speaker speaker;
  std::map<std::string, Server::Handler> handlers;
  std::map<std::string, Events> events;
  std::mutex mutex;  ///< of what follows
  std::condition_variable ended;
  bool over = false;
};

Pages::State::State() {
  speaker.set_payload_max_length(kMostBody);
  speaker.set_default_headers(
      {{"Cache-Control", "no-store"},
       {"X-Content-Type-Options", "nosniff"},
       {"Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'"}});
  speaker.set_pre_routing_handler([this](const httplib::Request& in, httplib::Response& out) {
    using Routing = httplib::Server::HandlerResponse;
    if (in.method != "GET" && in.method != "HEAD") {
      out.status = 405;
    } else if (loopback && !is_loopback_name(in.get_header_value("Host"))) {
      out.status = 421;
      out.set_content("this port answers to names of loopback only\n", "text/plain");
    } else {
      route(in, out);
    }
    return Routing::Handled;
  });
  speaker.set_exception_handler([](const httplib::Request&, httplib::Response& out,
                                   std::exception_ptr) { out.status = 500; });
}

void Pages::State::route(const httplib::Request& in, httplib::Response& out) {
  if (const auto stream = events.find(in.path); stream != events.end()) {
    return send_events(stream->second, out);
  }
  const auto handler = handlers.find(in.path);
  if (handler == handlers.end()) {
    out.status = 404;
    return out.set_content(fmt::format("there is nothing at this path\n"), "text/plain");
  }
  const Request request{
      .path = in.path,
      .query = {in.params.begin(), in.params.end()},
      .wants_open_metrics =
          in.get_header_value("Accept").find("application/openmetrics-text") != std::string::npos};
  Answer answer = handler->second(request);
  out.status = answer.status;
  out.set_content(answer.body, answer.type);
}

void Pages::State::send_events(const Events& of, httplib::Response& out) {
  out.set_chunked_content_provider(
      "text/event-stream", [this, &of](std::size_t offset, httplib::DataSink& sink) {
        if (offset > 0) {
          std::unique_lock lock(mutex);
          if (ended.wait_for(lock, of.interval, [this] { return over; })) return false;
        }
        const std::string text = of.next();
        std::string event;
        for (std::size_t at = 0; at <= text.size();) {
          const std::size_t end = std::min(text.find('\n', at), text.size());
          event += "data: " + text.substr(at, end - at) + "\n";
          at = end + 1;
        }
        event += "\n";
        return sink.write(event.data(), event.size());
      });
}

Pages::Pages() : state_(std::make_unique<State>()) {}
Pages::~Pages() = default;

void Pages::keep_to_loopback() { state_->loopback = true; }

void Pages::get(const std::string& path, Server::Handler handler) {
  state_->handlers[path] = std::move(handler);
}

void Pages::events(const std::string& path, std::chrono::milliseconds interval,
                   std::function<std::string()> next) {
  state_->events[path] = {interval, std::move(next)};
}

void Pages::serve(int socket, const std::function<bool()>& proven) {
  SocketStream stream(socket);
  for (std::size_t count = 1; count <= kMostRequestsOfOne && stream.wait(kIdle); ++count) {
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->over) break;
    }
    stream.allow(kMostHead + kMostBody);
    if (!state_->speaker.answer(stream, count == kMostRequestsOfOne)) break;
    // Who has asked one whole question is no stranger.
    if (count == 1 && !proven()) break;
  }
}

void Pages::end() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->ended.notify_all();
}

}  // namespace greynic::http
