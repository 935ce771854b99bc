#include "greynic/os/netlink.h"

#include <fmt/core.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>

#include "netlink_answers.h"

namespace greynic::os {
namespace {

/// Answers of one batch must fit the socket's buffer; each takes about 1 KiB of it.
constexpr std::size_t kBatch = 64;
constexpr timeval kAnswerPatience{.tv_sec = 120, .tv_usec = 0};  // an answer may be lost with no room
constexpr int kSocketBytes = 1 << 20;
constexpr std::size_t kDatagramBytes = 1 << 18;

tl::unexpected<Error> system_error(std::string_view what) {
  return fail(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, std::uint16_t flags) : bytes_(MNL_NLMSG_HDRLEN) {
  nlmsghdr* const made = mnl_nlmsg_put_header(bytes_.data());
  made->nlmsg_type = type;
  made->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

nlmsghdr* NetlinkMessage::header() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }

nlmsghdr* NetlinkMessage::with_room_for(std::size_t bytes) {
  bytes_.resize(header()->nlmsg_len + MNL_ALIGN(bytes));
  return header();
}

void NetlinkMessage::append_bytes(ByteView bytes) {
  void* const place = mnl_nlmsg_put_extra_header(with_room_for(bytes.size()), bytes.size());
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
}

void NetlinkMessage::put(std::uint16_t attribute, ByteView value) {
  mnl_attr_put(with_room_for(MNL_ATTR_HDRLEN + value.size()), attribute, value.size(),
               value.data());
}

void NetlinkMessage::put_text(std::uint16_t attribute, std::string_view text) {
  mnl_attr_put_strz(with_room_for(MNL_ATTR_HDRLEN + text.size() + 1), attribute,
                    std::string(text).c_str());
}

std::size_t NetlinkMessage::open(std::uint16_t attribute) {
  const std::size_t mark = bytes_.size();
  (void)mnl_attr_nest_start(with_room_for(MNL_ATTR_HDRLEN), attribute);
  return mark;
}

void NetlinkMessage::close(std::size_t mark) {
  mnl_attr_nest_end(header(), reinterpret_cast<nlattr*>(bytes_.data() + mark));
}

void each_attribute(ByteView payload,
                    const std::function<void(std::uint16_t type, ByteView value)>& visit) {
  const auto* attribute = reinterpret_cast<const nlattr*>(payload.data());
  const auto left = [&] {
    return static_cast<int>(payload.data() + payload.size() -
                            reinterpret_cast<const std::uint8_t*>(attribute));
  };
  for (; mnl_attr_ok(attribute, left()); attribute = mnl_attr_next(attribute)) {
    visit(mnl_attr_get_type(attribute),
          {static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute)),
           mnl_attr_get_payload_len(attribute)});
  }
}

std::uint64_t native_number(ByteView value) {
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  return number;
}

std::string text_of(ByteView value) {
  return value.empty() ? "" : std::string(value.begin(), value.end() - 1);
}

void NetlinkSocket::Close::operator()(mnl_socket* socket) const { mnl_socket_close(socket); }

Result<NetlinkSocket> NetlinkSocket::create(int family) {
  std::unique_ptr<mnl_socket, Close> socket(mnl_socket_open2(family, SOCK_CLOEXEC));
  if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return system_error("cannot open a netlink socket");
  }
  int on = 1;
  mnl_socket_setsockopt(socket.get(), NETLINK_EXT_ACK, &on, sizeof on);
  mnl_socket_setsockopt(socket.get(), NETLINK_CAP_ACK, &on, sizeof on);
  const int descriptor = mnl_socket_get_fd(socket.get());
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBytes, sizeof kSocketBytes) != 0) {
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  }
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
  return NetlinkSocket(std::move(socket));
}

Result<void> NetlinkSocket::transmit(ByteView bytes) {
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) >= 0) return {};
  return system_error("cannot ask the kernel by netlink");
}

Result<ByteView> NetlinkSocket::receive() {
  buffer_.resize(kDatagramBytes);
  ssize_t got = -1;
  do {
    got = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("no answer from the kernel by netlink");
  return ByteView(buffer_.data(), static_cast<std::size_t>(got));
}

Result<void> NetlinkSocket::send(std::vector<NetlinkMessage>& messages, std::size_t* refused) {
  for (std::size_t begin = 0; begin < messages.size(); begin += kBatch) {
    const std::size_t end = std::min(messages.size(), begin + kBatch);
    BatchAnswers answers(sequence_ + 1, end - begin);
    std::vector<std::uint8_t> batch;
    for (std::size_t i = begin; i < end; ++i) {
      nlmsghdr* const header = messages[i].header();
      header->nlmsg_flags |= NLM_F_ACK;
      header->nlmsg_seq = ++sequence_;
      batch.insert(batch.end(), messages[i].bytes_.begin(), messages[i].bytes_.end());
    }
    if (auto sent = transmit(batch); !sent) return sent;
    while (!answers.complete()) {
      const auto datagram = receive();
      if (!datagram) return pass_on(datagram);
      answers.take(*datagram);
    }
    if (const auto& refusal = answers.refusal()) {
      if (refused != nullptr) *refused = begin + refusal->index;
      return tl::unexpected(refusal->error);
    }
  }
  return {};
}

Result<std::vector<NetlinkAnswer>> NetlinkSocket::ask(NetlinkMessage message) {
  return exchange(std::move(message), NLM_F_ACK);
}

Result<std::vector<NetlinkAnswer>> NetlinkSocket::dump(NetlinkMessage message) {
  return exchange(std::move(message), NLM_F_DUMP);
}

Result<std::vector<NetlinkAnswer>> NetlinkSocket::exchange(NetlinkMessage message,
                                                           std::uint16_t flags) {
  nlmsghdr* const request = message.header();
  request->nlmsg_flags |= flags;
  request->nlmsg_seq = ++sequence_;
  if (auto sent = transmit(message.bytes_); !sent) return pass_on(sent);
  std::vector<NetlinkAnswer> answers;
  bool done = false;
  int error = 0;
  while (!done) {
    const auto datagram = receive();
    if (!datagram) return pass_on(datagram);
    each_message(*datagram, [&](const nlmsghdr& header, ByteView payload) {
      if (header.nlmsg_seq != sequence_) return;
      if (header.nlmsg_type == NLMSG_DONE) {
        done = true;
      } else if (header.nlmsg_type == NLMSG_ERROR) {
        done = true;
        error = error_of(payload);
      } else {
        answers.push_back({header.nlmsg_type, {payload.begin(), payload.end()}});
      }
    });
  }
  if (error != 0) {
    return fail(ErrorCode::kRefused, fmt::format("the kernel refused: {}", std::strerror(error)));
  }
  return answers;
}

Result<LinkNumbers> links(NetlinkSocket& socket) {
  auto answers = socket.dump(NetlinkMessage(RTM_GETLINK, 0, ifinfomsg{}));
  if (!answers) return pass_on(answers);
  LinkNumbers found;
  for (const NetlinkAnswer& answer : *answers) {
    if (answer.type != RTM_NEWLINK || answer.payload.size() < sizeof(ifinfomsg)) continue;
    ifinfomsg link{};
    std::memcpy(&link, answer.payload.data(), sizeof link);
    const ByteView attributes = ByteView(answer.payload).subspan(sizeof link);
    each_attribute(attributes, [&](std::uint16_t type, ByteView value) {
      if (type == IFLA_IFNAME && !value.empty()) found.emplace(text_of(value), link.ifi_index);
    });
  }
  return found;
}

}  // namespace greynic::os
