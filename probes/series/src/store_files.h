#pragma once

/// The files of a store by their names: 00000007.log, .raw, .10s, .10m.

#include <map>
#include <set>
#include <string>

#include "encoding.h"
#include "frames.h"

namespace greynic::series {

struct StoreFiles {
  std::set<std::uint64_t> logs, segments;
  [[nodiscard]] std::uint64_t last() const;
};

inline constexpr const char* kLogEnding = ".log";
inline constexpr const char* kRawEnding = ".raw";
inline constexpr const char* kTierEndings[] = {".10s", ".10m"};
static_assert(std::size(kTierEndings) == std::size(kTierSteps));

[[nodiscard]] std::string file_name(const std::string& directory, std::uint64_t number,
                                    const char* ending);
[[nodiscard]] Result<StoreFiles> list_store(const std::string& directory);

/// What a log holds: all rows of each group.
struct LogContent {
  struct Rows {
    std::vector<std::int64_t> times;
    std::vector<std::uint64_t> values;
  };
  Groups groups;
  std::map<std::uint64_t, Rows> rows;
  std::vector<Gap> gaps;
  std::uint64_t samples = 0;
};
[[nodiscard]] Result<LogContent> read_log(const std::string& path);

}  // namespace greynic::series
