#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "greynic/core/check.h"
#include "greynic/zero/region.h"
#include "mapped_file.h"
#include "region_layout.h"

namespace greynic::zero {
namespace {

Result<void> check_names(const std::vector<Group>& groups) {
  std::set<std::string> group_names;
  for (const Group& group : groups) {
    std::set<std::string> metric_names;
    if (!group_names.insert(group.name).second) {
      return fail(ErrorCode::kBadInput, fmt::format("group {} stands twice", group.name));
    }
    if (group.name.empty() || group.name.size() > 47 || group.metrics.empty()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("group '{}' needs a name of 1 to 47 bytes and a metric", group.name));
    }
    for (const Metric& metric : group.metrics) {
      if (metric.name.empty() || metric.name.size() > 47 || metric.unit.size() > 15 ||
          !metric_names.insert(metric.name).second) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("group {}: metric '{}' needs a name of its own of 1 to 47 bytes, "
                                "and a unit of at most 15",
                                group.name, metric.name));
      }
    }
  }
  return {};
}

/// Where a region of this name goes: through a link to what it names. kBadInput when something else
/// than a region is there, which is not ours to replace.
Result<std::string> place_of_region(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::exists(there)) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    return fail(ErrorCode::kBadInput, path + ": is a link that leads nowhere; name another file");
  }
  std::array<char, sizeof layout::kMagic> magic{};
  if (fs::is_regular_file(there) && fs::file_size(path, error) > 0) {
    std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  }
  if (!fs::is_regular_file(there) ||
      (fs::file_size(path, error) > 0 &&
       std::memcmp(magic.data(), &layout::kMagic, magic.size()) != 0)) {
    return fail(ErrorCode::kBadInput,
                path + ": is there and is no region; remove it, or name another file");
  }
  return fs::canonical(path, error).string();
}

template <std::size_t N>
void put_text(std::array<char, N>& to, const std::string& text) {
  std::copy(text.begin(), text.end(), to.begin());
}

std::atomic_ref<std::uint64_t> word(std::uint64_t& value) {
  return std::atomic_ref<std::uint64_t>(value);
}

}  // namespace

struct RegionWriter::State {
  MappedFile mapping;
  std::vector<layout::Line*> first_lines;
  std::vector<std::size_t> metric_counts;
};

RegionWriter::RegionWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RegionWriter::RegionWriter(RegionWriter&&) noexcept = default;
RegionWriter& RegionWriter::operator=(RegionWriter&&) noexcept = default;
RegionWriter::~RegionWriter() = default;

Result<RegionWriter> RegionWriter::create(const std::string& path,
                                          const std::vector<Group>& groups) {
  if (auto good = check_names(groups); !good) return pass_on(good);
  std::uint64_t descriptors = 0;
  std::uint64_t lines = 0;
  for (const Group& group : groups) {
    descriptors += 1 + group.metrics.size();
    lines += layout::lines_of(group.metrics.size());
  }
  const std::uint64_t table_bytes = descriptors * sizeof(layout::Descriptor);
  const std::uint64_t bytes = sizeof(layout::Header) + table_bytes + lines * layout::kLine;
  if (descriptors > layout::kMostDescriptors || bytes > layout::kMostBytes) {
    return fail(ErrorCode::kTooBig, fmt::format("{} groups and metrics are more than a region's {}",
                                                descriptors, layout::kMostDescriptors));
  }
  const auto place = place_of_region(path);
  if (!place) return pass_on(place);
  auto mapping = MappedFile::create(*place, bytes);
  if (!mapping) return pass_on(mapping);
  std::byte* base = mapping->bytes().data();
  const layout::Header header{layout::kMagic, bytes, descriptors, sizeof(layout::Header), {}};
  std::memcpy(base, &header, sizeof header);
  auto state = std::make_unique<State>(State{std::move(*mapping), {}, {}});
  std::byte* table = base + sizeof header;
  std::uint64_t offset = sizeof header + table_bytes;
  const auto put = [&](const std::string& name, const std::string& unit, std::uint64_t count) {
    layout::Descriptor descriptor{};
    put_text(descriptor.name, name);
    put_text(descriptor.unit, unit);
    descriptor.offset = offset;
    descriptor.value_count = count;
    std::memcpy(table, &descriptor, sizeof descriptor);
    table += sizeof descriptor;
  };
  for (const Group& group : groups) {
    put(group.name, {}, group.metrics.size());
    for (const Metric& metric : group.metrics) put(metric.name, metric.unit, 0);
    state->first_lines.push_back(reinterpret_cast<layout::Line*>(base + offset));
    state->metric_counts.push_back(group.metrics.size());
    offset += layout::lines_of(group.metrics.size()) * layout::kLine;
  }
  if (auto shown = state->mapping.reveal(); !shown) return pass_on(shown);
  return RegionWriter(std::move(state));
}

void RegionWriter::publish(std::size_t group, std::int64_t time_ns,
                           std::span<const double> values) {
  GREYNIC_CHECK(group < state_->first_lines.size());
  GREYNIC_CHECK(values.size() == state_->metric_counts[group]);
  const std::span<layout::Line> lines(state_->first_lines[group], layout::lines_of(values.size()));
  const std::uint64_t odd = lines.front().version + 1;
  for (layout::Line& line : lines) word(line.version).store(odd, std::memory_order_relaxed);
  // No value may be seen before its line's version is odd.
  std::atomic_thread_fence(std::memory_order_release);
  word(lines.front().values[0])
      .store(static_cast<std::uint64_t>(time_ns), std::memory_order_relaxed);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t place = i + 1;
    word(lines[place / layout::kValuesPerLine].values[place % layout::kValuesPerLine])
        .store(std::bit_cast<std::uint64_t>(values[i]), std::memory_order_relaxed);
  }
  for (layout::Line& line : lines) word(line.version).store(odd + 1, std::memory_order_release);
}

bool RegionWriter::whole() const { return !state_->mapping.lost(); }

std::span<std::byte> RegionWriter::bytes() const { return state_->mapping.bytes(); }

}  // namespace greynic::zero
