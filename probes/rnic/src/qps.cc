#include "qps.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "greynic/rnic/sampler.h"
#include "greynic/verbs/counters.h"

namespace greynic::rnic {
namespace {

constexpr std::uint32_t kPsnMask = (1U << 24U) - 1;
constexpr std::size_t kMostRows = 4096;  // of a device: the arena has so many in all

/// The names that ibverbs gives them.
std::string_view type_name(std::uint8_t type) {
  switch (type) {
    case 2:
      return "RC";
    case 3:
      return "UC";
    case 4:
      return "UD";
    case 8:
      return "RAW_PACKET";
    case 9:
      return "XRC_SEND";
    case 10:
      return "XRC_RECV";
    case 1:
      return "GSI";
    case 0:
      return "SMI";
    default:
      return "DRIVER";
  }
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The kernel names the thread that made a queue pair: its process.
std::uint32_t process_of(std::uint32_t thread) {
  std::ifstream file(fmt::format("/proc/{}/status", thread));
  std::string word;
  while (file >> word) {
    std::uint32_t process = 0;
    if (word == "Tgid:" && file >> process) return process;
  }
  return thread;
}

}  // namespace

std::string container_in(std::string_view cgroup) {
  // The last run of 32 digits or more is the id: docker-ID.scope, cri-containerd-ID.scope, /ID.
  std::string found;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cgroup.size(); ++i) {
    const char c = i < cgroup.size() ? cgroup[i] : '/';
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) continue;
    if (i - begin >= 32) found = std::string(cgroup.substr(begin, 12));
    begin = i + 1;
  }
  return found;
}

QpRows::QpRows(std::string device, const Selection& selection)
    : device_(std::move(device)),
      selection_(selection),
      qp_schema_("rdma_qp", "A queue pair",
                 {{"state", "", "", ZERO_GAUGE},
                  {"sent_packets", "", "", ZERO_COUNTER},
                  {"received_packets", "", "", ZERO_COUNTER}}) {}

void QpRows::Psn::follow(std::uint32_t now) {
  total += (now - last) & kPsnMask;
  last = now;
}

std::string QpRows::owner_of(std::uint32_t thread) const {
  if (thread == 0) return ",program=\"kernel\"";
  const std::uint32_t pid = process_of(thread);
  std::string program = text_in(fmt::format("/proc/{}/comm", pid));
  if (!program.empty() && program.back() == '\n') program.pop_back();
  std::string labels = fmt::format(",pid=\"{}\",program=\"{}\"", pid, fit_label(program));
  const std::string container = container_in(text_in(fmt::format("/proc/{}/cgroup", pid)));
  if (!container.empty()) labels += fmt::format(",container=\"{}\"", container);
  return labels;
}

void QpRows::sample_qps() {
  const auto all = verbs::netlink_qps(device_);
  for (auto& [key, qp] : qps_) qp.seen = false;
  pid_of_.clear();
  if (all) {
    for (const verbs::KernelQp& one : *all) {
      pid_of_[one.number] = one.pid;
      const std::string key = fmt::format("{} {}", one.number, one.pid);
      auto found = qps_.find(key);
      if (found == qps_.end()) {
        if (qps_.size() >= kMostRows) continue;
        const std::string always = fmt::format("device=\"{}\",qp=\"{}\",type=\"{}\"", device_,
                                               one.number, type_name(one.type));
        Qp made{PublishedRow(qp_schema_, always + owner_of(one.pid), always), {}, {}, true};
        made.sent.last = one.send_psn;
        made.received.last = one.receive_psn;
        found = qps_.emplace(key, std::move(made)).first;
      }
      Qp& qp = found->second;
      qp.seen = true;
      qp.sent.follow(one.send_psn);
      qp.received.follow(one.receive_psn);
      qp.row.write({one.state, qp.sent.total, qp.received.total});
    }
  }
  std::erase_if(qps_, [](const auto& one) { return !one.second.seen; });
}

void QpRows::sample_counters() {
  const auto sets = verbs::netlink_qp_counters(device_);
  for (auto& [key, bound] : bound_) bound.seen = false;
  if (sets) {
    for (const verbs::QpCounters& set : *sets) {
      std::vector<Counter> counters;
      std::vector<std::uint64_t> values;
      std::string names;
      for (const auto& [raw, value] : set.values) {
        if (!selection_.takes("counter." + raw)) continue;
        counters.push_back(
            {fit_name(raw), raw.find("bytes") != std::string::npos ? "B" : "", "", ZERO_COUNTER});
        values.push_back(static_cast<std::uint64_t>(value));
        names += raw + '\n';
      }
      if (counters.empty() || (bound_.size() >= kMostRows && !names.empty())) continue;
      auto& schema = bound_schemas_[names];
      if (!schema) {
        schema = std::make_unique<RowSchema>(
            "rdma_counter", "Counters that are bound to queue pairs", std::move(counters));
      }
      const std::string always = fmt::format("device=\"{}\",counter=\"{}\"", device_, set.id);
      const std::uint32_t first = set.qp_numbers.empty() ? 0 : set.qp_numbers.front();
      const auto pid = pid_of_.find(first);
      const std::string qps = fmt::format("{}", fmt::join(set.qp_numbers, " ")).substr(0, 60);
      const std::string key = fmt::format("{} {} {}", set.id, qps, names);
      auto found = bound_.find(key);
      if (found == bound_.end()) {
        const std::string labels = fmt::format("{},qps=\"{}\"{}", always, qps,
                                               pid == pid_of_.end() ? "" : owner_of(pid->second));
        found = bound_.emplace(key, Bound{PublishedRow(*schema, labels, always), true}).first;
      }
      found->second.seen = true;
      found->second.row.write(values);
    }
  }
  std::erase_if(bound_, [](const auto& one) { return !one.second.seen; });
}

void QpRows::sample() {
  if (selection_.takes("qp")) sample_qps();
  sample_counters();
}

std::vector<std::string> QpRows::names() const {
  std::vector<std::string> names;
  for (const auto& [key, qp] : qps_) names.push_back("qp " + key.substr(0, key.find(' ')));
  for (const auto& [key, bound] : bound_) {
    names.push_back("counter " + key.substr(0, key.find(' ')));
  }
  return names;
}

}  // namespace greynic::rnic
