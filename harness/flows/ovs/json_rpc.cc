#include "ovs/json_rpc.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "greynic/files/json_file.h"

namespace greynic::flows {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestMessage = 512UL << 20U;  // a million flows of a switch are 200 MB

/// Milliseconds until then, for poll.
int left_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
}

}  // namespace

std::size_t JsonEnd::find(std::string_view text) {
  while (looked_at_ < text.size() && !too_deep()) {
    const char c = text[looked_at_++];
    if (in_string_) {
      if (c == '\\') {
        ++looked_at_;  // also where the next byte has not come yet
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      const std::size_t length = looked_at_;
      *this = {};
      return length;
    }
  }
  return 0;
}

Result<JsonRpc> JsonRpc::connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kBadInput,
                fmt::format("socket path {} is longer than the {} bytes a unix socket allows",
                            socket_path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return fail(ErrorCode::kIo, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(descriptor);
    return fail(ErrorCode::kMissing,
                fmt::format("nobody answers at {}: {}", socket_path, std::strerror(error)));
  }
  return JsonRpc(descriptor, socket_path);
}

JsonRpc::JsonRpc(JsonRpc&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      path_(std::move(other.path_)),
      unread_(std::move(other.unread_)),
      end_(other.end_),
      last_id_(other.last_id_) {}

JsonRpc& JsonRpc::operator=(JsonRpc&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(path_, other.path_);
  std::swap(unread_, other.unread_);
  std::swap(end_, other.end_);
  std::swap(last_id_, other.last_id_);
  return *this;
}

JsonRpc::~JsonRpc() {
  if (socket_ >= 0) close(socket_);
}

Result<void> JsonRpc::send(const json& message, std::chrono::steady_clock::time_point deadline) {
  const std::string text = files::json_text(message);
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting = {socket_, POLLOUT, 0};
      const int left = left_until(deadline);
      if (left == 0 || poll(&waiting, 1, left) == 0) {
        return fail(ErrorCode::kIo, fmt::format("{}: does not read in time", path_));
      }
      continue;
    }
    if (count < 0) {
      return fail(ErrorCode::kIo, fmt::format("{}: cannot send: {}", path_, std::strerror(errno)));
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<json> JsonRpc::receive(std::chrono::steady_clock::time_point deadline) {
  while (true) {
    if (const std::size_t length = end_.find(unread_); length > 0) {
      json message = json::parse(unread_.substr(0, length), nullptr, false);
      unread_.erase(0, length);
      if (!message.is_object()) {
        return fail(ErrorCode::kIo, fmt::format("{}: the answer is no JSON object", path_));
      }
      return message;
    }
    if (end_.too_deep() || unread_.size() > kLongestMessage) {
      return fail(ErrorCode::kIo,
                  fmt::format("{}: the answer is longer or deeper than any", path_));
    }
    pollfd waiting = {socket_, POLLIN, 0};
    const int left = left_until(deadline);
    if (left == 0 || poll(&waiting, 1, left) == 0) {
      return fail(ErrorCode::kIo, fmt::format("{}: no answer in time", path_));
    }
    char buffer[65536];
    const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fail(ErrorCode::kIo, fmt::format("{}: the other side closed the connection", path_));
    }
    unread_.append(buffer, static_cast<std::size_t>(count));
  }
}

Result<json> JsonRpc::call(std::string_view method, json parameters,
                           std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::uint64_t id = ++last_id_;
  auto sent = send({{"method", method}, {"params", std::move(parameters)}, {"id", id}}, deadline);
  if (!sent) return pass_on(sent);
  while (true) {
    auto message = receive(deadline);
    if (!message) return pass_on(message);
    if ((*message)["method"] == "echo") {
      sent = send({{"result", (*message)["params"]}, {"error", nullptr}, {"id", (*message)["id"]}},
                  deadline);
      if (!sent) return pass_on(sent);
      continue;
    }
    if ((*message)["id"] != id) continue;
    const json& error = (*message)["error"];
    if (!error.is_null()) {
      std::string text = error.is_string() ? error.get<std::string>() : files::json_text(error);
      while (!text.empty() && text.back() == '\n') text.pop_back();
      return fail(ErrorCode::kRefused, fmt::format("{}: {}", method, text));
    }
    return std::move((*message)["result"]);
  }
}

}  // namespace greynic::flows
