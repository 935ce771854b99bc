#include "src/space/packet_space.h"

namespace greynic::verify {

std::optional<PortSpan> span_of(const Match& match, MatchField port) {
  for (const FieldRange& range : match.ranges()) {
    if (range.field != port) continue;
    return PortSpan{static_cast<std::uint32_t>(range.low), static_cast<std::uint32_t>(range.high)};
  }
  for (const FieldMatch& part : match.fields()) {
    if (part.field != port) continue;
    const auto low = static_cast<std::uint32_t>(part.value);
    const auto open = kLastPort & ~static_cast<std::uint32_t>(part.bits);
    if ((open & (open + 1)) != 0) return std::nullopt;
    return PortSpan{low, low | open};
  }
  return PortSpan{};
}

bool asks_for_spans(const Match& match) {
  return span_of(match, MatchField::kL4SrcPort) && span_of(match, MatchField::kL4DstPort);
}

void PacketSpace::widen(const Match& match) {
  for (const FieldMatch& part : match.fields()) {
    looked_at_[static_cast<std::size_t>(part.field)] |= part.bits;
  }
  for (const FieldRange& range : match.ranges()) {
    for (const FieldMatch& part : prefixes_of(range)) {
      looked_at_[static_cast<std::size_t>(part.field)] |= part.bits;
    }
  }
  coded_ = coded_ && asks_for_spans(match);
  if (!coded_) return;
  for (Ports& ports : ports_) ports.code.look_at(*span_of(match, ports.field));
}

const PortCode* PacketSpace::code_of(MatchField field) const {
  for (const Ports& ports : ports_) {
    if (ports.field == field && coded_) return &ports.code;
  }
  return nullptr;
}

void PacketSpace::close() {
  for (Ports& ports : ports_) {
    if (coded_) ports.code.close();
  }
  for (std::size_t number = 0; number < kMatchFieldCount; ++number) {
    const auto field = static_cast<MatchField>(number);
    first_[number] = bits_.size();
    const PortCode* const code = code_of(field);
    // From the highest bit down: prefixes then occupy columns that lie together.
    for (unsigned shift = code != nullptr ? code->bits() : 128; shift-- > 0;) {
      if (code != nullptr || (looked_at_[number] >> shift & 1) != 0) {
        bits_.push_back({field, shift});
      }
    }
  }
  if (bits_.empty()) bits_.push_back({MatchField::kInPort, 0});  // only rules that match all
}

std::vector<CubeBits> PacketSpace::fields() const {
  std::vector<CubeBits> result;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    if (i == 0 || bits_[i].field != bits_[i - 1].field) result.emplace_back(words(), 0);
    result.back()[i / 64] |= std::uint64_t{1} << i % 64;
  }
  return result;
}

Cube PacketSpace::whole() const { return {CubeBits(words(), 0), CubeBits(words(), 0)}; }

void PacketSpace::narrow(const FieldMatch& part, Cube& cube) const {
  for (std::size_t i = first_[static_cast<std::size_t>(part.field)];
       i < bits_.size() && bits_[i].field == part.field; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i % 64;
    if ((part.bits >> bits_[i].shift & 1) == 0) continue;
    cube.fixed[i / 64] |= bit;
    if ((part.value >> bits_[i].shift & 1) != 0) cube.value[i / 64] |= bit;
  }
}

std::vector<Cube> PacketSpace::cubes(const Match& match) const {
  std::vector<std::vector<FieldMatch>> choices;  // one of each
  for (const FieldMatch& part : match.fields()) {
    if (code_of(part.field) == nullptr) choices.push_back({part});
  }
  for (const FieldRange& range : match.ranges()) {
    if (code_of(range.field) == nullptr) choices.push_back(prefixes_of(range));
  }
  for (const Ports& ports : ports_) {
    if (!coded_) break;
    const auto span = span_of(match, ports.field);
    choices.emplace_back();
    for (const PortCode::Prefix& prefix : ports.code.prefixes_of(*span)) {
      choices.back().push_back({ports.field, prefix.value, prefix.fixed});
    }
  }
  std::size_t count = 1;
  for (const auto& parts : choices) count *= parts.size();
  std::vector<Cube> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(whole());
    std::size_t rest = i;
    for (const auto& parts : choices) {
      narrow(parts[rest % parts.size()], result.back());
      rest /= parts.size();
    }
  }
  return result;
}

Packet PacketSpace::member(const Cube& cube) const {
  Packet packet;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    if ((cube.value[i / 64] >> i % 64 & 1) == 0) continue;
    packet.set(bits_[i].field, packet.value(bits_[i].field) | U128{1} << bits_[i].shift);
  }
  for (const Ports& ports : ports_) {
    if (!coded_) break;
    const auto code = static_cast<std::uint32_t>(packet.value(ports.field));
    packet.set(ports.field, ports.code.port_of(code));
  }
  return packet;
}

}  // namespace greynic::verify
