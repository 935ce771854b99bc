#include "greynic/zero/region.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "greynic/core/check.h"
#include "greynic/zero/table.h"
#include "greynic_zero.h"
#include "greynic_zero_format.h"
#include "region/mapped_file.h"

namespace greynic::zero {
namespace {

Result<void> check_names(const std::vector<Group>& groups) {
  std::set<std::string> group_names;
  for (const Group& group : groups) {
    std::set<std::string> metric_names = {"time_ns"};
    if (!group_names.insert(group.name).second) {
      return fail(ErrorCode::kBadInput, fmt::format("group {} stands twice", group.name));
    }
    if (!is_metric_name(group.name) || group.metrics.empty()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("group '{}' needs a name of letters, digits, _ and ., and a metric",
                              group.name));
    }
    for (const Metric& metric : group.metrics) {
      if (!is_metric_name(metric.name) || metric.unit.size() > 32 || !is_plain_text(metric.unit) ||
          !metric_names.insert(metric.name).second) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("group {}: metric '{}' needs a name of its own of letters, digits "
                                "and _, at most 63 bytes, and a unit of at most 32",
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
  // Regions of older versions are ours, too.
  constexpr std::size_t kNameBytes = 6;
  std::array<char, 8> magic{};
  if (fs::is_regular_file(there) && fs::file_size(path, error) > 0) {
    std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  }
  if (!fs::is_regular_file(there) ||
      (fs::file_size(path, error) > 0 && std::memcmp(magic.data(), ZERO_MAGIC, kNameBytes) != 0)) {
    return fail(ErrorCode::kBadInput,
                path + ": is there and is no region; remove it, or name another file");
  }
  return fs::canonical(path, error).string();
}

/// What the library is told of a group; it keeps the addresses.
struct Described {
  Group group;
  std::vector<zero_field> fields;
  zero_schema schema{};
  void* memory = nullptr;
  std::vector<std::uint64_t> values;  ///< the structure: time, then doubles
};

void describe(Described& into) {
  const auto field = [&](const char* name, zero_type type, const char* unit) {
    into.fields.push_back({name, static_cast<std::uint32_t>(type), ZERO_GAUGE,
                           static_cast<std::uint32_t>(into.fields.size() * 8), 1, 0, unit, "", ""});
  };
  field("time_ns", ZERO_I64, "ns");
  for (const Metric& metric : into.group.metrics) {
    field(metric.name.c_str(), ZERO_F64, metric.unit.c_str());
  }
  into.values.assign(into.fields.size(), 0);
  into.schema = {into.group.name.c_str(),
                 "",
                 into.fields.data(),
                 static_cast<std::uint32_t>(into.fields.size()),
                 static_cast<std::uint32_t>(into.fields.size() * 8),
                 ZERO_WHOLE};
}

/// Enough for all groups: rows, schemas with their texts, and blocks of a power of two.
std::uint64_t arena_bytes(const std::vector<std::unique_ptr<Described>>& groups) {
  std::uint64_t texts = 0;
  std::uint64_t blocks = 0;
  for (const auto& group : groups) {
    texts += 256 + group->fields.size() * (sizeof(zero_schema_field) + 64 + 32 + 4);
    blocks += 2 * zero_whole_size(group->schema.size) + ZERO_PAGE;
  }
  // A quarter of what rows leave is for schemas.
  return sizeof(zero_header) + groups.size() * sizeof(zero_row) + 4 * texts + 2 * blocks +
         8 * ZERO_PAGE;
}

}  // namespace

struct RegionWriter::State {
  explicit State(MappedFile file) : mapping(std::move(file)) {}
  ~State() { zero_arena_destroy(arena); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  MappedFile mapping;
  zero_arena* arena = nullptr;
  std::vector<std::unique_ptr<Described>> groups;
};

RegionWriter::RegionWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RegionWriter::RegionWriter(RegionWriter&&) noexcept = default;
RegionWriter& RegionWriter::operator=(RegionWriter&&) noexcept = default;
RegionWriter::~RegionWriter() = default;

Result<RegionWriter> RegionWriter::create(const std::string& path,
                                          const std::vector<Group>& groups) {
  if (auto good = check_names(groups); !good) return pass_on(good);
  std::vector<std::unique_ptr<Described>> described;
  for (const Group& group : groups) {
    described.push_back(std::make_unique<Described>());
    described.back()->group = group;
    describe(*described.back());
  }
  zero_arena_options options{};
  options.metric_class = ZERO_SYSTEM;
  options.bytes = (arena_bytes(described) + ZERO_PAGE - 1) / ZERO_PAGE * ZERO_PAGE;
  options.rows = static_cast<std::uint32_t>(groups.size());
  if (options.bytes > ZERO_MOST_ARENA_BYTES) {
    return fail(ErrorCode::kTooBig, fmt::format("{} bytes of metrics are more than a region's {}",
                                                options.bytes, ZERO_MOST_ARENA_BYTES));
  }
  const auto place = path.empty() ? Result<std::string>("") : place_of_region(path);
  if (!place) return pass_on(place);
  auto mapping = place->empty() ? MappedFile::unnamed(options.bytes)
                                : MappedFile::create(*place, options.bytes);
  if (!mapping) return pass_on(mapping);
  auto state = std::make_unique<State>(std::move(*mapping));
  state->groups = std::move(described);
  state->arena = zero_arena_format(state->mapping.bytes().data(), &options);
  if (state->arena == nullptr) return fail(ErrorCode::kInternal, zero_error());
  for (const auto& group : state->groups) {
    group->memory = zero_arena_malloc(state->arena, zero_whole_size(group->schema.size));
    if (group->memory == nullptr ||
        zero_arena_publish(state->arena, group->memory, &group->schema, "") != 0) {
      return fail(ErrorCode::kTooBig, group->group.name + ": " + zero_error());
    }
  }
  if (auto shown = state->mapping.reveal(); !shown) return pass_on(shown);
  return RegionWriter(std::move(state));
}

void RegionWriter::publish(std::size_t group, std::int64_t time_ns,
                           std::span<const double> values) {
  GREYNIC_CHECK(group < state_->groups.size());
  Described& into = *state_->groups[group];
  GREYNIC_CHECK(values.size() + 1 == into.values.size());
  into.values[0] = static_cast<std::uint64_t>(time_ns);
  std::ranges::transform(values, into.values.begin() + 1,
                         [](double value) { return std::bit_cast<std::uint64_t>(value); });
  zero_write(into.memory, into.values.data(), into.schema.size);
}

bool RegionWriter::whole() const { return !state_->mapping.lost(); }

std::span<std::byte> RegionWriter::bytes() const { return state_->mapping.bytes(); }

}  // namespace greynic::zero
