#include "greynic/http/server.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "greynic/daemon/door.h"
#include "pages.h"

namespace greynic::http {
namespace {

std::string_view type_of(std::string_view name) {
  const std::string_view ending = name.substr(std::min(name.rfind('.'), name.size()));
  if (ending == ".html") return "text/html; charset=utf-8";
  if (ending == ".js") return "text/javascript; charset=utf-8";
  if (ending == ".css") return "text/css; charset=utf-8";
  if (ending == ".svg") return "image/svg+xml";
  if (ending == ".json") return "application/json";
  return "application/octet-stream";
}

}  // namespace

std::string_view Request::value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

struct Server::State {
  Pages pages;
  std::unique_ptr<daemon::Door> door;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  bool started = false;
  bool over = false;
  std::size_t connections = 0;

  /// The thread of a connection ends with it; so does the door, which may cut it at any time.
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
        const std::string peer = daemon::peer_of(socket);
        pages.serve(socket, [&] { return door->proven(peer); });
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
  if (daemon::is_loopback((*door)->address())) state->pages.keep_to_loopback();
  state->door = std::move(*door);
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->changed.notify_all();
  state_->pages.end();
  state_->door->close();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->connections == 0; });
}

const std::string& Server::address() const { return state_->door->address(); }

void Server::get(const std::string& path, Handler handler) {
  state_->pages.get(path, std::move(handler));
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
  state_->pages.events(path, interval, std::move(next));
}

void Server::start() {
  const std::lock_guard lock(state_->mutex);
  state_->started = true;
  state_->changed.notify_all();
}

}  // namespace greynic::http
