#pragma once

/// A small HTTP server for what people and scrapers look at: pages, JSON, metrics, live events. It
/// only ever answers GET and HEAD. Connections come through the door of daemons, so idle or slow ones
/// keep nobody out (daemon/door.h).
///
/// Nobody is asked for a name: whoever reaches the port may read. So it listens on loopback unless
/// an address is given, and there it answers only to names of loopback, since a page from elsewhere
/// could otherwise read it through the browser of someone on this host. docs/security.md.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/embedded.h"
#include "greynic/core/result.h"
#include "greynic/outlets/open_metrics.h"

namespace greynic::http {

struct Request {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, as they came
  bool wants_open_metrics = false;
  /// The first value of that name; empty when there is none.
  [[nodiscard]] std::string_view value(std::string_view name) const;
};

struct Answer {
  std::string body;
  std::string type = "application/json";
  int status = 200;
};

class Server {
 public:
  using Handler = std::function<Answer(const Request&)>;

  /// Takes the port, and answers from start() on. `listen`: ":9100" (of 127.0.0.1), "HOST:PORT",
  /// "[::]:9100"; port 0: any that is free. Errors: kBadInput when it is no such text, kIo when the
  /// port is taken or this host has no such address.
  [[nodiscard]] static Result<std::unique_ptr<Server>> open(const std::string& listen);
  ~Server();  ///< cuts all connections, and ends within a second
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "127.0.0.1:9100"
  [[nodiscard]] const std::string& address() const;

  // What it answers; all of it before start(). Handlers run in threads of their own, several at
  // once.

  void get(const std::string& path, Handler handler);
  /// What Prometheus scrapes, in the format that it asks for.
  void metrics(const std::string& path, std::function<outlets::OpenMetrics()> make);
  /// Files by their names: "/name". The one that is called index.html is "/" too.
  void files(std::span<const EmbeddedFile> files);
  /// Server-sent events: what `next` gives, at once and then once an interval, to each listener.
  void events(const std::string& path, std::chrono::milliseconds interval,
              std::function<std::string()> next);

  void start();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::http
