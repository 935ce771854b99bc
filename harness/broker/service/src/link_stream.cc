#include "link_stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace greynic::broker {
namespace {

/// Kind and length. The longest message that a broker sends is a lane's call, of 56 bytes.
constexpr std::size_t kHeadBytes = 3, kMostBody = 1024;
/// A peer that takes nothing any more is given up.
constexpr std::size_t kMostUnsent = 1 << 20;

}  // namespace

LinkStream::~LinkStream() {
  SSL_free(tls_);
  // The door's duplicate would keep the connection open.
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
}

void LinkStream::send(MessageKind kind, std::span<const std::byte> body) {
  const auto bytes = static_cast<std::uint16_t>(body.size());
  out_.push_back(static_cast<std::byte>(kind));
  out_.push_back(static_cast<std::byte>(bytes & 0xff));
  out_.push_back(static_cast<std::byte>(bytes >> 8));
  out_.insert(out_.end(), body.begin(), body.end());
}

bool LinkStream::move() { return read_all() && write_all(); }

/// What a call of TLS that moved nothing means.
long LinkStream::judge(int result) {
  const int error = SSL_get_error(tls_, result);
  if (error == SSL_ERROR_WANT_READ) return 0;
  if (error == SSL_ERROR_WANT_WRITE) {
    tls_wants_write_ = true;
    return 0;
  }
  const long verified = SSL_get_verify_result(tls_);
  if (verified != X509_V_OK) {
    end_ = fmt::format("its certificate is not taken: {}", X509_verify_cert_error_string(verified));
  } else if (const unsigned long why = ERR_peek_error(); why != 0) {
    const char* words = ERR_reason_error_string(why);
    end_ = fmt::format("TLS: {}; give both brokers certificates of one lab",
                       words == nullptr ? "an error" : words);
  } else {
    end_ = "it hung up";
  }
  ERR_clear_error();
  return -1;
}

long LinkStream::read_some(std::byte* into, std::size_t most) {
  if (tls_ != nullptr) {
    const int got = SSL_read(tls_, into, static_cast<int>(most));
    return got > 0 ? got : judge(got);
  }
  const ssize_t got = ::recv(socket_, into, most, MSG_DONTWAIT);
  if (got > 0) return got;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  end_ = got == 0 ? "it hung up" : std::strerror(errno);
  return -1;
}

long LinkStream::write_some(const std::byte* from, std::size_t most) {
  if (tls_ != nullptr) {
    const int put = SSL_write(tls_, from, static_cast<int>(most));
    return put > 0 ? put : judge(put);
  }
  const ssize_t put = ::send(socket_, from, most, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put > 0) return put;
  if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN) return 0;
  end_ = std::strerror(errno);
  return -1;
}

bool LinkStream::read_all() {
  std::array<std::byte, 4096> part;
  tls_wants_write_ = false;
  // A whole message at least is taken out before more is read.
  while (in_.size() < 2 * (kHeadBytes + kMostBody)) {
    const long got = read_some(part.data(), part.size());
    if (got <= 0) return got == 0;
    in_.insert(in_.end(), part.begin(), part.begin() + got);
  }
  return true;
}

bool LinkStream::write_all() {
  while (!out_.empty()) {
    const long put = write_some(out_.data(), out_.size());
    if (put < 0) return false;
    if (put == 0) break;
    out_.erase(out_.begin(), out_.begin() + put);
  }
  if (out_.size() <= kMostUnsent) return true;
  end_ = "it takes no messages";
  return false;
}

std::optional<Message> LinkStream::next() {
  if (in_.size() < kHeadBytes) return std::nullopt;
  const std::size_t bytes = static_cast<std::size_t>(in_[1]) | static_cast<std::size_t>(in_[2])
                                                                   << 8;
  if (bytes > kMostBody) {
    end_ = "it sends a message longer than any of ours";
    return std::nullopt;
  }
  if (in_.size() < kHeadBytes + bytes) return std::nullopt;
  const auto begin = in_.begin() + kHeadBytes;
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
  Message message{static_cast<MessageKind>(in_[0]), {begin, end}};
  in_.erase(in_.begin(), end);
  return message;
}

}  // namespace greynic::broker
