#include "encoding.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "greynic/core/text.h"
#include "greynic/series/columns.h"

namespace greynic::series {
namespace {

constexpr std::size_t kMostGroupsBytes = 256 << 20;
constexpr std::size_t kMostText = 4096;

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kBadInput, fmt::format("{} are damaged", what));
}

std::uint64_t code_of(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t signed_of(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

/// Reads one thing after the other; what fails makes all that comes after it fail.
class Cursor {
 public:
  explicit Cursor(std::string_view in) : in_(in) {}
  std::uint64_t number(std::uint64_t most = UINT64_MAX) {
    const auto got = get_number(in_);
    good_ = good_ && got && *got <= most;
    return good_ ? *got : 0;
  }
  std::string text() {
    auto got = get_text(in_, kMostText);
    good_ = good_ && got.has_value();
    // Who shows it may be a terminal, and a file may come from anybody.
    return good_ ? printable(*got) : std::string();
  }
  std::vector<std::uint64_t> column(std::size_t count) {
    auto got = good_ ? unpack(in_, count) : Result<std::vector<std::uint64_t>>();
    good_ = good_ && got.has_value();
    return good_ ? std::move(*got) : std::vector<std::uint64_t>();
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return good_ && in_.empty(); }

 private:
  std::string_view in_;
  bool good_ = true;
};

/// The type of each column of a group.
std::vector<const Field*> columns_of(const Group& group) {
  std::vector<const Field*> columns;
  for (const Field& field : group.fields) columns.insert(columns.end(), field.count, &field);
  return columns;
}

bool less(const Field& field, std::uint64_t a, std::uint64_t b) {
  if (field.floating) return std::bit_cast<double>(a) < std::bit_cast<double>(b);
  if (field.is_signed) return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  return a < b;
}

double as_double(const Field& field, std::uint64_t value) {
  if (field.floating) return std::bit_cast<double>(value);
  if (field.is_signed) return static_cast<double>(static_cast<std::int64_t>(value));
  return static_cast<double>(value);
}

template <typename To, typename From>
std::vector<To> copy_of(const std::vector<From>& from) {
  return std::vector<To>(from.begin(), from.end());
}

}  // namespace

std::string encode_groups(const std::map<std::uint64_t, const Group*>& groups) {
  std::string text;
  put_number(text, groups.size());
  for (const auto& [number, group] : groups) {
    put_number(text, number);
    put_text(text, group->host);
    put_text(text, group->source);
    put_number(text, group->metric_class);
    put_number(text, group->fields.size());
    for (const Field& field : group->fields) {
      for (const std::string* part : {&field.name, &field.labels, &field.unit, &field.help}) {
        put_text(text, std::string_view(*part).substr(0, kMostText));
      }
      put_number(text, field.kind | (field.floating ? 16U : 0U) | (field.is_signed ? 32U : 0U));
      put_number(text, field.count);
      put_number(text, field.parameter);
    }
  }
  std::string payload;
  put_number(payload, text.size());
  const std::size_t head = payload.size();
  uLongf bytes = compressBound(text.size());
  payload.resize(head + bytes);
  ::compress2(reinterpret_cast<Bytef*>(payload.data() + head), &bytes,
              reinterpret_cast<const Bytef*>(text.data()), text.size(), 6);
  payload.resize(head + bytes);
  return payload;
}

Result<void> decode_groups(std::string_view payload, Groups& into) {
  const auto size = get_number(payload);
  // zlib packs no more than 1,032 to 1.
  if (!size || *size > kMostGroupsBytes || *size > payload.size() * 1100 + 64) {
    return damaged("groups");
  }
  std::string text(*size, '\0');
  uLongf bytes = text.size();
  if (::uncompress(reinterpret_cast<Bytef*>(text.data()), &bytes,
                   reinterpret_cast<const Bytef*>(payload.data()), payload.size()) != Z_OK ||
      bytes != text.size()) {
    return damaged("groups");
  }
  Cursor in(text);
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    const std::uint64_t number = in.number(1 << 24);
    Group group;
    group.host = in.text();
    group.source = in.text();
    group.metric_class = static_cast<std::uint8_t>(in.number(255));
    std::size_t columns = 0;
    for (std::uint64_t fields = in.number(kMostColumns); fields > 0 && in.good(); --fields) {
      Field field;
      for (std::string* part : {&field.name, &field.labels, &field.unit, &field.help}) {
        *part = in.text();
      }
      const std::uint64_t kind = in.number(63);
      field.kind = kind & 15;
      field.floating = (kind & 16) != 0;
      field.is_signed = (kind & 32) != 0;
      field.count = static_cast<std::uint32_t>(in.number(kMostColumns));
      field.parameter = static_cast<std::uint32_t>(in.number(64));
      columns += field.count;
      if (columns > kMostColumns || field.kind < 1 || field.kind > 3) return damaged("groups");
      group.fields.push_back(std::move(field));
    }
    into[number] = std::move(group);
  }
  return in.good() ? Result<void>() : damaged("groups");
}

std::string encode_gap(const Gap& gap) {
  std::string payload;
  put_text(payload, gap.host);
  put_number(payload, code_of(gap.begin_ns));
  put_number(payload, code_of(gap.end_ns));
  put_text(payload, std::string_view(gap.reason).substr(0, kMostText));
  return payload;
}

Result<Gap> decode_gap(std::string_view payload) {
  Cursor in(payload);
  Gap gap;
  gap.host = in.text();
  gap.begin_ns = signed_of(in.number());
  gap.end_ns = signed_of(in.number());
  gap.reason = in.text();
  if (!in.at_end()) return damaged("gaps");
  return gap;
}

std::string encode_chunk(std::uint64_t number, const Group& group,
                         const std::vector<std::int64_t>& times,
                         const std::vector<std::uint64_t>& rows, std::size_t begin,
                         std::size_t end) {
  const std::vector<const Field*> columns = columns_of(group);
  std::string payload;
  put_number(payload, number);
  put_number(payload, end - begin);
  std::vector<std::uint64_t> column(times.begin() + static_cast<long>(begin),
                                    times.begin() + static_cast<long>(end));
  pack(column, false, payload);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t i = begin; i < end; ++i) column[i - begin] = rows[i * columns.size() + c];
    pack(column, columns[c]->floating, payload);
  }
  return payload;
}

Result<Chunk> decode_chunk(std::string_view payload, const Groups& groups) {
  Cursor in(payload);
  const auto group = groups.find(in.number());
  const std::uint64_t rows = in.number(kMostChunkRows);
  if (!in.good() || group == groups.end() || rows == 0 ||
      group->second.width() * rows > kMostChunkValues * 2) {
    return damaged("samples");
  }
  Chunk chunk;
  chunk.group = &group->second;
  chunk.times_ns = copy_of<std::int64_t>(in.column(rows));
  for (std::size_t i = 0; i < group->second.width() && in.good(); ++i) {
    chunk.columns.push_back(in.column(rows));
  }
  if (!in.at_end()) return damaged("samples");
  return chunk;
}

TierChunk tier_of(const Chunk& chunk, std::int64_t step_ns) {
  TierChunk tier;
  tier.group = chunk.group;
  tier.step_ns = step_ns;
  const std::vector<const Field*> fields = columns_of(*chunk.group);
  std::vector<std::pair<std::size_t, std::size_t>> buckets;  // rows of each
  for (std::size_t i = 0; i < chunk.times_ns.size(); ++i) {
    std::int64_t begin = chunk.times_ns[i] / step_ns * step_ns;
    if (begin > chunk.times_ns[i]) begin -= step_ns;
    if (tier.begins_ns.empty() || tier.begins_ns.back() != begin) {
      tier.begins_ns.push_back(begin);
      buckets.emplace_back(i, i);
    }
    buckets.back().second = i + 1;
  }
  for (const auto& [from, to] : buckets) tier.counts.push_back(to - from);
  for (std::size_t c = 0; c < chunk.columns.size(); ++c) {
    const std::vector<std::uint64_t>& values = chunk.columns[c];
    TierChunk::Column column;
    for (const auto& [from, to] : buckets) {
      std::uint64_t least = values[from], greatest = values[from];
      double sum = 0;
      for (std::size_t i = from; i < to; ++i) {
        if (less(*fields[c], values[i], least)) least = values[i];
        if (less(*fields[c], greatest, values[i])) greatest = values[i];
        sum += as_double(*fields[c], values[i]);
      }
      column.least.push_back(least);
      column.greatest.push_back(greatest);
      column.last.push_back(values[to - 1]);
      column.sum.push_back(std::bit_cast<std::uint64_t>(sum));
    }
    tier.columns.push_back(std::move(column));
  }
  return tier;
}

std::string encode_tier(std::uint64_t number, const TierChunk& chunk) {
  std::string payload;
  put_number(payload, number);
  put_number(payload, chunk.begins_ns.size());
  put_number(payload, static_cast<std::uint64_t>(chunk.step_ns));
  pack(copy_of<std::uint64_t>(chunk.begins_ns), false, payload);
  pack(chunk.counts, false, payload);
  const std::vector<const Field*> fields = columns_of(*chunk.group);
  for (std::size_t c = 0; c < chunk.columns.size(); ++c) {
    const TierChunk::Column& column = chunk.columns[c];
    for (const auto* values : {&column.least, &column.greatest, &column.last}) {
      pack(*values, fields[c]->floating, payload);
    }
    pack(column.sum, true, payload);
  }
  return payload;
}

Result<TierChunk> decode_tier(std::string_view payload, const Groups& groups) {
  Cursor in(payload);
  const auto group = groups.find(in.number());
  const std::uint64_t rows = in.number(kMostChunkRows);
  TierChunk chunk;
  chunk.step_ns = static_cast<std::int64_t>(in.number(INT64_MAX));
  if (!in.good() || group == groups.end() || rows == 0 || chunk.step_ns == 0 ||
      group->second.width() * rows > kMostChunkValues * 2) {
    return damaged("a tier's samples");
  }
  chunk.group = &group->second;
  chunk.begins_ns = copy_of<std::int64_t>(in.column(rows));
  chunk.counts = in.column(rows);
  for (std::size_t i = 0; i < group->second.width() && in.good(); ++i) {
    TierChunk::Column column;
    for (auto* values : {&column.least, &column.greatest, &column.last, &column.sum}) {
      *values = in.column(rows);
    }
    chunk.columns.push_back(std::move(column));
  }
  if (!in.at_end()) return damaged("a tier's samples");
  return chunk;
}

void SampleWriter::add(std::uint64_t number, std::int64_t time_ns,
                       std::span<const std::uint64_t> values) {
  if (number >= last_.size()) last_.resize(number + 1);
  std::vector<std::uint64_t>& last = last_[number];
  if (last.empty()) {
    last.assign(values.size(), 0);
    touched_.push_back(number);
  }
  put_number(payload_, number);
  put_number(payload_, code_of(time_ns - last_time_));
  last_time_ = time_ns;
  const std::size_t begin = payload_.size();
  payload_.resize(begin + values.size() * 10);
  char* to = payload_.data() + begin;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t code = code_of(static_cast<std::int64_t>(values[i] - last[i]));
    last[i] = values[i];
    for (; code >= 0x80; code >>= 7) *to++ = static_cast<char>(code | 0x80);
    *to++ = static_cast<char>(code);
  }
  payload_.resize(static_cast<std::size_t>(to - payload_.data()));
}

void SampleWriter::clear() {
  payload_.clear();
  last_time_ = 0;
  for (const std::uint64_t number : touched_) last_[number].clear();
  touched_.clear();
}

Result<void> decode_samples(std::string_view payload, const Groups& groups, const TakeRow& take) {
  Cursor in(payload);
  std::map<std::uint64_t, std::vector<std::uint64_t>> last;
  std::int64_t time_ns = 0;
  while (!in.at_end()) {
    const std::uint64_t number = in.number();
    time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) +
                                        static_cast<std::uint64_t>(signed_of(in.number())));
    const auto group = groups.find(number);
    if (!in.good() || group == groups.end()) return damaged("samples");
    std::vector<std::uint64_t>& values = last[number];
    values.resize(group->second.width());
    for (std::uint64_t& value : values) value += static_cast<std::uint64_t>(signed_of(in.number()));
    if (!in.good()) return damaged("samples");
    take(number, time_ns, values);
  }
  return {};
}

}  // namespace greynic::series
