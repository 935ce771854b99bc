#pragma once

/// What a server says to one who is connected: the paths that it knows, and the requests of a
/// connection one after the other. Where connections come from is server.cc's part.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "greynic/http/server.h"

namespace greynic::http {

class Pages {
 public:
  Pages();
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // All of it before the first serve().

  /// Of a port of loopback: answers only to names of loopback.
  void keep_to_loopback();
  void get(const std::string& path, Server::Handler handler);
  void events(const std::string& path, std::chrono::milliseconds interval,
              std::function<std::string()> next);

  /// Answers what a connection asks, and closes it: when its caller hangs up, is silent for long,
  /// or after end(). `proven` is asked once, behind the first whole question; false closes it too.
  void serve(int socket, const std::function<bool()>& proven);
  /// Ends the streams of all connections, and what is served after it.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::http
