#include "far_counters.h"

#ifdef GREYNIC_WITH_REMOTE

#include <fmt/format.h>

#include <chrono>
#include <set>
#include <thread>

#include "greynic/monitor/host_reader.h"
#include "greynic/remote/remote.h"

namespace greynic::loop {
namespace {

using Clock = std::chrono::steady_clock;

/// An agent that was only just started has neither its programs nor their rows yet.
constexpr std::chrono::seconds kAppears{3};
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::string_view kSchemaPrefix = "rdma_";

/// The value of a label in `key="value",...`.
std::string_view label_of(std::string_view labels, std::string_view key) {
  const std::string begin = fmt::format("{}=\"", key);
  std::size_t at = labels.find(begin);
  while (at != std::string_view::npos && at != 0 && labels[at - 1] != ',') {
    at = labels.find(begin, at + 1);
  }
  if (at == std::string_view::npos) return {};
  labels.remove_prefix(at + begin.size());
  return labels.substr(0, labels.find('"'));
}

class CountersOfHost final : public target::FarCounters {
 public:
  CountersOfHost(monitor::HostSpec spec, monitor::RemoteLinks links, std::string device)
      : reader_(std::move(spec), std::move(links)), device_(std::move(device)) {}

  Result<target::CounterReading> look() override {
    target::CounterReading seen;
    devices_.clear();
    std::uint64_t written = 0;
    auto looked = reader_.look([&](std::span<const zero::Reading> readings) {
      for (const zero::Reading& row : readings) written += add(row, seen);
    });
    if (!looked) return pass_on(looked);
    // What was not written since the last look is no sample of now.
    if (written == written_) seen.counters.clear();
    written_ = written;
    return seen;
  }
  /// Devices whose counters the last look has found.
  [[nodiscard]] const std::set<std::string>& devices() const { return devices_; }

 private:
  /// How often the row was written; 0 for one of something else.
  std::uint64_t add(const zero::Reading& row, target::CounterReading& seen) {
    // "rdma_hw": counters of the driver, "hw.NAME". Rows of queue pairs are others.
    const std::string_view schema = row.row->schema->name;
    if (row.row->ended || (schema != "rdma_hw" && schema != "rdma_port")) return 0;
    const std::string device(label_of(row.row->labels, "device"));
    if (!device_.empty() && device != device_) return 0;
    devices_.insert(device);
    for (const zero::Field& field : row.row->schema->fields) {
      seen.counters.emplace_back(
          fmt::format("{}.{}", schema.substr(kSchemaPrefix.size()), field.name),
          zero::number_of(field, row.bytes));
    }
    return row.version;
  }

  monitor::HostReader reader_;
  std::string device_;  ///< empty: the only one there
  std::set<std::string> devices_;
  std::uint64_t written_ = 0;
};

}  // namespace

Result<std::unique_ptr<target::FarCounters>> open_far_counters(
    const std::string& where, const std::map<std::string, std::string>& options) {
  const std::size_t slash = where.find('/');
  const std::string device = slash == std::string::npos ? "" : where.substr(slash + 1);
  monitor::HostSpec spec;
  spec.remote = where.substr(0, slash);
  spec.name = spec.remote;
  if (const auto given = options.find("certificates"); given != options.end()) {
    spec.certificates = given->second;
  }
  auto links = remote::links_to(std::span(&spec, 1));
  if (!links) return pass_on(links);
  auto counters = std::make_unique<CountersOfHost>(spec, std::move(*links), device);
  const auto give_up = Clock::now() + kAppears;
  auto seen = counters->look();
  while ((!seen || counters->devices().empty()) && Clock::now() < give_up) {
    std::this_thread::sleep_for(kBetweenLooks);
    seen = counters->look();
  }
  if (!seen) return pass_on(seen);
  if (counters->devices().empty()) {
    return fail(
        ErrorCode::kMissing,
        fmt::format("nobody publishes counters of {} at {}; start `greynic zero rnic` there",
                    device.empty() ? "an RDMA device" : device, spec.remote));
  }
  if (counters->devices().size() > 1) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{} has counters of {}; name the peer's device: {}/{}", spec.remote,
                            fmt::join(counters->devices(), ", "), spec.remote,
                            *counters->devices().begin()));
  }
  return counters;
}

}  // namespace greynic::loop

#endif
