#include "greynic/series/query.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

namespace greynic::series {
namespace {

constexpr std::uint8_t kHistogram = 3;

bool matches(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

/// The smallest value of a bucket (docs/formats/arena.md).
double bucket_begin(std::size_t bucket, unsigned bits) {
  const std::size_t linear = std::size_t{1} << bits;
  if (bucket < linear) return static_cast<double>(bucket);
  return static_cast<double>(linear + bucket % linear) *
         static_cast<double>(std::uint64_t{1} << std::min<std::size_t>(63, bucket / linear - 1));
}

std::string labels_of(const Field& field, std::uint32_t index) {
  if (field.count == 1 || field.kind == kHistogram) return field.labels;
  return fmt::format("{}{}index=\"{}\"", field.labels, field.labels.empty() ? "" : ",", index);
}

using Key = std::tuple<std::string, std::string, std::string, std::string>;

void add_sample(Summary& to, const Field& field, std::int64_t time_ns, std::uint64_t bits) {
  const double value = value_of(field, bits);
  if (to.samples == 0) {
    to.first_ns = to.last_ns = time_ns;
    to.least = to.greatest = value;
  }
  ++to.samples;
  to.first_ns = std::min(to.first_ns, time_ns);
  to.least = std::min(to.least, value);
  to.greatest = std::max(to.greatest, value);
  if (time_ns >= to.last_ns) {
    to.last_ns = time_ns;
    to.last = text_of(field, bits);
  }
}

void add_histogram(Summary& to, const Field& field, const Chunk& chunk, std::size_t column,
                   std::size_t row) {
  std::vector<std::uint64_t> words(field.count);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = chunk.columns[column + i][row];
  to.last_ns = chunk.times_ns[row];
  to.last = fmt::format("{}", words[0]);
  to.count = std::accumulate(words.begin() + 1, words.end(), std::uint64_t{0});
  to.least = quantile_of(field, words, 0.5);
  to.greatest = quantile_of(field, words, 0.99);
}

/// Calls with each field that the query wants, and its first column.
template <typename Call>
void each_field(const Group& group, const Query& query, const Call& call) {
  if (!matches(query.host, group.host)) return;
  std::size_t column = 0;
  for (const Field& field : group.fields) {
    if (matches(query.metric, field.name)) call(field, column);
    column += field.count;
  }
}

bool within(const Query& query, std::int64_t time_ns) {
  return time_ns >= query.begin_ns && time_ns <= query.end_ns;
}

}  // namespace

double value_of(const Field& field, std::uint64_t bits) {
  if (field.floating) return std::bit_cast<double>(bits);
  if (field.is_signed) return static_cast<double>(static_cast<std::int64_t>(bits));
  return static_cast<double>(bits);
}

std::string text_of(const Field& field, std::uint64_t bits) {
  if (field.floating) return fmt::format("{}", std::bit_cast<double>(bits));
  if (field.is_signed) return fmt::format("{}", static_cast<std::int64_t>(bits));
  return fmt::format("{}", bits);
}

double quantile_of(const Field& field, std::span<const std::uint64_t> words, double share) {
  const auto buckets = words.subspan(1);
  const double total =
      std::accumulate(buckets.begin(), buckets.end(), 0.0,
                      [](double sum, std::uint64_t n) { return sum + static_cast<double>(n); });
  double below = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    below += static_cast<double>(buckets[i]);
    if (total > 0 && below >= share * total) return bucket_begin(i, field.parameter);
  }
  return 0;
}

Result<std::vector<Summary>> summarize(const std::string& directory, const Query& query) {
  std::map<Key, Summary> found;
  Visitor visitor;
  visitor.chunk = [&](const Chunk& chunk) {
    each_field(*chunk.group, query, [&](const Field& field, std::size_t column) {
      const bool is_histogram = field.kind == kHistogram;
      for (std::uint32_t index = 0; index < (is_histogram ? 1 : field.count); ++index) {
        const std::string labels = labels_of(field, index);
        Summary& to = found[{chunk.group->host, field.name, labels, chunk.group->source}];
        if (to.name.empty()) {
          to.host = chunk.group->host;
          to.source = chunk.group->source;
          to.name = field.name;
          to.labels = labels;
          to.unit = field.unit;
          to.kind = field.kind;
        }
        for (std::size_t i = 0; i < chunk.times_ns.size(); ++i) {
          if (!within(query, chunk.times_ns[i])) continue;
          if (!is_histogram) {
            add_sample(to, field, chunk.times_ns[i], chunk.columns[column + index][i]);
            continue;
          }
          if (to.samples++ == 0) to.first_ns = chunk.times_ns[i];
          if (chunk.times_ns[i] >= to.last_ns) add_histogram(to, field, chunk, column, i);
        }
      }
    });
  };
  if (auto done = read_store(directory, 0, visitor); !done) return pass_on(done);
  std::vector<Summary> summaries;
  for (auto& [key, summary] : found) {
    if (summary.samples > 0) summaries.push_back(std::move(summary));
  }
  return summaries;
}

Result<void> visit_points(const std::string& directory, const Query& query,
                          const std::function<void(const Point&)>& visit) {
  Visitor visitor;
  visitor.chunk = [&](const Chunk& chunk) {
    each_field(*chunk.group, query, [&](const Field& field, std::size_t column) {
      for (std::uint32_t index = 0; field.kind != kHistogram && index < field.count; ++index) {
        for (std::size_t i = 0; i < chunk.times_ns.size(); ++i) {
          if (!within(query, chunk.times_ns[i])) continue;
          visit({chunk.group, &field, index, chunk.times_ns[i], chunk.columns[column + index][i]});
        }
      }
    });
  };
  visitor.tier_chunk = [&](const TierChunk& chunk) {
    each_field(*chunk.group, query, [&](const Field& field, std::size_t column) {
      for (std::uint32_t index = 0; field.kind != kHistogram && index < field.count; ++index) {
        const TierChunk::Column& values = chunk.columns[column + index];
        for (std::size_t i = 0; i < chunk.begins_ns.size(); ++i) {
          if (!within(query, chunk.begins_ns[i])) continue;
          const auto count = static_cast<double>(std::max<std::uint64_t>(1, chunk.counts[i]));
          visit({chunk.group, &field, index, chunk.begins_ns[i], values.last[i], chunk.counts[i],
                 value_of(field, values.least[i]), value_of(field, values.greatest[i]),
                 std::bit_cast<double>(values.sum[i]) / count});
        }
      }
    });
  };
  return read_store(directory, query.step_ns, visitor);
}

Result<std::vector<Gap>> gaps_of(const std::string& directory, const Query& query) {
  std::vector<Gap> gaps;
  Visitor visitor;
  visitor.gap = [&](const Gap& gap) {
    if (matches(query.host, gap.host) && gap.end_ns >= query.begin_ns &&
        gap.begin_ns <= query.end_ns) {
      gaps.push_back(gap);
    }
  };
  if (auto done = read_store(directory, 0, visitor); !done) return pass_on(done);
  return gaps;
}

}  // namespace greynic::series
