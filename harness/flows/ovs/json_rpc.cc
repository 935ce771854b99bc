#include "ovs/json_rpc.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace greynic::flows {
namespace {

using nlohmann::json;

/// Length of the first whole JSON object in `text`; 0 while it is not whole. Messages follow one
/// another without any separator, so braces outside strings are counted.
std::size_t whole_object(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return 0;
}

}  // namespace

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
      last_id_(other.last_id_) {}

JsonRpc& JsonRpc::operator=(JsonRpc&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(path_, other.path_);
  std::swap(unread_, other.unread_);
  std::swap(last_id_, other.last_id_);
  return *this;
}

JsonRpc::~JsonRpc() {
  if (socket_ >= 0) close(socket_);
}

Result<void> JsonRpc::send(const json& message) {
  const std::string text = message.dump();
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorCode::kIo, fmt::format("{}: cannot send: {}", path_, std::strerror(errno)));
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<json> JsonRpc::receive(std::chrono::steady_clock::time_point deadline) {
  while (true) {
    if (const std::size_t length = whole_object(unread_); length > 0) {
      json message = json::parse(unread_.substr(0, length), nullptr, false);
      unread_.erase(0, length);
      if (!message.is_object()) {
        return fail(ErrorCode::kIo, fmt::format("{}: the answer is no JSON object", path_));
      }
      return message;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - std::chrono::steady_clock::now())
                          .count();
    pollfd waiting = {socket_, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
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
  auto sent = send({{"method", method}, {"params", std::move(parameters)}, {"id", id}});
  if (!sent) return pass_on(sent);
  while (true) {
    auto message = receive(deadline);
    if (!message) return pass_on(message);
    if ((*message)["method"] == "echo") {
      sent = send({{"result", (*message)["params"]}, {"error", nullptr}, {"id", (*message)["id"]}});
      if (!sent) return pass_on(sent);
      continue;
    }
    if ((*message)["id"] != id) continue;
    const json& error = (*message)["error"];
    if (!error.is_null()) {
      std::string text = error.is_string() ? error.get<std::string>() : error.dump();
      while (!text.empty() && text.back() == '\n') text.pop_back();
      return fail(ErrorCode::kRefused, fmt::format("{}: {}", method, text));
    }
    return std::move((*message)["result"]);
  }
}

}  // namespace greynic::flows
