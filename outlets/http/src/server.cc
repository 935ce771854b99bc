#include "greynic/http/server.h"

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "greynic/daemon/door.h"
#include "socket_stream.h"

namespace greynic::http {
namespace {

constexpr std::chrono::milliseconds kIdle{15000};
constexpr std::size_t kMostRequestsOfOne = 1000;
constexpr std::size_t kMostBody = 64 << 10;

std::string_view type_of(std::string_view name) {
  const std::string_view ending = name.substr(std::min(name.rfind('.'), name.size()));
  if (ending == ".html") return "text/html; charset=utf-8";
  if (ending == ".js") return "text/javascript; charset=utf-8";
  if (ending == ".css") return "text/css; charset=utf-8";
  if (ending == ".svg") return "image/svg+xml";
  if (ending == ".json") return "application/json";
  return "application/octet-stream";
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

std::string_view Request::value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

struct Server::State {
  std::unique_ptr<daemon::Door> door;
  bool loopback = false;
  Speaker speaker;
  std::map<std::string, Handler> handlers;
  struct Events {
    std::chrono::milliseconds interval{};
    std::function<std::string()> next;
  };
  std::map<std::string, Events> events;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  bool started = false;
  bool over = false;
  std::size_t connections = 0;

  /// A name of this host as a browser or scraper here says it.
  [[nodiscard]] static bool is_loopback_name(std::string_view host) {
    const bool bracket = host.starts_with('[');
    const std::size_t end = bracket ? host.find(']') : host.find(':');
    const std::string_view name =
        host.substr(0, end == std::string_view::npos ? end : end + bracket);
    return name == "localhost" || name == "[::1]" || daemon::is_loopback(fmt::format("{}:1", name));
  }

  void prepare() {
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

  void route(const httplib::Request& in, httplib::Response& out) {
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
        .wants_open_metrics = in.get_header_value("Accept").find("application/openmetrics-text") !=
                              std::string::npos};
    Answer answer = handler->second(request);
    out.status = answer.status;
    out.set_content(answer.body, answer.type);
  }

  void send_events(const Events& of, httplib::Response& out) {
    out.set_chunked_content_provider(
        "text/event-stream", [this, &of](std::size_t offset, httplib::DataSink& sink) {
          if (offset > 0) {
            std::unique_lock lock(mutex);
            if (changed.wait_for(lock, of.interval, [this] { return over; })) return false;
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

  /// Its thread ends with the connection: when its caller hangs up, is silent for long, or the door
  /// cuts it.
  void serve(int socket) {
    SocketStream stream(socket);
    const std::string peer = daemon::peer_of(socket);
    for (std::size_t count = 1; count <= kMostRequestsOfOne && stream.wait(kIdle); ++count) {
      {
        const std::lock_guard lock(mutex);
        if (over) break;
      }
      if (!speaker.answer(stream, count == kMostRequestsOfOne)) break;
      // Who has asked one whole question is no stranger.
      if (count == 1 && !door->proven(peer)) break;
    }
  }

  void take(int socket) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return started || over; });
      ++connections;
    }
    const auto leave = [this] {
      const std::lock_guard lock(mutex);
      --connections;
      changed.notify_all();
    };
    try {
      std::thread([this, socket, leave] {
        serve(socket);
        leave();
      }).detach();
    } catch (const std::system_error&) {  // no more threads
      SocketStream closed(socket);
      leave();
    }
  }
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Server>> Server::open(const std::string& listen) {
  auto state = std::make_unique<State>();
  const std::string where = listen.starts_with(':') ? "127.0.0.1" + listen : listen;
  auto door = daemon::Door::open(where, {.half_closed_stay = true},
                                 [raw = state.get()](int socket) { raw->take(socket); });
  if (!door) return pass_on(door);
  state->loopback = daemon::is_loopback((*door)->address());
  state->door = std::move(*door);
  state->prepare();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->changed.notify_all();
  state_->door->close();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->connections == 0; });
}

const std::string& Server::address() const { return state_->door->address(); }

void Server::get(const std::string& path, Handler handler) {
  state_->handlers[path] = std::move(handler);
}

void Server::metrics(const std::string& path, std::function<outlets::OpenMetrics()> make) {
  get(path, [make = std::move(make)](const Request& request) {
    using Format = outlets::OpenMetrics::Format;
    return request.wants_open_metrics
               ? Answer{.body = make().text(Format::kOpenMetrics),
                        .type = "application/openmetrics-text; version=1.0.0; charset=utf-8"}
               : Answer{.body = make().text(Format::kOlderText),
                        .type = "text/plain; version=0.0.4; charset=utf-8"};
  });
}

void Server::files(std::span<const EmbeddedFile> files) {
  for (const EmbeddedFile& file : files) {
    const auto give = [file](const Request&) {
      return Answer{.body = std::string(file.text), .type = std::string(type_of(file.name))};
    };
    get("/" + std::string(file.name), give);
    if (file.name == "index.html") get("/", give);
  }
}

void Server::events(const std::string& path, std::chrono::milliseconds interval,
                    std::function<std::string()> next) {
  state_->events[path] = {interval, std::move(next)};
}

void Server::start() {
  const std::lock_guard lock(state_->mutex);
  state_->started = true;
  state_->changed.notify_all();
}

}  // namespace greynic::http
