#pragma once

/// What both ends of zero.proto agree on.

#include <algorithm>

#include "greynic/core/result.h"
#include "greynic/daemon/log.h"
#include "rdma.h"
#include "zero.grpc.pb.h"

namespace greynic::remote {

inline constexpr int kProtocol = 2;

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

inline void write(const RdmaEnd& end, wire::End& out) {
  out.set_gid(end.at.gid.data(), end.at.gid.size());
  out.set_lid(end.at.lid);
  out.set_qp_number(end.at.qp_number);
  out.set_psn(end.at.psn);
  out.set_over_ethernet(end.at.over_ethernet);
  out.set_mtu_bytes(end.mtu_bytes);
}

inline Result<RdmaEnd> read(const wire::End& in) {
  RdmaEnd end;
  if (in.gid().size() != end.at.gid.size() || in.lid() > 0xffff) {
    return fail(ErrorCode::kBadInput, "the other end of the queue pair has no address");
  }
  std::copy(in.gid().begin(), in.gid().end(), end.at.gid.begin());
  end.at.lid = static_cast<std::uint16_t>(in.lid());
  end.at.qp_number = in.qp_number();
  end.at.psn = in.psn();
  end.at.over_ethernet = in.over_ethernet();
  end.mtu_bytes = in.mtu_bytes();
  return end;
}

}  // namespace greynic::remote
