#include "netlink.h"

#include <fmt/core.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace greynic::flows {
namespace {

/// Answers of one batch must fit the socket's buffer; each takes about 1 KiB of it.
constexpr std::size_t kBatch = 64;
constexpr int kBufferBytes = 1 << 20;
constexpr int kSolNetlink = 270;  // SOL_NETLINK, which glibc keeps in another header

std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

tl::unexpected<Error> system_error(std::string_view what) {
  return fail(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// The kernel's own words behind an error (NLMSGERR_ATTR_MSG); empty when it has none.
std::string words_of(const nlmsghdr& header, Bytes payload) {
  if ((header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return "";
  nlmsgerr error{};
  std::memcpy(&error, payload.data(), sizeof error);
  std::size_t skip = sizeof error;
  if ((header.nlmsg_flags & NLM_F_CAPPED) == 0) skip += error.msg.nlmsg_len - sizeof(nlmsghdr);
  std::string words;
  if (skip > payload.size()) return words;
  each_attribute(payload.subspan(aligned(skip)), [&](std::uint16_t type, Bytes value) {
    if (type == NLMSGERR_ATTR_MSG && !value.empty()) {
      words.assign(reinterpret_cast<const char*>(value.data()), value.size() - 1);
    }
  });
  return words;
}

/// Waits for one datagram and visits the messages in it.
Result<void> receive(int descriptor, std::vector<std::uint8_t>& buffer,
                     const std::function<void(const nlmsghdr& header, Bytes payload)>& visit) {
  ssize_t got = -1;
  do {
    got = recv(descriptor, buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("no answer from the kernel by netlink");
  Bytes rest(buffer.data(), static_cast<std::size_t>(got));
  while (rest.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, rest.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) break;
    visit(header, rest.subspan(sizeof header, header.nlmsg_len - sizeof header));
    rest = rest.subspan(std::min(rest.size(), aligned(header.nlmsg_len)));
  }
  return {};
}

/// The number in an NLMSG_ERROR: 0 when the kernel said yes.
int error_of(Bytes payload) {
  nlmsgerr error{};
  std::memcpy(&error, payload.data(), std::min(payload.size(), sizeof error));
  return -error.error;
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, std::uint16_t flags, Bytes family_header)
    : bytes_(sizeof(nlmsghdr)) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  std::memcpy(bytes_.data(), &header, sizeof header);
  add(family_header);
}

void NetlinkMessage::add(Bytes bytes) {
  const std::size_t at = bytes_.size();
  bytes_.resize(aligned(at + bytes.size()));
  if (!bytes.empty()) std::memcpy(&bytes_[at], bytes.data(), bytes.size());
}

void NetlinkMessage::put(std::uint16_t attribute, Bytes value) {
  const nlattr header = {static_cast<std::uint16_t>(sizeof(nlattr) + value.size()), attribute};
  append(header);
  add(value);
}

void NetlinkMessage::put_text(std::uint16_t attribute, std::string_view text) {
  std::vector<std::uint8_t> value(text.begin(), text.end());
  value.push_back(0);
  put(attribute, value);
}

std::size_t NetlinkMessage::open(std::uint16_t attribute) {
  const std::size_t mark = bytes_.size();
  put(static_cast<std::uint16_t>(attribute | NLA_F_NESTED), {});
  return mark;
}

void NetlinkMessage::close(std::size_t mark) {
  const auto size = static_cast<std::uint16_t>(bytes_.size() - mark);
  std::memcpy(&bytes_[mark], &size, sizeof size);
}

void each_attribute(Bytes payload,
                    const std::function<void(std::uint16_t type, Bytes value)>& visit) {
  while (payload.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, payload.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > payload.size()) return;
    visit(header.nla_type & NLA_TYPE_MASK,
          payload.subspan(sizeof header, header.nla_len - sizeof header));
    payload = payload.subspan(std::min(payload.size(), aligned(header.nla_len)));
  }
}

std::uint64_t native_number(Bytes value) {
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  return number;
}

Result<NetlinkSocket> NetlinkSocket::create() {
  const int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (descriptor < 0) return system_error("cannot open a netlink socket");
  const int on = 1;
  setsockopt(descriptor, kSolNetlink, NETLINK_EXT_ACK, &on, sizeof on);
  setsockopt(descriptor, kSolNetlink, NETLINK_CAP_ACK, &on, sizeof on);
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof kBufferBytes) != 0) {
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  }
  return NetlinkSocket(descriptor);
}

NetlinkSocket::NetlinkSocket(NetlinkSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), sequence_(other.sequence_) {}

NetlinkSocket& NetlinkSocket::operator=(NetlinkSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(sequence_, other.sequence_);
  return *this;
}

NetlinkSocket::~NetlinkSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<void> NetlinkSocket::send(std::vector<NetlinkMessage>& messages, std::size_t* refused) {
  for (std::size_t begin = 0; begin < messages.size(); begin += kBatch) {
    const std::size_t end = std::min(messages.size(), begin + kBatch);
    const std::uint32_t first = sequence_ + 1;
    std::vector<std::uint8_t> batch;
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<std::uint8_t>& bytes = messages[i].bytes_;
      nlmsghdr header{};
      std::memcpy(&header, bytes.data(), sizeof header);
      header.nlmsg_len = static_cast<std::uint32_t>(bytes.size());
      header.nlmsg_flags |= NLM_F_ACK;
      header.nlmsg_seq = ++sequence_;
      std::memcpy(bytes.data(), &header, sizeof header);
      batch.insert(batch.end(), bytes.begin(), bytes.end());
    }
    if (::send(descriptor_, batch.data(), batch.size(), 0) < 0) {
      return system_error("cannot ask the kernel by netlink");
    }
    std::size_t answered = 0;
    std::string refusal;
    ErrorCode kind = ErrorCode::kRefused;
    const auto look = [&](const nlmsghdr& header, Bytes payload) {
      if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq < first) return;
      ++answered;
      const int error = error_of(payload);
      if (error == 0 || !refusal.empty()) return;
      const std::string words = words_of(header, payload);
      refusal = std::strerror(error) + (words.empty() ? "" : " (" + words + ")");
      if (error != EPERM) return;
      refusal += "; run as root or with CAP_NET_ADMIN";
      kind = ErrorCode::kMissing;
      if (refused != nullptr) *refused = begin + (header.nlmsg_seq - first);
    };
    std::vector<std::uint8_t> buffer(1 << 16);
    while (answered < end - begin) {
      if (auto got = receive(descriptor_, buffer, look); !got) return got;
    }
    if (!refusal.empty()) return fail(kind, "the kernel refused: " + refusal);
  }
  return {};
}

Result<std::vector<NetlinkAnswer>> NetlinkSocket::dump(NetlinkMessage message) {
  std::vector<std::uint8_t>& bytes = message.bytes_;
  nlmsghdr request{};
  std::memcpy(&request, bytes.data(), sizeof request);
  request.nlmsg_len = static_cast<std::uint32_t>(bytes.size());
  request.nlmsg_flags |= NLM_F_DUMP;
  request.nlmsg_seq = ++sequence_;
  std::memcpy(bytes.data(), &request, sizeof request);
  if (::send(descriptor_, bytes.data(), bytes.size(), 0) < 0) {
    return system_error("cannot ask the kernel by netlink");
  }
  std::vector<NetlinkAnswer> answers;
  bool done = false;
  int error = 0;
  std::vector<std::uint8_t> buffer(1 << 18);
  while (!done && error == 0) {
    const auto got = receive(descriptor_, buffer, [&](const nlmsghdr& header, Bytes payload) {
      if (header.nlmsg_seq != request.nlmsg_seq) return;
      if (header.nlmsg_type == NLMSG_DONE) {
        done = true;
      } else if (header.nlmsg_type == NLMSG_ERROR) {
        error = error_of(payload);
      } else {
        answers.push_back({header.nlmsg_type, {payload.begin(), payload.end()}});
      }
    });
    if (!got) return pass_on(got);
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
    each_attribute(
        Bytes(answer.payload).subspan(sizeof link), [&](std::uint16_t type, Bytes value) {
          if (type != IFLA_IFNAME || value.empty()) return;
          found.emplace(std::string(reinterpret_cast<const char*>(value.data()), value.size() - 1),
                        link.ifi_index);
        });
  }
  return found;
}

}  // namespace greynic::flows
