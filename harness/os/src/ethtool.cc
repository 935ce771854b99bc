#include "greynic/os/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace greynic::os {

static_assert(sizeof(ethtool_stats) == 8);

EthtoolStats::EthtoolStats(const std::string& interface)
    : interface_(interface), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!ask(&info) || info.n_stats == 0) return;
  // Words of 8 bytes: the structure ends in an array that begins at its size.
  std::vector<std::uint64_t> memory(
      (sizeof(ethtool_gstrings) + std::size_t{info.n_stats} * 32) / 8 + 1);
  auto* const names = reinterpret_cast<ethtool_gstrings*>(memory.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = info.n_stats;
  if (!ask(names)) return;
  for (std::uint32_t i = 0; i < std::min(names->len, info.n_stats); ++i) {
    const auto* text = reinterpret_cast<const char*>(names->data) + std::size_t{i} * 32;
    names_.emplace_back(text, ::strnlen(text, 32));
  }
  answer_.resize(1 + names_.size());
}

EthtoolStats::EthtoolStats(EthtoolStats&& other) noexcept
    : interface_(std::move(other.interface_)),
      socket_(std::exchange(other.socket_, -1)),
      names_(std::move(other.names_)),
      answer_(std::move(other.answer_)) {}

EthtoolStats& EthtoolStats::operator=(EthtoolStats&& other) noexcept {
  std::swap(interface_, other.interface_);
  std::swap(socket_, other.socket_);
  std::swap(names_, other.names_);
  std::swap(answer_, other.answer_);
  return *this;
}

EthtoolStats::~EthtoolStats() {
  if (socket_ >= 0) ::close(socket_);
}

bool EthtoolStats::ask(void* request) {
  ifreq asked{};
  interface_.copy(asked.ifr_name, IFNAMSIZ - 1);
  asked.ifr_data = static_cast<char*>(request);
  return socket_ >= 0 && ::ioctl(socket_, SIOCETHTOOL, &asked) == 0;
}

std::span<const std::uint64_t> EthtoolStats::read() {
  if (names_.empty()) return {};
  // The kernel writes as many as the driver has, which may have grown since.
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!ask(&info) || info.n_stats != names_.size()) return {};
  auto* const values = reinterpret_cast<ethtool_stats*>(answer_.data());
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = info.n_stats;
  if (!ask(values)) return {};
  return std::span(answer_).subspan(1);
}

}  // namespace greynic::os
