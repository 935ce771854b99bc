#include "collecting.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic::monitor {
namespace {

series::Group group_of(const HostSpec& host, const std::string& program, const zero_header& header,
                       const zero::Row& row) {
  series::Group group{host.name, program, static_cast<std::uint8_t>(header.metric_class), {}};
  for (const zero::Field& field : row.schema->fields) {
    const bool is_histogram = field.kind == ZERO_HISTOGRAM;
    const zero::Series series = zero::series_of(row, field, 0);
    series::Field made{series.name,
                       row.labels,
                       field.unit,
                       field.help,
                       static_cast<std::uint8_t>(field.kind),
                       zero::is_floating(field.type),
                       field.type == ZERO_I64 || field.type == ZERO_I32,
                       field.count,
                       is_histogram ? field.parameter : 0};
    if (!made.labels.empty() && !field.labels.empty()) made.labels += ',';
    made.labels += field.labels;
    group.fields.push_back(std::move(made));
  }
  return group;
}

}  // namespace

Collecting::Plan Collecting::plan_of(const zero::Row& row) {
  Plan plan;
  plan.schema = row.schema;
  for (const zero::Field& field : plan.schema->fields) {
    plan.width += field.count;
    if (zero::bytes_of(field.type) != 8) {
      plan.runs.push_back({field.offset, field.count, &field});
    } else if (!plan.runs.empty() && plan.runs.back().field == nullptr &&
               plan.runs.back().offset + plan.runs.back().count * 8 == field.offset) {
      plan.runs.back().count += field.count;
    } else {
      plan.runs.push_back({field.offset, field.count, nullptr});
    }
  }
  return plan;
}

void Collecting::take_place(OfArena& arena, const HostSpec& host, const zero_header& header) {
  arena.places = programs_.try_emplace({host.name, header.name}).first;
  std::vector<Place>& places = arena.places->second;
  auto place = std::find_if(places.begin(), places.end(), [&](const Place& one) {
    return one.arenas > 0 && one.pid == header.owner_pid && one.start == header.owner_start;
  });
  if (place == places.end()) {
    place = std::find_if(places.begin(), places.end(),
                         [](const Place& one) { return one.arenas == 0; });
  }
  if (place == places.end()) place = places.insert(place, Place{});
  *place = {header.owner_pid, header.owner_start, place->arenas + 1};
  arena.place = static_cast<std::size_t>(place - places.begin());
  arena.program =
      arena.place == 0 ? header.name : fmt::format("{}/{}", header.name, arena.place + 1);
}

void Collecting::leave_place(OfArena& arena) {
  std::vector<Place>& places = arena.places->second;
  --places[arena.place].arenas;
  while (!places.empty() && places.back().arenas == 0) places.pop_back();
  if (places.empty()) programs_.erase(arena.places);
}

bool Collecting::put(RecordKind kind, std::uint64_t first, std::uint64_t second) {
  const auto room = ring_.room(3);
  if (room.empty()) return false;
  room[0] = static_cast<std::uint64_t>(kind);
  room[1] = first;
  room[2] = second;
  ring_.put(room);
  return true;
}

Collecting::Known* Collecting::known_row(OfArena& arena, const HostSpec& host,
                                         const zero_header& header, const zero::Row& row) {
  const auto [place, is_new] = arena.rows.try_emplace(row.instance);
  Known& known = place->second;
  if (!is_new) return &known;
  auto group = std::make_unique<series::Group>(group_of(host, arena.program, header, row));
  known.number = ++last_number_;
  known.plan = plan_of(row);
  if (put(RecordKind::kGroup, known.number, reinterpret_cast<std::uint64_t>(group.get()))) {
    (void)group.release();
    return &known;
  }
  arena.rows.erase(place);
  return nullptr;
}

void Collecting::tell_ended() {
  // Where the ring is full the rest is told the next time.
  while (!ended_.empty() && put(RecordKind::kEnded, ended_.back(), 0)) ended_.pop_back();
}

void Collecting::forget_old(OfArena& arena) {
  std::erase_if(arena.rows, [&](const auto& row) {
    const bool gone = row.second.round != arena.round;
    if (gone) ended_.push_back(row.second.number);
    return gone;
  });
  tell_ended();
}

void Collecting::ended(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto arena = arenas_.find(number);
  if (arena == arenas_.end()) return;
  for (const auto& [instance, row] : arena->second.rows) ended_.push_back(row.number);
  leave_place(arena->second);
  arenas_.erase(arena);
  tell_ended();
}

void Collecting::readings(const HostSpec& host, std::uint64_t arena_number,
                          const zero_header& header, std::span<const zero::Reading> readings,
                          std::int64_t time_ns) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = arenas_.try_emplace(arena_number);
  OfArena& arena = found->second;
  if (is_new) take_place(arena, host, header);
  ++arena.round;
  for (const zero::Reading& reading : readings) {
    Known* const known = known_row(arena, host, header, *reading.row);
    const std::size_t width =
        known != nullptr ? known->plan.width : reading.row->schema->fields.size();
    counts_.samples += width;
    const auto room = known == nullptr ? std::span<std::uint64_t>() : ring_.room(3 + width);
    if (known != nullptr) known->round = arena.round;
    if (room.empty()) {
      counts_.lost += width;
      continue;
    }
    room[0] = static_cast<std::uint64_t>(RecordKind::kSample);
    room[1] = known->number;
    // The last values of what has ended are of its end.
    room[2] = static_cast<std::uint64_t>(
        reading.row->ended ? static_cast<std::int64_t>(reading.row->ended_ns) : time_ns);
    std::uint64_t* to = room.data() + 3;
    for (const Run& run : known->plan.runs) {
      if (run.field == nullptr) {
        std::memcpy(to, reading.bytes.data() + run.offset, std::size_t{run.count} * 8);
      } else {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          to[i] = zero::bits_of(*run.field, reading.bytes, i);
        }
      }
      to += run.count;
    }
    ring_.put(room);
  }
  if (arena.rows.size() > readings.size()) forget_old(arena);
}

void Collecting::gap(const HostSpec& host, std::int64_t begin_ns, std::int64_t end_ns,
                     const std::string& reason) {
  auto gap = std::make_unique<series::Gap>(series::Gap{host.name, begin_ns, end_ns, reason});
  const std::lock_guard lock(mutex_);
  ++counts_.gaps;
  if (put(RecordKind::kGap, reinterpret_cast<std::uint64_t>(gap.get()), 0)) (void)gap.release();
}

}  // namespace greynic::monitor
