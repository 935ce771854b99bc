#include "greynic/core/flow_rule.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic {
namespace {

std::size_t mix(std::size_t seed, std::uint64_t value) {
  return seed ^ (value * 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

std::size_t mix(std::size_t seed, U128 value) {
  return mix(mix(seed, static_cast<std::uint64_t>(value)), static_cast<std::uint64_t>(value >> 64));
}

/// First entry whose field is not before `field`, in a vector kept in canonical order.
template <typename Entries, typename Key>
auto position(Entries& entries, MatchField field, Key key) {
  return std::lower_bound(
      entries.begin(), entries.end(), field,
      [&](const auto& entry, MatchField wanted) { return key(entry) < wanted; });
}

const auto kFieldOf = [](const auto& entry) { return entry.field; };
const auto kFirstOf = [](const auto& entry) { return entry.first; };

/// Calls visit(value, bits, other value, other bits) for each field in either match until it is
/// false.
template <typename Visit>
bool all_fields(const Match& a, const Match& b, Visit visit) {
  const auto& left = a.fields();
  const auto& right = b.fields();
  auto i = left.begin();
  auto j = right.begin();
  while (i != left.end() || j != right.end()) {
    const bool take_left = j == right.end() || (i != left.end() && i->field <= j->field);
    const bool take_right = i == left.end() || (j != right.end() && j->field <= i->field);
    const U128 zero = 0;
    if (!visit(take_left ? i->value : zero, take_left ? i->bits : zero,
               take_right ? j->value : zero, take_right ? j->bits : zero)) {
      return false;
    }
    if (take_left) ++i;
    if (take_right) ++j;
  }
  return true;
}

}  // namespace

void Mask::add(MatchField field, U128 bits) {
  if (bits == 0) return;
  const auto place = position(fields_, field, kFieldOf);
  if (place != fields_.end() && place->field == field) {
    place->bits |= bits;
  } else {
    fields_.insert(place, FieldMask{field, bits});
  }
}

void Mask::add_range(MatchField field) {
  const auto place = std::lower_bound(ranges_.begin(), ranges_.end(), field);
  if (place == ranges_.end() || *place != field) ranges_.insert(place, field);
}

U128 Mask::bits(MatchField field) const {
  const auto place = position(fields_, field, kFieldOf);
  return place != fields_.end() && place->field == field ? place->bits : U128{0};
}

bool Mask::covers(const Mask& other) const {
  const auto as_range = [&](MatchField field) {
    return std::binary_search(ranges_.begin(), ranges_.end(), field);
  };
  return std::all_of(other.fields_.begin(), other.fields_.end(),
                     [&](const FieldMask& entry) {
                       return (entry.bits & ~bits(entry.field)) == 0 || as_range(entry.field);
                     }) &&
         std::all_of(other.ranges_.begin(), other.ranges_.end(), [&](MatchField field) {
           return bits(field) == full_mask(field) || as_range(field);
         });
}

std::size_t Mask::hash() const {
  std::size_t seed = fields_.size();
  for (const MatchField field : ranges_) seed = mix(seed, static_cast<std::uint64_t>(field));
  for (const FieldMask& entry : fields_) {
    seed = mix(mix(seed, static_cast<std::uint64_t>(entry.field)), entry.bits);
  }
  return seed;
}

void Packet::set(MatchField field, U128 value) {
  const auto place = position(values_, field, kFirstOf);
  const bool there = place != values_.end() && place->first == field;
  if (value == 0) {
    if (there) values_.erase(place);
  } else if (there) {
    place->second = value;
  } else {
    values_.insert(place, {field, value});
  }
}

U128 Packet::value(MatchField field) const {
  const auto place = position(values_, field, kFirstOf);
  return place != values_.end() && place->first == field ? place->second : U128{0};
}

void Match::set(MatchField field, U128 value, U128 bits) {
  const auto place = position(fields_, field, kFieldOf);
  const bool there = place != fields_.end() && place->field == field;
  const FieldMatch entry{field, value & bits, bits};
  std::erase_if(ranges_, [&](const FieldRange& range) { return range.field == field; });
  if (bits == 0) {
    if (there) fields_.erase(place);
  } else if (there) {
    *place = entry;
  } else {
    fields_.insert(place, entry);
  }
}

void Match::set_range(MatchField field, U128 low, U128 high) {
  set(field, 0, 0);
  const auto place = position(ranges_, field, kFieldOf);
  const FieldRange entry{field, low, high};
  if (place != ranges_.end() && place->field == field) {
    *place = entry;
  } else {
    ranges_.insert(place, entry);
  }
}

Mask Match::mask() const {
  Mask mask;
  for (const FieldRange& range : ranges_) mask.add_range(range.field);
  for (const FieldMatch& entry : fields_) mask.add(entry.field, entry.bits);
  return mask;
}

bool Match::matches(const Packet& packet) const {
  const auto inside = [&](const FieldRange& range) {
    const U128 value = packet.value(range.field);
    return range.low <= value && value <= range.high;
  };
  if (!std::all_of(ranges_.begin(), ranges_.end(), inside)) return false;
  return std::all_of(fields_.begin(), fields_.end(), [&](const FieldMatch& entry) {
    return (packet.value(entry.field) & entry.bits) == entry.value;
  });
}

bool Match::overlaps(const Match& other) const {
  if (!ranges_.empty() || !other.ranges_.empty()) {
    const std::vector<Match> parts = without_ranges(*this);
    const std::vector<Match> others = without_ranges(other);
    return std::any_of(parts.begin(), parts.end(), [&](const Match& part) {
      return std::any_of(others.begin(), others.end(),
                         [&](const Match& theirs) { return part.overlaps(theirs); });
    });
  }
  return all_fields(*this, other, [](U128 value, U128 bits, U128 other_value, U128 other_bits) {
    return ((value ^ other_value) & bits & other_bits) == 0;
  });
}

bool Match::contains(const Match& other) const {
  if (!ranges_.empty() || !other.ranges_.empty()) {
    // Lowest prefixes of ranges: a match is a box, and contains another if it does side by side.
    const auto within = [&](MatchField field, U128 low, U128 high) {
      const auto range = position(ranges_, field, kFieldOf);
      return range == ranges_.end() || range->field != field ||
             (range->low <= low && high <= range->high);
    };
    Match bits_here;
    bits_here.fields_ = fields_;
    for (const FieldRange& range : ranges_) {
      const auto theirs = position(other.ranges_, range.field, kFieldOf);
      if (theirs != other.ranges_.end() && theirs->field == range.field) {
        if (!within(range.field, theirs->low, theirs->high)) return false;
        continue;
      }
      U128 low = 0;
      U128 open = full_mask(range.field);
      for (const FieldMatch& part : other.fields_) {
        if (part.field != range.field) continue;
        low = part.value;
        open &= ~part.bits;
      }
      if (!within(range.field, low, low | open)) return false;
    }
    const std::vector<Match> others = without_ranges(other);
    return std::all_of(others.begin(), others.end(),
                       [&](const Match& part) { return bits_here.contains(part); });
  }
  return all_fields(*this, other, [](U128 value, U128 bits, U128 other_value, U128 other_bits) {
    return (bits & ~other_bits) == 0 && ((value ^ other_value) & bits) == 0;
  });
}

std::size_t Match::hash() const {
  std::size_t seed = fields_.size();
  for (const FieldRange& range : ranges_) {
    seed = mix(mix(mix(seed, static_cast<std::uint64_t>(range.field)), range.low), range.high);
  }
  for (const FieldMatch& entry : fields_) {
    seed = mix(mix(mix(seed, static_cast<std::uint64_t>(entry.field)), entry.value), entry.bits);
  }
  return seed;
}

namespace {

/// "10.1.2.0/24" for a prefix of an address, "0x1/0xff" for any other part of a field.
std::string value_with_mask(MatchField field, U128 value, U128 bits) {
  std::string text = field_value_to_string(field, value);
  const U128 full = full_mask(field);
  if (bits == full) return text;
  const FieldFormat format = info(field).format;
  const U128 wild = full & ~bits;
  const bool prefix = (wild & (wild + 1)) == 0;
  if (prefix && (format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6)) {
    int length = 0;
    for (U128 rest = bits; rest != 0; rest &= rest - 1) ++length;
    return fmt::format("{}/{}", text, length);
  }
  return fmt::format("{}/{}", text, field_value_to_string(field, bits));
}

}  // namespace

std::string to_string(const Match& match) {
  std::string text;
  for (const FieldMatch& entry : match.fields()) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", info(entry.field).name,
                        value_with_mask(entry.field, entry.value, entry.bits));
  }
  for (const FieldRange& range : match.ranges()) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}..{}", info(range.field).name,
                        field_value_to_string(range.field, range.low),
                        field_value_to_string(range.field, range.high));
  }
  return text.empty() ? "any" : text;
}

std::string to_string(const Mask& mask) {
  std::string text;
  for (const FieldMask& entry : mask.fields()) {
    if (!text.empty()) text += ',';
    text += entry.bits == full_mask(entry.field)
                ? std::string(info(entry.field).name)
                : fmt::format("{}/{}", info(entry.field).name,
                              field_value_to_string(entry.field, entry.bits));
  }
  for (const MatchField field : mask.ranges()) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}/range", info(field).name);
  }
  return text.empty() ? "none" : text;
}

std::string to_string(const Packet& packet) {
  std::string text;
  for (const auto& [field, value] : packet.values()) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", info(field).name, field_value_to_string(field, value));
  }
  return text.empty() ? "all fields zero" : text;
}

std::string to_string(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      return "forward " + action.text;
    case ActionKind::kDrop:
      return "drop";
    case ActionKind::kJump:
      return fmt::format("jump {}", action.number);
    case ActionKind::kSetField:
      return fmt::format("set {}={}", info(action.field).name,
                         value_with_mask(action.field, action.value, action.bits));
    case ActionKind::kVxlanEncap:
      return action.text.empty() ? fmt::format("vxlan_encap {}", action.number)
                                 : fmt::format("vxlan_encap {} {}", action.number, action.text);
    case ActionKind::kVxlanDecap:
      return "vxlan_decap";
    case ActionKind::kPushVlan:
      return fmt::format("push_vlan {}", action.number);
    case ActionKind::kPopVlan:
      return "pop_vlan";
    case ActionKind::kCount:
      return "count";
    case ActionKind::kMeter:
      return fmt::format("meter {}", action.number);
    case ActionKind::kOther:
      return action.text;
  }
  return {};
}

}  // namespace greynic
