/// ClassBench filters, one a line:
///   @200.21.219.98/32  61.10.60.149/32  0 : 65535  1733 : 1733  0x06/0xFF  0x1000/0x1000
/// Source and destination prefix, source and destination port range, protocol, TCP flags (some
/// generators leave the flags out; of ICMP they are type and code). The first line has the highest
/// priority.

#include <fmt/core.h>

#include <optional>
#include <variant>

#include "field_value.h"
#include "line_text.h"
#include "readers.h"

namespace greynic::rules {
namespace {

constexpr std::uint64_t kIcmp = 1;

struct PortRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

/// A line's fields, read from the left; the first complaint is kept.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  [[nodiscard]] const Complaint& complaint() const { return complaint_; }
  [[nodiscard]] bool failed() const { return !complaint_.empty(); }

  Masked prefix(MatchField field, std::string_view what) {
    const std::string_view word = next_word();
    const std::size_t slash = word.find('/');
    const auto address = field_value_from_string(field, word.substr(0, slash));
    // Without a slash there is no length; 33 says so and is refused below.
    const auto length =
        number_from(slash == std::string_view::npos ? "33" : word.substr(slash + 1)).value_or(33);
    if (!address || length > 32 || word.find('.') == std::string_view::npos) {
      return complain(
          fmt::format("the {} prefix must read like 10.1.2.0/24, not '{}'", what, shown(word)));
    }
    const U128 bits = prefix_bits(field, static_cast<unsigned>(length));
    return {*address & bits, bits};
  }

  PortRange ports(std::string_view what) {
    const std::string_view low = next_word();
    const std::string_view colon = next_word();
    const std::string_view high = next_word();
    const auto first = number_from(low);
    const auto last = number_from(high);
    if (!first || !last || colon != ":" || *first > *last || *last > 65535) {
      complain(
          fmt::format("the {} ports must read like 1024 : 65535, from low to high, not '{} {} {}'",
                      what, shown(low), shown(colon), shown(high)));
      return {};
    }
    return {static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)};
  }

  Masked masked(std::uint64_t most, std::string_view what, std::string_view example) {
    const std::string_view word = next_word();
    const std::size_t slash = word.find('/');
    const auto value = number_from(word.substr(0, slash));
    const auto bits =
        number_from(slash == std::string_view::npos ? std::string_view() : word.substr(slash + 1));
    if (!value || !bits || *value > most || *bits > most) {
      return complain(
          fmt::format("the {} must read like {}, not '{}'", what, example, shown(word)));
    }
    return {*value & *bits, *bits};
  }

  [[nodiscard]] bool at_end() { return trimmed(rest_).empty(); }
  [[nodiscard]] std::string_view rest() const { return trimmed(rest_); }

 private:
  std::string_view next_word() {
    rest_ = trimmed(rest_);
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(word.size());
    return word;
  }

  Masked complain(Complaint complaint) {
    if (complaint_.empty()) complaint_ = std::move(complaint);
    return {};
  }

  std::string_view rest_;
  Complaint complaint_;
};

/// ClassBench writes the flag byte of the TCP header in its high byte (ACK is 0x1000, SYN 0x0200),
/// the header's reserved bits in the low one.
Masked swap_bytes(const Masked& flags) {
  const auto swapped = [](U128 bits) { return (bits >> 8 | bits << 8) & 0xffff; };
  return {swapped(flags.value), swapped(flags.bits)};
}

}  // namespace

Result<RuleSet> parse_classbench(std::string_view text, const std::string& source) {
  RuleSet set{{}, source};
  const auto lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    std::string_view line = trimmed(lines[index]);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '@') line.remove_prefix(1);
    LineReader reader(line);
    const Masked src = reader.prefix(MatchField::kIpv4Src, "source");
    const Masked dst = reader.prefix(MatchField::kIpv4Dst, "destination");
    const PortRange src_ports = reader.ports("source");
    const PortRange dst_ports = reader.ports("destination");
    const Masked protocol = reader.masked(0xff, "protocol", "0x06/0xFF");
    Masked flags;
    if (!reader.failed() && !reader.at_end()) {
      flags = swap_bytes(reader.masked(0xffff, "TCP flags", "0x1000/0x1000"));
    }
    if (!reader.failed() && !reader.at_end()) {
      return bad_line(source, index,
                      fmt::format("'{}' stands after the last field", shown(reader.rest())));
    }
    if (reader.failed()) return bad_line(source, index, reader.complaint());

    FlowRule rule;
    const auto line_number = static_cast<std::uint32_t>(index);
    rule.priority = line_number;
    rule.from = {line_number};
    rule.actions = {mark_line(line_number)};
    rule.match.set(MatchField::kIpv4Src, src.value, src.bits);
    rule.match.set(MatchField::kIpv4Dst, dst.value, dst.bits);
    rule.match.set(MatchField::kIpProtocol, protocol.value, protocol.bits);
    if (protocol.value == kIcmp && protocol.bits == 0xff) {
      // Of an ICMP filter the two bytes are type and code; swapped, the type is the lower one.
      rule.match.set(MatchField::kIcmpType, flags.value & 0xff, flags.bits & 0xff);
      rule.match.set(MatchField::kIcmpCode, flags.value >> 8, flags.bits >> 8);
    } else if (flags.bits > full_mask(MatchField::kTcpFlags)) {
      return bad_line(source, index, "the TCP flags look at the data offset, which is no flag");
    } else {
      rule.match.set(MatchField::kTcpFlags, flags.value, flags.bits);
    }
    const auto src_prefixes = prefixes_of_range(src_ports.low, src_ports.high, 16);
    const auto dst_prefixes = prefixes_of_range(dst_ports.low, dst_ports.high, 16);
    if (auto room = room_for(set, src_prefixes.size() * dst_prefixes.size(),
                             fmt::format("line {}", index + 1));
        !room) {
      return pass_on(room);
    }
    for (const Masked& from : src_prefixes) {
      rule.match.set(MatchField::kL4SrcPort, from.value, from.bits);
      for (const Masked& to : dst_prefixes) {
        rule.match.set(MatchField::kL4DstPort, to.value, to.bits);
        set.rules.push_back(rule);
      }
    }
  }
  if (set.rules.empty()) {
    return fail(ErrorCode::kBadInput, source + ": holds no ClassBench filter");
  }
  return set;
}

}  // namespace greynic::rules
