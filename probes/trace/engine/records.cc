#include "engine/records.h"

#include <algorithm>
#include <atomic>

namespace greynic::trace {
namespace {

constexpr std::uint64_t kMomentNs = 1'000'000;  // from the stamp of a point to its record, by far

}  // namespace

Result<void> Records::make_room(bpf::Object& object) {
  const auto cpus = static_cast<std::uint32_t>(bpf::possible_cpus());
  if (auto done = object.resize("record_rings", cpus); !done) return done;
  return object.resize("records", cpus * GREYNIC_RECORDS);
}

Result<Records> Records::open(const bpf::Object& object, Take take) {
  const std::size_t cpus = bpf::possible_cpus();
  auto rings = object.mapped_array<greynic_record_ring>("record_rings", cpus);
  if (!rings) return pass_on(rings);
  auto records = object.mapped_array<greynic_record>("records", cpus * GREYNIC_RECORDS);
  if (!records) return pass_on(records);
  return Records(std::move(*rings), std::move(*records), std::move(take));
}

void Records::hand_over(std::uint64_t now_ns) {
  for (std::size_t cpu = 0; cpu < rings_.size(); ++cpu) {
    std::uint64_t taken = rings_[cpu].taken;
    while (true) {
      greynic_record& record = records_[cpu * GREYNIC_RECORDS + taken % GREYNIC_RECORDS];
      const std::atomic_ref sequence(record.sequence);
      if (sequence.load(std::memory_order_acquire) != taken + 1) break;
      waiting_.push_back(record);
      ++taken;
    }
    const std::atomic_ref published(rings_[cpu].taken);
    published.store(taken, std::memory_order_release);
  }
  const auto earlier = [](const greynic_record& one, const greynic_record& other) {
    return one.time_ns < other.time_ns;
  };
  std::stable_sort(waiting_.begin(), waiting_.end(), earlier);
  const std::uint64_t limit = now_ns - kMomentNs;
  const auto later = std::find_if(waiting_.begin(), waiting_.end(),
                                  [limit](const auto& record) { return record.time_ns > limit; });
  std::for_each(waiting_.begin(), later, take_);
  waiting_.erase(waiting_.begin(), later);
}

}  // namespace greynic::trace
