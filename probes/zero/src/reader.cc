#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "greynic/zero/region.h"
#include "mapped_file.h"
#include "region_layout.h"

namespace greynic::zero {
namespace {

/// Copies line by line. A line that changed under the copy gets an odd version, which is what a
/// reader looks for, so the copy is as good as one that hardware made in a piece.
class MappedRegion final : public OneSided {
 public:
  explicit MappedRegion(MappedFile mapping) : mapping_(std::move(mapping)) {}

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    const std::size_t bytes = mapping_.bytes().size();
    if (offset > bytes || out.size() > bytes - offset) {
      return fail(ErrorCode::kBadInput, "the region is shorter than its table says");
    }
    std::byte* from = mapping_.bytes().data() + offset;
    for (std::size_t at = 0; at < out.size(); at += layout::kLine) {
      copy_line(*reinterpret_cast<layout::Line*>(from + at), out.data() + at);
    }
    if (mapping_.lost()) {
      return fail(ErrorCode::kIo,
                  "the region's file was cut while it was read; start its writer anew");
    }
    return {};
  }

 private:
  static void copy_line(layout::Line& line, std::byte* out) {
    layout::Line copy{};
    copy.version = load(line.version, std::memory_order_acquire);
    for (std::size_t i = 0; i < layout::kValuesPerLine; ++i) {
      copy.values[i] = load(line.values[i], std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (load(line.version, std::memory_order_relaxed) != copy.version) copy.version |= 1;
    std::memcpy(out, &copy, sizeof copy);
  }
  static std::uint64_t load(std::uint64_t& word, std::memory_order order) {
    return std::atomic_ref<std::uint64_t>(word).load(order);
  }

  MappedFile mapping_;
};

tl::unexpected<Error> no_region(std::string_view why) {
  return fail(ErrorCode::kBadInput, fmt::format("this is no metrics region: {}", why));
}

template <std::size_t N>
std::string text_of(const std::array<char, N>& bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')};
}

}  // namespace

Result<std::unique_ptr<OneSided>> map_region(const std::string& path) {
  auto mapping = MappedFile::open(path);
  if (!mapping) return pass_on(mapping);
  return std::unique_ptr<OneSided>(std::make_unique<MappedRegion>(std::move(*mapping)));
}

Result<RegionReader> RegionReader::discover(std::unique_ptr<OneSided> source) {
  RegionReader reader;
  reader.source_ = std::move(source);
  layout::Header header{};
  std::array<std::byte, sizeof header> header_bytes{};
  if (auto got = reader.source_->read(0, header_bytes); !got) return no_region(got.error().message);
  std::memcpy(&header, header_bytes.data(), sizeof header);
  if (header.magic != layout::kMagic) return no_region("its first bytes are not GNZERO01");
  if (header.descriptor_count == 0 || header.descriptor_count > layout::kMostDescriptors ||
      header.region_bytes > layout::kMostBytes || header.table_offset % layout::kLine != 0 ||
      header.table_offset > header.region_bytes ||
      header.descriptor_count * sizeof(layout::Descriptor) >
          header.region_bytes - header.table_offset) {
    return no_region("the sizes in its header do not fit together");
  }
  std::vector<std::byte> table(header.descriptor_count * sizeof(layout::Descriptor));
  if (auto got = reader.source_->read(header.table_offset, table); !got) return pass_on(got);
  std::uint64_t metrics_owed = 0;
  for (std::uint64_t i = 0; i < header.descriptor_count; ++i) {
    layout::Descriptor descriptor{};
    std::memcpy(&descriptor, table.data() + i * sizeof descriptor, sizeof descriptor);
    const bool opens_group = metrics_owed == 0;
    if (opens_group != (descriptor.value_count > 0)) return no_region("its table is out of order");
    if (!opens_group) {
      reader.groups_.back().metrics.push_back({text_of(descriptor.name), text_of(descriptor.unit)});
      --metrics_owed;
      continue;
    }
    const std::uint64_t bytes = layout::lines_of(descriptor.value_count) * layout::kLine;
    if (descriptor.value_count > header.descriptor_count ||
        descriptor.offset % layout::kLine != 0 || bytes > header.region_bytes ||
        descriptor.offset > header.region_bytes - bytes) {
      return no_region("a group lies outside it");
    }
    reader.groups_.push_back({text_of(descriptor.name), {}});
    reader.offsets_.push_back(descriptor.offset);
    metrics_owed = descriptor.value_count;
  }
  if (metrics_owed != 0) return no_region("its table ends inside a group");
  return reader;
}

Result<Snapshot> RegionReader::read(std::size_t group, int tries) {
  const std::size_t metrics = groups_.at(group).metrics.size();
  const std::size_t line_count = layout::lines_of(metrics);
  buffer_.resize(line_count * layout::kLine);
  for (int attempt = 0; attempt < tries; ++attempt) {
    if (auto got = source_->read(offsets_[group], buffer_); !got) return pass_on(got);
    std::vector<layout::Line> lines(line_count);
    std::memcpy(lines.data(), buffer_.data(), buffer_.size());
    const std::uint64_t version = lines.front().version;
    const bool whole =
        version % 2 == 0 && std::all_of(lines.begin(), lines.end(), [&](const layout::Line& line) {
          return line.version == version;
        });
    if (!whole) {
      ++torn_reads_;
      std::this_thread::yield();
      continue;
    }
    Snapshot snapshot;
    snapshot.version = version;
    snapshot.time_ns = static_cast<std::int64_t>(lines.front().values[0]);
    for (std::size_t place = 1; place <= metrics; ++place) {
      snapshot.values.push_back(std::bit_cast<double>(
          lines[place / layout::kValuesPerLine].values[place % layout::kValuesPerLine]));
    }
    return snapshot;
  }
  return fail(ErrorCode::kRefused,
              fmt::format("group {} was being written at each of {} reads; read less often or "
                          "publish less often",
                          groups_[group].name, tries));
}

}  // namespace greynic::zero
