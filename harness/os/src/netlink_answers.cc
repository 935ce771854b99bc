#include "netlink_answers.h"

#include <fmt/core.h>
#include <libmnl/libmnl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace greynic::os {
namespace {

/// The kernel's own words behind an error (NLMSGERR_ATTR_MSG), in brackets; empty when it has none.
std::string words_of(const nlmsghdr& header, ByteView payload) {
  std::string words;
  if ((header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return words;
  nlmsgerr error{};
  std::memcpy(&error, payload.data(), std::min(payload.size(), sizeof error));
  std::size_t skip = sizeof error;
  if ((header.nlmsg_flags & NLM_F_CAPPED) == 0) skip += error.msg.nlmsg_len - sizeof(nlmsghdr);
  skip = MNL_ALIGN(skip);
  if (skip > payload.size()) return words;
  each_attribute(payload.subspan(skip), [&](std::uint16_t type, ByteView value) {
    if (type != NLMSGERR_ATTR_MSG || value.empty()) return;
    words = fmt::format(" ({})", text_of(value));
  });
  return words;
}

}  // namespace

void each_message(ByteView datagram,
                  const std::function<void(const nlmsghdr& header, ByteView payload)>& visit) {
  int left = static_cast<int>(datagram.size());
  const auto* header = reinterpret_cast<const nlmsghdr*>(datagram.data());
  for (; mnl_nlmsg_ok(header, left); header = mnl_nlmsg_next(header, &left)) {
    visit(*header, {static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(header)),
                    mnl_nlmsg_get_payload_len(header)});
  }
}

int error_of(ByteView payload) {
  nlmsgerr error{};
  std::memcpy(&error, payload.data(), std::min(payload.size(), sizeof error));
  return -error.error;
}

void BatchAnswers::take(ByteView datagram) {
  each_message(datagram, [&](const nlmsghdr& header, ByteView payload) {
    if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq < first_ || open_ == 0) return;
    --open_;
    const int error = error_of(payload);
    if (error == 0 || refusal_) return;
    const bool right = error == EPERM;
    refusal_ = {.index = header.nlmsg_seq - first_,
                .error = {right ? ErrorCode::kMissing : ErrorCode::kRefused,
                          fmt::format("the kernel refused: {}{}{}", std::strerror(error),
                                      words_of(header, payload),
                                      right ? "; run as root or with CAP_NET_ADMIN" : "")}};
  });
}

}  // namespace greynic::os
