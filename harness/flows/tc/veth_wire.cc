#include "tc/veth_wire.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

#include "greynic/statistics/halves.h"
#include "greynic/target/interrupt.h"

namespace greynic::flows {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindows = 20;
constexpr unsigned kBatch = 64;

os::NetlinkMessage new_link(std::string_view name, std::string_view kind) {
  const ifinfomsg header{};
  os::NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, header);
  message.put_text(IFLA_IFNAME, name);
  const std::size_t link = message.open(IFLA_LINKINFO);
  message.put_text(IFLA_INFO_KIND, kind);
  if (kind == "veth") {
    const std::size_t data = message.open(IFLA_INFO_DATA);
    const std::size_t peer = message.open(VETH_INFO_PEER);
    message.append(header);
    message.put_text(IFLA_IFNAME, VethWire::kSource);
    message.close(peer);
    message.close(data);
  }
  message.close(link);
  return message;
}

os::NetlinkMessage up(int index) {
  ifinfomsg header{};
  header.ifi_index = index;
  header.ifi_flags = IFF_UP;
  header.ifi_change = IFF_UP;
  return {RTM_NEWLINK, 0, header};
}

Result<void> add_link(os::NetlinkSocket& socket, std::string_view name, std::string_view kind) {
  std::vector<os::NetlinkMessage> make = {new_link(name, kind)};
  if (auto made = socket.send(make); !made) {
    return made.error().while_doing(fmt::format("making the {} interface {}", kind, name));
  }
  const auto there = os::links(socket);
  if (!there) return pass_on(there);
  std::vector<os::NetlinkMessage> start;
  for (const std::string& end : {std::string(name), std::string(VethWire::kSource)}) {
    if (const auto found = there->find(end); found != there->end())
      start.push_back(up(found->second));
  }
  return socket.send(start);
}

Result<int> open_sender(int interface_number) {
  const int descriptor = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return fail(ErrorCode::kMissing,
                fmt::format("cannot open a packet socket ({}); run as root", std::strerror(errno)));
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = interface_number;
  const int on = 1;
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      setsockopt(descriptor, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0) {
    const int error = errno;
    ::close(descriptor);
    return fail(ErrorCode::kMissing,
                fmt::format("cannot send from a veth interface: {}", std::strerror(error)));
  }
  return descriptor;
}

double thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Median and its standard error by the median deviation: what preempts a window for long must not
/// pass for the cost of a packet.
Measure robust(const std::vector<double>& values) {
  constexpr double kNormalSpread = 1.4826;  // of the median deviation to the standard deviation
  constexpr double kMedianPrice = 1.2533;   // of the median's error to the mean's
  const double middle = median(values);
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - middle));
  return {middle, kMedianPrice * kNormalSpread * median(away) /
                      std::sqrt(static_cast<double>(values.size()))};
}

/// Frames as the kernel takes them many at a time.
class Batches {
 public:
  explicit Batches(const std::vector<Frame>& frames) : parts_(frames.size()), list_(frames.size()) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      // The kernel only reads them; iovec has no const form.
      parts_[i] = {const_cast<std::uint8_t*>(frames[i].data()), frames[i].size()};
      list_[i].msg_hdr.msg_iov = &parts_[i];
      list_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  /// Sends the next ones; how many went.
  Result<double> send(int descriptor) {
    const std::size_t most = std::min<std::size_t>(kBatch, list_.size() - next_);
    const int sent = sendmmsg(descriptor, &list_[next_], static_cast<unsigned>(most), 0);
    if (sent < 0 && errno != ENOBUFS && errno != EINTR) {
      return fail(ErrorCode::kRefused, fmt::format("cannot send: {}", std::strerror(errno)));
    }
    next_ = (next_ + static_cast<std::size_t>(std::max(sent, 0))) % list_.size();
    return std::max(sent, 0);
  }

 private:
  std::vector<iovec> parts_;
  std::vector<mmsghdr> list_;
  std::size_t next_ = 0;
};

}  // namespace

VethWire::VethWire(os::NetworkNamespace place, os::NetlinkSocket links, int sender)
    : place_(std::move(place)), links_(std::move(links)), sender_(sender) {}

VethWire::~VethWire() { ::close(sender_); }

Result<std::unique_ptr<VethWire>> VethWire::create() {
  auto place = os::NetworkNamespace::create();
  if (!place) return pass_on(place);
  Result<std::unique_ptr<VethWire>> made = fail(ErrorCode::kInternal, "not made");
  const auto entered = place->inside([&] {
    auto socket = os::NetlinkSocket::create();
    if (!socket) {
      made = pass_on(socket);
      return;
    }
    if (auto added = add_link(*socket, kPort, "veth"); !added) {
      made = pass_on(added);
      return;
    }
    const auto there = os::links(*socket);
    if (!there) {
      made = pass_on(there);
      return;
    }
    const auto sender = open_sender(there->at(kSource));
    if (!sender) {
      made = pass_on(sender);
      return;
    }
    made = std::unique_ptr<VethWire>(new VethWire(std::move(*place), std::move(*socket), *sender));
  });
  if (!entered) return pass_on(entered);
  return made;
}

Result<void> VethWire::ensure_sink(const std::string& name) {
  if (name == kPort || name == kSource || sinks_.contains(name)) return {};
  auto made = add_link(links_, name, "dummy");
  if (made) sinks_.insert(name);
  return made;
}

Result<WireTimes> VethWire::time(const std::vector<Frame>& frames,
                                 std::chrono::nanoseconds duration) {
  if (frames.empty()) return fail(ErrorCode::kBadInput, "there is no packet to send");
  Batches batches(frames);
  double packets = 0;
  const auto send_for = [&](std::chrono::nanoseconds span) -> Result<void> {
    const auto end = Clock::now() + span;
    do {
      auto sent = batches.send(sender_);
      if (!sent) return pass_on(sent);
      packets += *sent;
    } while (Clock::now() < end);
    return {};
  };
  if (auto warm = send_for(duration / 10); !warm) return pass_on(warm);
  WireTimes times;
  std::vector<double> costs;
  const auto start = Clock::now();
  for (int window = 0; window < kWindows; ++window) {
    if (target::interrupted()) return fail(ErrorCode::kInterrupted, "stopped");
    packets = 0;
    const double before = thread_cpu_ns();
    if (auto sent = send_for(duration / kWindows); !sent) return pass_on(sent);
    if (packets == 0) return fail(ErrorCode::kRefused, "no packet could be sent");
    costs.push_back((thread_cpu_ns() - before) / packets);
    times.packets += packets;
  }
  times.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  times.cost_ns = robust(costs);
  const double early = median({costs.begin(), costs.begin() + kWindows / 2});
  const double late = median({costs.begin() + kWindows / 2, costs.end()});
  const bool settled = statistics::halves_agree(early, late, times.cost_ns.value,
                                                times.cost_ns.standard_error.value_or(0.0), {});
  times.steady = {settled, 1.0 / 11.0, "halves of 20 windows"};
  return times;
}

}  // namespace greynic::flows
