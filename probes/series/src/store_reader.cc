#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "store_files.h"

namespace greynic::series {
namespace {

Result<void> give_chunk(const Chunk& chunk, std::int64_t step_ns, const Visitor& visitor) {
  if (step_ns == 0 && visitor.chunk) visitor.chunk(chunk);
  if (step_ns != 0 && visitor.tier_chunk) visitor.tier_chunk(tier_of(chunk, step_ns));
  return {};
}

Result<void> give_log(const LogContent& log, std::int64_t step_ns, const Visitor& visitor) {
  for (const auto& [number, rows] : log.rows) {
    const Group& group = log.groups.at(number);
    const std::size_t width = group.width();
    Chunk chunk{&group, rows.times, {}};
    chunk.columns.assign(width, std::vector<std::uint64_t>(rows.times.size()));
    for (std::size_t i = 0; i < rows.times.size(); ++i) {
      for (std::size_t c = 0; c < width; ++c) chunk.columns[c][i] = rows.values[i * width + c];
    }
    if (auto done = give_chunk(chunk, step_ns, visitor); !done) return done;
  }
  for (const Gap& gap : log.gaps) {
    if (visitor.gap) visitor.gap(gap);
  }
  return {};
}

Result<void> read_segment(const std::string& path, FileKind kind, const Visitor& visitor) {
  Groups groups;
  return read_frames(path, kind, [&](FrameKind frame, std::string_view payload) -> Result<void> {
    if (frame == FrameKind::kGroups) return decode_groups(payload, groups);
    if (frame == FrameKind::kGap) {
      const auto gap = decode_gap(payload);
      if (!gap) return pass_on(gap);
      if (visitor.gap) visitor.gap(*gap);
    } else if (frame == FrameKind::kChunk && kind == FileKind::kSamples) {
      const auto chunk = decode_chunk(payload, groups);
      if (!chunk) return pass_on(chunk);
      if (visitor.chunk) visitor.chunk(*chunk);
    } else if (frame == FrameKind::kTierChunk && kind == FileKind::kTier) {
      const auto chunk = decode_tier(payload, groups);
      if (!chunk) return pass_on(chunk);
      if (visitor.tier_chunk) visitor.tier_chunk(*chunk);
    } else {
      return fail(ErrorCode::kBadInput, "a frame of an unknown kind");
    }
    return {};
  });
}

}  // namespace

std::size_t Group::width() const {
  std::size_t width = 0;
  for (const Field& field : fields) width += field.count;
  return width;
}

std::uint64_t StoreFiles::last() const {
  return std::max(logs.empty() ? 0 : *logs.rbegin(), segments.empty() ? 0 : *segments.rbegin());
}

std::string file_name(const std::string& directory, std::uint64_t number, const char* ending) {
  return fmt::format("{}/{:08}{}", directory, number, ending);
}

Result<StoreFiles> list_store(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: is no directory that can be read: {}",
                                                  directory, error.message()));
  }
  StoreFiles files;
  bool is_store = false;
  bool others = false;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    const std::size_t digits = name.find_first_not_of("0123456789");
    const std::string ending = digits == std::string::npos ? "" : name.substr(digits);
    is_store |= name == "lease";
    if (digits == 0 || digits > 18 || name.starts_with("lease")) {
      others |= name != "lease" && !name.starts_with("lease.");
      continue;
    }
    const std::uint64_t number = std::stoull(name);
    if (ending == kLogEnding) files.logs.insert(number);
    if (ending == kRawEnding || ending == kTierEndings[0]) files.segments.insert(number);
  }
  if (!is_store && (others || files.last() > 0)) {
    return fail(ErrorCode::kBadInput, directory + ": is no store: it has files and no lease");
  }
  return files;
}

Result<LogContent> read_log(const std::string& path) {
  LogContent log;
  auto done = read_frames(
      path, FileKind::kLog, [&](FrameKind frame, std::string_view payload) -> Result<void> {
        if (frame == FrameKind::kGroups) return decode_groups(payload, log.groups);
        if (frame == FrameKind::kGap) {
          auto gap = decode_gap(payload);
          if (!gap) return pass_on(gap);
          log.gaps.push_back(std::move(*gap));
          return {};
        }
        if (frame != FrameKind::kSamples) {
          return fail(ErrorCode::kBadInput, "a frame of an unknown kind");
        }
        return decode_samples(
            payload, log.groups,
            [&](std::uint64_t number, std::int64_t time_ns, std::span<const std::uint64_t> values) {
              LogContent::Rows& rows = log.rows[number];
              rows.times.push_back(time_ns);
              rows.values.insert(rows.values.end(), values.begin(), values.end());
              log.samples += values.size();
            });
      });
  if (!done) return pass_on(done);
  return log;
}

Result<void> read_store(const std::string& directory, std::int64_t step_ns,
                        const Visitor& visitor) {
  const auto files = list_store(directory);
  if (!files) return pass_on(files);
  if (files->last() == 0 && !std::filesystem::exists(directory + "/lease")) {
    return fail(ErrorCode::kBadInput, directory + ": is no store: it is empty");
  }
  const char* ending = kRawEnding;
  for (std::size_t i = 0; i < std::size(kTierSteps); ++i) {
    if (step_ns == kTierSteps[i]) ending = kTierEndings[i];
  }
  const FileKind kind = step_ns == 0 ? FileKind::kSamples : FileKind::kTier;
  std::set<std::uint64_t> all = files->logs;
  all.insert(files->segments.begin(), files->segments.end());
  for (const std::uint64_t number : all) {
    const std::string segment = file_name(directory, number, ending);
    // A segment takes the place of its log, also between our looking and our reading.
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (std::filesystem::exists(segment) &&
          std::filesystem::exists(file_name(directory, number, kRawEnding)) >= (step_ns == 0)) {
        if (auto done = read_segment(segment, kind, visitor); !done) return done;
        break;
      }
      const std::string log_path = file_name(directory, number, kLogEnding);
      if (!std::filesystem::exists(log_path)) continue;
      const auto log = read_log(log_path);
      if (!log && log.error().code == ErrorCode::kIo) continue;
      if (!log) return pass_on(log);
      if (auto done = give_log(*log, step_ns, visitor); !done) return done;
      break;
    }
  }
  return {};
}

}  // namespace greynic::series
