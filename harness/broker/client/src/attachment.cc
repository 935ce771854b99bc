#include "attachment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

namespace greynic::broker::client {
namespace {

constexpr std::uint32_t kFirstPage = local::kDataAt / local::kPage;

std::uint32_t pages_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + local::kPage - 1) / local::kPage);
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/// A packet with a descriptor; 0 or an error.
int send_with(int socket, const void* packet, std::size_t bytes, int memory) {
  iovec part{const_cast<void*>(packet), bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof memory);
  std::memcpy(CMSG_DATA(head), &memory, sizeof memory);
  return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/// A packet, and the descriptor that came with it: -1 without one.
ssize_t receive_with(int socket, void* packet, std::size_t bytes, int& descriptor) {
  iovec part{packet, bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* head = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  }
  return got;
}

/// The first packet, with the segment, and the answer to it: 0 or an error.
int introduce(int socket, int memory, std::size_t bytes, local::Attached& reply, int& doorbell) {
  const local::Attach wish{.bytes = bytes};
  if (const int error = send_with(socket, &wish, sizeof wish, memory)) return error;
  const ssize_t got = receive_with(socket, &reply, sizeof reply, doorbell);
  if (got != static_cast<ssize_t>(sizeof reply) || reply.magic != local::kMagic) return EPROTO;
  reply.reason.back() = '\0';
  return reply.error == 0 && doorbell < 0 ? EPROTO : reply.error;
}

}  // namespace

std::shared_ptr<Attachment> Attachment::open(const std::string& path, std::size_t bytes,
                                             bool huge_pages, std::string& reason) {
  bytes = std::size_t{pages_of(bytes) + kFirstPage} * local::kPage;
  const int socket = connect_to(path);
  if (socket < 0) return nullptr;
  const int memory = memfd_create("greynic_broker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* base = MAP_FAILED;
  if (memory >= 0 && ftruncate(memory, static_cast<off_t>(bytes)) == 0 &&
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  }
  int error = base == MAP_FAILED ? errno : 0;
  local::Attached reply;
  int doorbell = -1;
  if (error == 0) {
    new (base) local::Places();
    error = introduce(socket, memory, bytes, reply, doorbell);
    reason = reply.reason.data();
  }
  if (memory >= 0) close(memory);
  if (error == 0) {
    std::shared_ptr<Attachment> made(
        new Attachment(socket, doorbell, static_cast<std::byte*>(base), bytes, reply.costs));
    if (huge_pages) made->use_huge_pages();
    return made;
  }
  if (base != MAP_FAILED) munmap(base, bytes);
  if (doorbell >= 0) close(doorbell);
  close(socket);
  errno = error;
  return nullptr;
}

Attachment::Attachment(int socket, int doorbell, std::byte* base, std::size_t bytes,
                       const local::Costs& costs)
    : socket_(socket), doorbell_(doorbell), base_(base), bytes_(bytes), costs_(costs) {
  requests_ = {base + local::kRequestsAt, places().request_written, places().request_read};
  events_ = {base + local::kEventsAt, places().event_written, places().event_read};
  free_[kFirstPage] = static_cast<std::uint32_t>(bytes / local::kPage) - kFirstPage;
}

/// Of the kernel's own huge pages, not of a hugetlb pool: a program that punches holes into memory
/// from a pool could leave its broker without a page at the next access.
void Attachment::use_huge_pages() {
  constexpr std::size_t kHuge = 2U << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1
  const auto begin = (reinterpret_cast<std::uintptr_t>(base_) + kHuge - 1) / kHuge * kHuge;
  const auto end = reinterpret_cast<std::uintptr_t>(base_ + bytes_);
  (void)madvise(base_, bytes_, MADV_HUGEPAGE);
  for (std::uintptr_t at = begin; at + kHuge <= end; at += kHuge) {
    if (madvise(reinterpret_cast<void*>(at), kHuge, kCollapse) == 0) {
      huge_bytes_ += kHuge;
    } else {
      huge_error_ = errno;
    }
  }
}

Attachment::~Attachment() {
  close(doorbell_);
  close(socket_);
  munmap(base_, bytes_);
}

local::Part Attachment::take(std::size_t bytes) {
  const std::uint32_t count = pages_of(bytes);
  for (auto place = free_.begin(); count > 0 && place != free_.end(); ++place) {
    const auto [first, pages] = *place;
    if (pages < count) continue;
    free_.erase(place);
    if (pages > count) free_[first + count] = pages - count;
    taken_[first] = count;
    return {first, static_cast<std::uint32_t>(bytes)};
  }
  return {};
}

void Attachment::give_back(const local::Part& part) {
  const auto found = taken_.find(part.page);
  if (found == taken_.end()) return;
  std::uint32_t first = found->first, count = found->second;
  taken_.erase(found);
  auto after = free_.lower_bound(first);
  if (after != free_.end() && first + count == after->first) {
    count += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
    }
  }
  free_[first] = count;
}

bool Attachment::holds(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  return at >= base_ && at < base_ + bytes_;
}

local::Part Attachment::part_at(const void* memory) const {
  if (!holds(memory)) return {};
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  const auto found = taken_.find(static_cast<std::uint32_t>(offset / local::kPage));
  if (offset % local::kPage != 0 || found == taken_.end()) return {};
  return {found->first, found->second * local::kPage};
}

int Attachment::lend(int memory, std::uint32_t region, std::uint64_t bytes) {
  const local::Lend wish{.region = region, .bytes = bytes};
  return send_with(socket_, &wish, sizeof wish, memory);
}

bool Attachment::post(const local::Request& request) {
  // The broker reads on whatever it is to tell us, so room comes soon.
  while (!dead_ && !requests_.has_room()) {
    wake_broker();
    const timespec moment{0, 20000};
    nanosleep(&moment, nullptr);
    drain_socket();
  }
  if (dead_) return false;
  requests_.write(request);
  wake_broker();
  return true;
}

void Attachment::wake_broker() {
  if (local::must_wake(places().broker_sleeps) == 0) return;
  const std::uint64_t one = 1;
  (void)!write(doorbell_, &one, sizeof one);
}

bool Attachment::prepare_to_sleep(std::uint32_t place, local::Sleep how, bool on_word) {
  local::say_asleep(places().application_sleeps, how, on_word ? local::kOnWord : 0);
  return !has_event_after(place);
}

bool Attachment::sleep_on_word(std::chrono::nanoseconds most) {
  std::atomic<std::uint32_t>& word = places().application_sleeps;
  const timespec patience{0, static_cast<long>(most.count())};
  // Another thread may say meanwhile that it sleeps lightly: then the word is another one.
  while (const std::uint32_t seen = word.load(std::memory_order_acquire)) {
    const long woken = syscall(SYS_futex, &word, FUTEX_WAIT, seen, &patience, nullptr, 0);
    if (woken != 0 && errno == ETIMEDOUT) return false;
  }
  return true;
}

void Attachment::sleep_lightly() {
  std::atomic<std::uint32_t>& word = places().application_sleeps;
  std::uint32_t seen = word.load();
  if (local::depth_of(seen) == local::Sleep::kThroughSent) {
    const auto light = static_cast<std::uint32_t>(local::Sleep::kLight);
    (void)word.compare_exchange_strong(seen, light | (seen & local::kOnWord));
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Attachment::stay_awake() { places().application_sleeps.store(0, std::memory_order_relaxed); }

void Attachment::drain_socket(int most) {
  local::Attached word;
  for (int i = 0; i < most && !dead_; ++i) {
    const ssize_t got = recv(socket_, &word, sizeof word, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // Bytes of ours that the broker never read; its last word comes after this error.
    if (got < 0 && errno == ECONNRESET) continue;
    if (got == static_cast<ssize_t>(sizeof word)) {
      word.reason.back() = '\0';
      reason_ = word.reason.data();
    }
    dead_ = got <= 0;
  }
}

}  // namespace greynic::broker::client
