#include "core/wire.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace greynic::broker {
namespace {

constexpr std::uint8_t kControlMagic = 0xB7, kLaneMagic = 0xB8;

/// Writes or reads fields one after the other; all hosts that we run on are little-endian.
template <typename Byte>
struct Cursor {
  Byte* at;
  template <typename T>
  void put(const T& value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  template <typename T>
  void get(T& value) {
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
  }
};

bool wraps(const Control::Range& range) {
  return range.bytes > std::numeric_limits<std::uint64_t>::max() - range.address;
}

}  // namespace

void encode(const Control& control, std::span<std::byte, kControlBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  Cursor<std::byte> to{out.data()};
  to.put(kControlMagic);
  to.put(control.kind);
  to.put(control.port);
  to.put(control.to);
  to.put(control.from);
  to.put(control.ring.key);
  to.put(control.exposed.key);
  to.put(static_cast<std::uint32_t>(control.transport));
  to.put(control.value);
  to.put(control.ring.address);
  to.put(control.ring.bytes);
  to.put(control.exposed.address);
  to.put(control.exposed.bytes);
}

std::optional<Control> decode(std::span<const std::byte> record) {
  if (record.size() != kControlBytes) return std::nullopt;
  Cursor<const std::byte> from{record.data()};
  std::uint8_t magic = 0;
  std::uint32_t transport = 0;
  Control control;
  from.get(magic);
  from.get(control.kind);
  from.get(control.port);
  from.get(control.to);
  from.get(control.from);
  from.get(control.ring.key);
  from.get(control.exposed.key);
  from.get(transport);
  from.get(control.value);
  from.get(control.ring.address);
  from.get(control.ring.bytes);
  from.get(control.exposed.address);
  from.get(control.exposed.bytes);
  const bool known = control.kind >= Control::Kind::kOpen && control.kind <= Control::Kind::kCredit;
  const std::uint32_t most = static_cast<std::uint32_t>(
      control.kind == Control::Kind::kOpen ? Transport::kUD : Transport::kRC);
  if (magic != kControlMagic || !known || transport > most) return std::nullopt;
  control.transport = static_cast<Transport>(transport);
  if (wraps(control.ring) || wraps(control.exposed)) return std::nullopt;
  return control;
}

std::vector<std::byte> encode(const LaneCall& call) {
  std::vector<std::byte> out(kLaneCallBytes);
  Cursor<std::byte> to{out.data()};
  to.put(kLaneMagic);
  to.put(call.kind);
  to.put(call.lane);
  to.put(call.lane_count);
  to.put(std::uint16_t{0});
  to.put(call.epoch);
  to.put(call.credits);
  to.put(call.received);
  to.put(call.address);
  return out;
}

std::optional<LaneCall> decode_lane_call(std::span<const std::byte> bytes) {
  if (bytes.size() != kLaneCallBytes) return std::nullopt;
  Cursor<const std::byte> from{bytes.data()};
  std::uint8_t magic = 0;
  std::uint16_t nothing = 0;
  LaneCall call;
  from.get(magic);
  from.get(call.kind);
  from.get(call.lane);
  from.get(call.lane_count);
  from.get(nothing);
  from.get(call.epoch);
  from.get(call.credits);
  from.get(call.received);
  from.get(call.address);
  const bool known = call.kind == LaneCall::Kind::kDown || call.kind == LaneCall::Kind::kReady;
  if (magic != kLaneMagic || !known || call.lane >= call.lane_count) return std::nullopt;
  return call;
}

}  // namespace greynic::broker
