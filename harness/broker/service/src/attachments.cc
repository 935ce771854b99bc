#include "attachments.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "greynic/daemon/hang_up.h"

namespace greynic::broker {
namespace {

/// Who has not said what it wants. The oldest goes when one more comes.
constexpr std::size_t kMostWaiting = 256;
constexpr std::chrono::seconds kPatience{10};

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: a socket's path has 1 to {} bytes; choose a shorter one", path,
                            sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

ssize_t receive_packet(int socket, void* bytes, std::size_t most, int& descriptor) {
  iovec part{bytes, most};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int one = -1;
      std::memcpy(&one, CMSG_DATA(head) + i * sizeof one, sizeof one);
      daemon::close_apart(descriptor);
      descriptor = one;
    }
  }
  // An empty packet looks like the end of the socket, but can bring descriptors.
  if (got == 0) daemon::close_apart(std::exchange(descriptor, -1));
  return got;
}

Result<std::unique_ptr<Attachments>> Attachments::open(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return pass_on(address);
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kIo, fmt::format("{}: {}", path, why));
  };
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto* name = reinterpret_cast<const sockaddr*>(&*address);
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool served = connect(probe, name, sizeof *address) == 0 || errno == EAGAIN;
  // A socket that a dead broker left is refused, and so is what is no socket at all.
  struct stat status {};
  const bool left = !served && errno == ECONNREFUSED && lstat(path.c_str(), &status) == 0;
  close(probe);
  if (served) {
    close(listener);
    return refuse("a broker serves there already; end it, or choose another --socket");
  }
  if (left && !S_ISSOCK(status.st_mode)) {
    close(listener);
    return fail(ErrorCode::kBadInput, path + ": is there and is no socket; name another path");
  }
  if (left) unlink(path.c_str());
  if (bind(listener, name, sizeof *address) != 0 || listen(listener, 1024) != 0) {
    const std::string why = std::strerror(errno);
    close(listener);
    return refuse(why + "; choose another --socket, or make its folder");
  }
  // Every user may attach, within quotas; the kernel says who it is.
  chmod(path.c_str(), 0666);
  return std::unique_ptr<Attachments>(new Attachments(listener, path));
}

Attachments::~Attachments() {
  daemon::close_apart(listener_);
  unlink(path_.c_str());
  for (const auto& [socket, waiting] : waiting_) daemon::hang_up(socket);
}

void Attachments::take(const std::function<void(int)>& watch) {
  for (int i = 0; i < 64; ++i) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    ucred who{};
    socklen_t bytes = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
      close(socket);
      continue;
    }
    if (waiting_.size() >= kMostWaiting) {
      const auto oldest = std::min_element(
          waiting_.begin(), waiting_.end(),
          [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
      daemon::hang_up(oldest->first);
      waiting_.erase(oldest);
    }
    waiting_[socket] = {{socket, who.pid, who.uid}, Clock::now() + kPatience};
    watch(socket);
  }
}

void Attachments::read(int socket,
                       const std::function<void(const Visitor&, const local::Attach&, int)>& call) {
  const auto found = waiting_.find(socket);
  if (found == waiting_.end()) return;
  local::Attach wish;
  int memory = -1;
  const ssize_t got = receive_packet(socket, &wish, sizeof wish, memory);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const Visitor who = found->second.who;
  waiting_.erase(found);
  if (got == static_cast<ssize_t>(sizeof wish) && wish.magic == local::kMagic) {
    call(who, wish, memory);
  } else {
    if (got > 0) answer(socket, EPROTO, "the first packet is none of this version");
    daemon::hang_up(socket);
  }
  daemon::close_apart(memory);
}

void Attachments::tick(Clock::time_point now) {
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second.until > now) return false;
    daemon::hang_up(entry.first);
    return true;
  });
}

void answer(int socket, int error, const std::string& reason, const local::Costs& costs,
            int descriptor) {
  local::Attached reply;
  reply.error = error;
  reply.costs = costs;
  std::memcpy(reply.reason.data(), reason.data(), std::min(reason.size(), reply.reason.size() - 1));
  iovec part{&reply, sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  (void)sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace greynic::broker
