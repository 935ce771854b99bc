#pragma once

/// What frames hold. Everything that is read is checked: it may come from anywhere.

#include <map>
#include <string>
#include <string_view>

#include "greynic/series/store.h"

namespace greynic::series {

inline constexpr std::size_t kMostChunkValues = 16 << 20;
inline constexpr std::size_t kMostChunkRows = 65536;
inline constexpr std::size_t kMostColumns = 4 << 20;

using Groups = std::map<std::uint64_t, Group>;  ///< by their number in a file

/// Groups with their numbers, deflated.
[[nodiscard]] std::string encode_groups(const std::map<std::uint64_t, const Group*>& groups);
[[nodiscard]] Result<void> decode_groups(std::string_view payload, Groups& into);

[[nodiscard]] std::string encode_gap(const Gap& gap);
[[nodiscard]] Result<Gap> decode_gap(std::string_view payload);

/// Rows `begin` to `end`, the values of each lying together.
[[nodiscard]] std::string encode_chunk(std::uint64_t number, const Group& group,
                                       const std::vector<std::int64_t>& times,
                                       const std::vector<std::uint64_t>& rows, std::size_t begin,
                                       std::size_t end);
[[nodiscard]] Result<Chunk> decode_chunk(std::string_view payload, const Groups& groups);

[[nodiscard]] TierChunk tier_of(const Chunk& chunk, std::int64_t step_ns);
[[nodiscard]] std::string encode_tier(std::uint64_t number, const TierChunk& chunk);
[[nodiscard]] Result<TierChunk> decode_tier(std::string_view payload, const Groups& groups);

/// Samples of a log, one frame a commit: rows of any groups, as differences to the row before of
/// the same group in the same frame.
class SampleWriter {
 public:
  void add(std::uint64_t number, std::int64_t time_ns, std::span<const std::uint64_t> values);
  [[nodiscard]] bool empty() const { return payload_.empty(); }
  [[nodiscard]] const std::string& payload() const { return payload_; }
  void clear();

 private:
  std::string payload_;
  std::int64_t last_time_ = 0;
  std::vector<std::vector<std::uint64_t>> last_;  ///< by number; empty: none in this frame
  std::vector<std::uint64_t> touched_;
};
using TakeRow =
    std::function<void(std::uint64_t number, std::int64_t time_ns, std::span<const std::uint64_t>)>;
[[nodiscard]] Result<void> decode_samples(std::string_view payload, const Groups& groups,
                                          const TakeRow& take);

}  // namespace greynic::series
