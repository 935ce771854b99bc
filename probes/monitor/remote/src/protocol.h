#pragma once

/// What both ends of zero.proto agree on.

#include "greynic/core/result.h"
#include "greynic/daemon/log.h"
#include "zero.grpc.pb.h"

namespace greynic::remote {

inline constexpr int kProtocol = 1;

inline void write(const Error& error, wire::Fault& out) {
  out.set_code(static_cast<int>(error.code));
  out.set_message(error.message);
}

/// What came from outside: an unknown code is of the world, and text is plain and short.
inline Error read(const wire::Fault& in) {
  constexpr int kLast = static_cast<int>(ErrorCode::kInterrupted);
  const bool known = in.code() >= 0 && in.code() <= kLast;
  return {known ? static_cast<ErrorCode>(in.code()) : ErrorCode::kIo,
          daemon::plain(in.message(), 400)};
}

}  // namespace greynic::remote
