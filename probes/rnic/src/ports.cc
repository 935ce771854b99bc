#include "ports.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace greynic::rnic {
namespace {

namespace fs = std::filesystem;

bool read_number(int file, std::uint64_t& value) {
  char text[32];
  const ssize_t got = ::pread(file, text, sizeof text, 0);
  return got > 0 && std::from_chars(text, text + got, value).ec == std::errc();
}

std::string unit_of(std::string_view raw) {
  return raw.ends_with("_data") || raw.find("bytes") != std::string_view::npos ? "B" : "";
}

}  // namespace

std::vector<std::string> sorted_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    names.push_back(file.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

NumberFiles::~NumberFiles() {
  for (const File& one : files_) ::close(one.file);
}

bool NumberFiles::add(const fs::path& path, std::uint64_t times) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::uint64_t value = 0;
  if (file >= 0 && read_number(file, value)) {
    files_.push_back({file, times});
    return true;
  }
  if (file >= 0) ::close(file);
  return false;
}

void NumberFiles::read(std::vector<std::uint64_t>& into) const {
  for (const File& one : files_) {
    std::uint64_t value = 0;
    // A file that fails now, as its device goes, is as it was: its host is seen to be gone elsewhere.
    const std::size_t at = static_cast<std::size_t>(&one - files_.data());
    if (read_number(one.file, value)) into[at] = value * one.times;
  }
}

void CounterGroup::publish(const std::string& name, const std::string& help,
                           const std::string& labels) {
  values_.resize(counters_.size());
  schema_ = std::make_unique<RowSchema>(name, help, counters_);
  row_.emplace(*schema_, labels, labels);
  sample();
}

std::optional<CounterGroup> CounterGroup::of_folder(const fs::path& folder,
                                                    const std::string& prefix,
                                                    const std::string& labels,
                                                    const Selection& selection) {
  CounterGroup group;
  for (const std::string& raw : sorted_names(folder)) {
    const std::string name = fmt::format("{}.{}", prefix, raw);
    if (raw == "lifespan" || !selection.takes(name)) continue;
    // port_xmit_data and port_rcv_data count words of 4 bytes (InfiniBand spec, 16.1.3.5).
    const std::uint64_t times = prefix == "port" && raw.ends_with("_data") ? 4 : 1;
    if (!group.files_.add(folder / raw, times)) continue;
    group.names_.push_back(name);
    group.counters_.push_back({fit_name(raw), unit_of(raw), "", ZERO_COUNTER});
  }
  if (group.counters_.empty()) return std::nullopt;
  group.publish("rdma_" + prefix,
                prefix == "hw" ? "Counters of the driver" : "Counters of the port", labels);
  return group;
}

std::optional<CounterGroup> CounterGroup::of_interface(const fs::path& sysfs,
                                                       const std::string& interface,
                                                       const std::string& labels,
                                                       const Selection& selection,
                                                       bool ask_driver) {
  CounterGroup group;
  std::set<std::string> taken;
  const auto add = [&](const std::string& raw) {
    const NetGroup of = group_of(raw);
    group.names_.push_back("net." + raw);
    group.counters_.push_back({fit_name(raw), unit_of(raw),
                               fmt::format("component=\"{}\",kind=\"{}\"", of.component, of.kind),
                               ZERO_COUNTER});
  };
  const fs::path folder = sysfs / "class/net" / interface / "statistics";
  for (const std::string& raw : sorted_names(folder)) {
    if (!selection.takes("net." + raw) || !group.files_.add(folder / raw, 1)) continue;
    taken.insert(fit_name(raw));
    add(raw);
  }
  if (ask_driver) group.driver_.emplace(interface);
  for (std::size_t i = 0; ask_driver && i < group.driver_->names().size(); ++i) {
    const std::string& raw = group.driver_->names()[i];
    if (!selection.takes("net." + raw) || !taken.insert(fit_name(raw)).second) continue;
    group.of_driver_.push_back(i);
    add(raw);
  }
  if (group.counters_.empty()) return std::nullopt;
  group.publish("rdma_net", "Counters of the network interface", labels);
  return group;
}

void CounterGroup::sample() {
  files_.read(values_);
  if (driver_) {
    const auto all = driver_->read();
    const std::size_t begin = values_.size() - of_driver_.size();
    for (std::size_t i = 0; !all.empty() && i < of_driver_.size(); ++i) {
      values_[begin + i] = all[of_driver_[i]];
    }
  }
  row_->write(values_);
}

}  // namespace greynic::rnic
