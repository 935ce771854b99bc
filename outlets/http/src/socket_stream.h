#pragma once

/// A connection that came through the door, as httplib wants it.

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstdint>

namespace greynic::http {

class SocketStream final : public httplib::Stream {
 public:
  /// Owns the socket.
  explicit SocketStream(int socket) : socket_(socket) {}
  ~SocketStream() override;
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  /// So many bytes more are read; behind them is the end.
  void allow(std::size_t bytes) { allowed_ = bytes; }
  /// Waits so long for more to read; false when nothing came.
  [[nodiscard]] bool wait(std::chrono::milliseconds patience) const;

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* into, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  int socket_;
  std::array<char, 4096> buffer_{};  // httplib reads heads byte by byte
  std::size_t at_ = 0, end_ = 0;
  std::size_t allowed_ = SIZE_MAX;
};

}  // namespace greynic::http
