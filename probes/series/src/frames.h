#pragma once

/// Files of a store: a head and frames, each with its length and checksum. docs/formats/series.md.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::series {

enum class FrameKind : std::uint32_t {
  kGroups = 1,
  kSamples = 2,  ///< of a log
  kChunk = 3,    ///< of a segment
  kGap = 4,
  kTierChunk = 5,
  kEnd = 6,  ///< of a segment
};

enum class FileKind : std::uint32_t { kLog = 0, kSamples = 1, kTier = 2 };

[[nodiscard]] std::string file_head(FileKind kind, std::uint64_t number, std::int64_t step_ns);
void put_frame(std::string& out, FrameKind kind, std::string_view payload);

/// Calls with each frame. A segment must be whole; of a log the torn end is left out. kBadInput
/// with file and place for what is damaged, also when `take` finds it so.
using TakeFrame = std::function<Result<void>(FrameKind, std::string_view)>;
[[nodiscard]] Result<void> read_frames(const std::string& path, FileKind kind,
                                       const TakeFrame& take);

}  // namespace greynic::series
