#pragma once

/// JSON-RPC 1.0 over a unix socket, as Open vSwitch speaks it at every door: the control socket
/// that ovs-appctl uses and the database socket of OVSDB (RFC 7047). One call at a time.

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::flows {

/// Finds where the first JSON object of a growing text ends; each byte is looked at once. Messages
/// follow one another without any separator, so braces outside strings are counted.
class JsonEnd {
 public:
  /// The object's length; 0 while it is not whole.
  [[nodiscard]] std::size_t find(std::string_view text);
  /// Its brackets are nested deeper than any message of Open vSwitch.
  [[nodiscard]] bool too_deep() const { return depth_ > kDeepest; }

 private:
  static constexpr int kDeepest = 200;
  std::size_t looked_at_ = 0;
  int depth_ = 0;
  bool in_string_ = false;
};

class JsonRpc {
 public:
  /// kMissing when nobody listens at the path.
  [[nodiscard]] static Result<JsonRpc> connect(const std::string& socket_path);
  JsonRpc(JsonRpc&& other) noexcept;
  JsonRpc& operator=(JsonRpc&& other) noexcept;
  ~JsonRpc();

  /// Sends one request and waits for its answer; echo requests of the other side are answered
  /// meanwhile. kRefused carries the error that came back, kIo a broken or silent connection, one
  /// that does not take the request in time, or one that sends more than any answer is long.
  [[nodiscard]] Result<nlohmann::json> call(
      std::string_view method, nlohmann::json parameters,
      std::chrono::milliseconds timeout = std::chrono::seconds(30));

 private:
  JsonRpc(int socket, std::string path) : socket_(socket), path_(std::move(path)) {}
  [[nodiscard]] Result<void> send(const nlohmann::json& message,
                                  std::chrono::steady_clock::time_point deadline);
  /// The next whole JSON document on the wire.
  [[nodiscard]] Result<nlohmann::json> receive(std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  std::string path_;
  std::string unread_;
  JsonEnd end_;
  std::uint64_t last_id_ = 0;
};

}  // namespace greynic::flows
