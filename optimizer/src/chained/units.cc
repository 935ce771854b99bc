#include "src/chained/units.h"

#include <algorithm>
#include <bit>
#include <set>

namespace greynic::optimizer::chained {

std::uint32_t Slot::get(const Word* row) const {
  if (count == 0) return 0;
  const std::size_t shift = first % 64;
  Word bits = row[first / 64] >> shift;
  if (shift + count > 64) bits |= row[first / 64 + 1] << (64 - shift);
  return static_cast<std::uint32_t>(bits) & all();
}

void Slot::set(std::uint32_t bits, Word* row) const {
  if (count == 0) return;
  const std::size_t shift = first % 64;
  Word& low = row[first / 64];
  low = (low & ~(Word{all()} << shift)) | Word{bits} << shift;
  if (shift + count <= 64) return;
  Word& high = row[first / 64 + 1];
  high = (high & ~(Word{all()} >> (64 - shift))) | Word{bits} >> (64 - shift);
}

std::uint32_t PortSets::number(std::vector<Prefix> prefixes) {
  const auto [place, fresh] =
      known_.try_emplace(std::move(prefixes), static_cast<std::uint32_t>(sets_.size()));
  if (fresh) sets_.push_back(place->first);
  return place->second;
}

bool UnitRows::takes_all(std::size_t row) const {
  const Word* mask = hull.mask[row];
  return std::all_of(mask, mask + hull.words(), [](Word w) { return w == 0; }) &&
         std::all_of(ports[row].begin(), ports[row].end(), [](auto id) { return id == 0; });
}

namespace {

std::array<Slot, kPortFields> port_slots(const Columns& columns) {
  std::array<Slot, kPortFields> slots;
  for (std::size_t i = 0; i < kPortFields; ++i) {
    Match match;
    match.set(kPorts[i], 0);
    std::vector<Word> value(columns.words(), 0);
    std::vector<Word> mask(columns.words(), 0);
    columns.pack(match, value.data(), mask.data());
    for (std::size_t column = columns.count(); column-- > 0;) {
      if ((mask[column / 64] >> column % 64 & 1) == 0) continue;
      slots[i].first = column;
      ++slots[i].count;
    }
  }
  return slots;
}

/// Rows from `begin` on that are one rule written out: alike but for the ports, of one effect, and
/// every source prefix with every destination prefix. The end of them.
struct Family {
  std::size_t end;
  std::array<std::vector<Prefix>, kPortFields> prefixes;
};

bool disjoint(const std::vector<Prefix>& prefixes) {
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::uint32_t common = prefixes[i].mask & prefixes[j].mask;
      if (((prefixes[i].value ^ prefixes[j].value) & common) == 0) return false;
    }
  }
  return true;
}

Family family_at(const Problem& problem, const std::array<Slot, kPortFields>& slot,
                 std::size_t begin) {
  const Ternaries& rows = problem.rows;
  const auto without_ports = [&](std::size_t row) {
    std::vector<Word> both(rows.value[row], rows.value[row] + rows.words());
    both.insert(both.end(), rows.mask[row], rows.mask[row] + rows.words());
    for (const Slot& s : slot) {
      s.set(0, both.data());
      s.set(0, both.data() + rows.words());
    }
    return both;
  };
  const std::vector<Word> key = without_ports(begin);
  std::array<std::set<Prefix>, kPortFields> seen;
  std::set<std::array<Prefix, kPortFields>> pairs;
  Family family{begin + 1, {}};
  std::size_t end = begin;
  for (; end < rows.size() && problem.effect[end] == problem.effect[begin]; ++end) {
    if (without_ports(end) != key) break;
    std::array<Prefix, kPortFields> pair;
    for (std::size_t i = 0; i < kPortFields; ++i) {
      pair[i] = {slot[i].get(rows.value[end]), slot[i].get(rows.mask[end])};
      seen[i].insert(pair[i]);
    }
    pairs.insert(pair);
  }
  const bool complete =
      pairs.size() == end - begin && pairs.size() == seen[0].size() * seen[1].size();
  for (std::size_t i = 0; i < kPortFields; ++i) {
    family.prefixes[i].assign(seen[i].begin(), seen[i].end());
  }
  if (complete && disjoint(family.prefixes[0]) && disjoint(family.prefixes[1])) {
    family.end = end;
    return family;
  }
  for (std::size_t i = 0; i < kPortFields; ++i) {
    family.prefixes[i] = {{slot[i].get(rows.value[begin]), slot[i].get(rows.mask[begin])}};
  }
  return family;
}

/// Have the highest bits of a port field columns, and no others?
bool has_highest_bits(const Units& units, std::size_t field) {
  const Slot& slot = units.slot[field];
  if (slot.count == 0) return false;
  std::vector<Word> mask(units.ranged.size(), 0);
  slot.set(slot.all(), mask.data());
  const Mask looked_at = units.problem->columns.unpack_mask(mask.data());
  const FieldMask& bits = looked_at.fields().front();
  const U128 wild = full_mask(bits.field) & ~bits.bits;
  return (wild & (wild + 1)) == 0;
}

/// Do all units want prefixes of such a field?
bool all_prefixes(const Units& units, std::size_t field) {
  if (!has_highest_bits(units, field)) return false;
  const Slot& slot = units.slot[field];
  const auto is_prefix = [&](std::uint32_t prefix) {
    const std::uint32_t open = slot.all() & ~prefix;
    return (open & (open + 1)) == 0;
  };
  for (std::size_t row = 0; row < units.rows.size(); ++row) {
    const std::uint32_t set = units.rows.ports[row][field];
    if (set == 0 && !is_prefix(slot.get(units.rows.hull.mask[row]))) return false;
    for (const Prefix& prefix : units.sets[set]) {
      if (!is_prefix(prefix.mask)) return false;
    }
  }
  return true;
}

/// Ports of disjoint prefixes, ascending.
std::vector<ranged::Span> spans_of(std::vector<Prefix> prefixes, std::uint32_t all) {
  std::sort(prefixes.begin(), prefixes.end());
  std::vector<ranged::Span> spans;
  for (const Prefix& prefix : prefixes) {
    const std::uint32_t high = prefix.value | (all & ~prefix.mask);
    if (!spans.empty() && spans.back().high + 1 == prefix.value) {
      spans.back().high = high;
    } else {
      spans.push_back({prefix.value, high});
    }
  }
  return spans;
}

/// Its bits down to the first that is not looked at.
Prefix leading(Prefix prefix, std::uint32_t all) {
  const std::uint32_t open = all & ~prefix.mask;
  if (open != 0) prefix.mask &= ~(2 * std::bit_floor(open) - 1);
  prefix.value &= prefix.mask;
  return prefix;
}

/// What all prefixes have in common.
Prefix hull_of(const std::vector<Prefix>& prefixes) {
  Prefix hull = prefixes.front();
  for (const Prefix& prefix : prefixes) {
    hull.mask &= prefix.mask & ~(hull.value ^ prefix.value);
    hull.value &= hull.mask;
  }
  return hull;
}

}  // namespace

Units::Units(const Problem& all, std::size_t most_ranges, bool codes)
    : problem(&all),
      slot(port_slots(all.columns)),
      ranged(all.rows.words(), 0),
      rows(all.rows.words()) {
  const std::size_t words = all.rows.words();
  for (std::size_t begin = 0; begin < all.rows.size();) {
    Family family = family_at(all, slot, begin);
    std::vector<Word> value(all.rows.value[begin], all.rows.value[begin] + words);
    std::vector<Word> mask(all.rows.mask[begin], all.rows.mask[begin] + words);
    PortIds ports{};
    for (std::size_t i = 0; i < kPortFields; ++i) {
      const Prefix hull = hull_of(family.prefixes[i]);
      slot[i].set(hull.value, value.data());
      slot[i].set(hull.mask, mask.data());
      if (family.prefixes[i].size() > 1) ports[i] = sets.number(std::move(family.prefixes[i]));
    }
    const auto number = static_cast<std::uint32_t>(rows.size());
    rows.add(value.data(), mask.data(), ports, number);
    effect.push_back(all.effect[begin]);
    rule.push_back(all.rule[begin]);
    unit_of_row.insert(unit_of_row.end(), family.end - begin, number);
    begin = family.end;
  }
  // Fields that are written out most come first.
  std::array<std::size_t, kPortFields> order = {0, 1};
  std::array<std::size_t, kPortFields> written{};
  for (const PortIds& ports : rows.ports) {
    for (std::size_t i = 0; i < kPortFields; ++i) written[i] += sets[ports[i]].size();
  }
  if (written[1] > written[0]) std::swap(order[0], order[1]);
  for (const std::size_t i : order) {
    if (most_ranges == 0 || !(codes ? all_prefixes(*this, i) : has_highest_bits(*this, i)))
      continue;
    --most_ranges;
    (codes ? as_range : may_range)[i] = true;
  }
  // What is written out beside ranges would need masks of its own.
  const bool mixed = (written[0] > 0 && !as_range[0]) || (written[1] > 0 && !as_range[1]);
  if (mixed) as_range = {};
  if (as_range[0] || as_range[1]) write_as_codes();
}

void Units::write_as_codes() {
  const std::size_t words = ranged.size();
  std::array<std::vector<std::vector<Prefix>>, kPortFields> codes;  // by row
  for (std::size_t i = 0; i < kPortFields; ++i) {
    if (!as_range[i]) continue;
    slot[i].set(slot[i].all(), ranged.data());
    std::vector<std::vector<ranged::Span>> spans(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::uint32_t set = rows.ports[row][i];
      const Prefix hull = {slot[i].get(rows.hull.value[row]), slot[i].get(rows.hull.mask[row])};
      spans[row] = spans_of(set != 0 ? sets[set] : std::vector<Prefix>{hull}, slot[i].all());
      for (const ranged::Span& span : spans[row]) code[i].ask(span);
    }
    code[i].close(slot[i].count);
    for (const auto& of_row : spans) {
      codes[i].emplace_back();
      for (const ranged::Span& span : of_row) {
        const std::vector<Prefix> prefixes = code[i].prefixes_of(span);
        codes[i].back().insert(codes[i].back().end(), prefixes.begin(), prefixes.end());
      }
    }
  }
  UnitRows coded(words);
  sets = {};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<Word> value(rows.hull.value[row], rows.hull.value[row] + words);
    std::vector<Word> mask(rows.hull.mask[row], rows.hull.mask[row] + words);
    PortIds ports{};
    for (std::size_t i = 0; i < kPortFields; ++i) {
      if (!as_range[i]) continue;
      const Prefix hull = leading(hull_of(codes[i][row]), slot[i].all());
      slot[i].set(hull.value, value.data());
      slot[i].set(hull.mask, mask.data());
      if (codes[i][row].size() > 1) ports[i] = sets.number(std::move(codes[i][row]));
    }
    coded.add(value.data(), mask.data(), ports, rows.unit[row]);
  }
  rows = std::move(coded);
}

Rows Units::coded(const Rows& packets) const {
  Rows result = packets;
  for (std::size_t packet = 0; packet < packets.size(); ++packet) {
    Word* const bits = result[packet];
    for (std::size_t i = 0; i < kPortFields; ++i) {
      if (as_range[i]) slot[i].set(code[i].code_of(slot[i].get(bits)), bits);
    }
  }
  return result;
}

bool Units::overlap(const UnitRows& rows_a, std::size_t a, const UnitRows& rows_b,
                    std::size_t b) const {
  const std::size_t words = rows_a.hull.words();
  if (!optimizer::overlap(rows_a.hull.value[a], rows_a.hull.mask[a], rows_b.hull.value[b],
                          rows_b.hull.mask[b], words)) {
    return false;
  }
  for (std::size_t i = 0; i < kPortFields; ++i) {
    const std::uint32_t id_a = rows_a.ports[a][i];
    const std::uint32_t id_b = rows_b.ports[b][i];
    if (id_a == 0 && id_b == 0) continue;
    if (id_a == id_b) continue;
    std::array<Prefix, kPortFields> lone;
    const auto prefixes = [&](const UnitRows& of, std::size_t row, std::uint32_t id, Prefix& hull) {
      if (id != 0) return std::span<const Prefix>(sets[id]);
      hull = {slot[i].get(of.hull.value[row]), slot[i].get(of.hull.mask[row])};
      return std::span<const Prefix>(&hull, 1);
    };
    bool some = false;
    for (const Prefix& p : prefixes(rows_a, a, id_a, lone[0])) {
      for (const Prefix& q : prefixes(rows_b, b, id_b, lone[1])) {
        some = some || ((p.value ^ q.value) & p.mask & q.mask) == 0;
      }
    }
    if (!some) return false;
  }
  return true;
}

bool Units::meets(const UnitRows& rows_a, std::size_t a, const Word* value,
                  const Word* mask) const {
  if (!optimizer::overlap(rows_a.hull.value[a], rows_a.hull.mask[a], value, mask,
                          rows_a.hull.words())) {
    return false;
  }
  for (std::size_t i = 0; i < kPortFields; ++i) {
    if (rows_a.ports[a][i] == 0) continue;
    const std::uint32_t bits = slot[i].get(value);
    const std::uint32_t fixed = slot[i].get(mask);
    const auto& set = sets[rows_a.ports[a][i]];
    if (std::none_of(set.begin(), set.end(),
                     [&](const Prefix& p) { return ((p.value ^ bits) & p.mask & fixed) == 0; })) {
      return false;
    }
  }
  return true;
}

void Units::add_within(UnitRows& out, const UnitRows& rows_a, std::size_t a, const Word* value,
                       const Word* mask) {
  const std::size_t words = rows_a.hull.words();
  Word* const open_value = out.hull.value.add();
  Word* const open_mask = out.hull.mask.add();
  for (std::size_t w = 0; w < words; ++w) {
    open_value[w] = rows_a.hull.value[a][w] & ~mask[w];
    open_mask[w] = rows_a.hull.mask[a][w] & ~mask[w];
  }
  PortIds ports = rows_a.ports[a];
  for (std::size_t i = 0; i < kPortFields; ++i) {
    const std::uint32_t fixed = slot[i].get(mask);
    // A code says which ports it stands for only from its first bit on.
    const std::uint32_t dropped = as_range[i] ? 0 : fixed;
    if (as_range[i] && slot[i].get(open_mask) != 0) {
      slot[i].set(slot[i].get(rows_a.hull.value[a]), open_value);
      slot[i].set(slot[i].get(rows_a.hull.mask[a]), open_mask);
    }
    if (ports[i] == 0 || fixed == 0) continue;
    std::vector<Prefix> inside;
    bool all = false;
    for (const Prefix& p : sets[ports[i]]) {
      if (((p.value ^ slot[i].get(value)) & p.mask & fixed) != 0) continue;
      all = all || (p.mask & ~fixed) == 0;
      inside.push_back({p.value & ~dropped, p.mask & ~dropped});
    }
    Prefix hull = all ? Prefix{0, 0} : hull_of(inside);
    if (as_range[i]) hull = leading(hull, slot[i].all());
    slot[i].set(hull.value, open_value);
    slot[i].set(hull.mask, open_mask);
    std::sort(inside.begin(), inside.end());
    ports[i] = all || inside.size() == 1 ? 0 : sets.number(std::move(inside));
  }
  out.ports.push_back(ports);
  out.unit.push_back(rows_a.unit[a]);
}

}  // namespace greynic::optimizer::chained
