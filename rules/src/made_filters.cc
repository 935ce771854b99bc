#include "greynic/rules/made_filters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <unordered_set>
#include <vector>

namespace greynic::rules {
namespace {

constexpr std::uint64_t kMostFilters = 1'000'000;
constexpr unsigned kWildProtocol = 256;

/// How often, of 100: each list ends with what is left.
struct Share {
  unsigned value;
  unsigned of_hundred;
};

enum PortForm : unsigned { kAny, kExact, kHigh, kLow, kSomeRange };

struct Family {
  std::string_view name;
  std::array<Share, 6> source_length;
  std::array<Share, 6> destination_length;
  std::array<Share, 5> source_ports;
  std::array<Share, 5> destination_ports;
  std::array<Share, 4> protocol;
};
constexpr std::array kFamilies = {
    Family{"acl",
           {{{0, 8}, {16, 8}, {22, 12}, {24, 22}, {28, 15}, {32, 35}}},
           {{{0, 2}, {16, 4}, {24, 20}, {27, 12}, {30, 12}, {32, 50}}},
           {{{kAny, 97}, {kExact, 2}, {kHigh, 1}, {kLow, 0}, {kSomeRange, 0}}},
           {{{kAny, 28}, {kExact, 58}, {kHigh, 4}, {kLow, 1}, {kSomeRange, 9}}},
           {{{6, 68}, {17, 16}, {1, 4}, {kWildProtocol, 12}}}},
    Family{"fw",
           {{{0, 38}, {8, 4}, {16, 12}, {24, 18}, {28, 6}, {32, 22}}},
           {{{0, 32}, {8, 4}, {16, 14}, {24, 20}, {28, 6}, {32, 24}}},
           {{{kAny, 58}, {kExact, 18}, {kHigh, 18}, {kLow, 4}, {kSomeRange, 2}}},
           {{{kAny, 36}, {kExact, 38}, {kHigh, 16}, {kLow, 5}, {kSomeRange, 5}}},
           {{{6, 52}, {17, 25}, {1, 5}, {kWildProtocol, 18}}}},
    Family{"ipc",
           {{{0, 14}, {8, 3}, {16, 13}, {24, 25}, {29, 10}, {32, 35}}},
           {{{0, 12}, {8, 3}, {16, 12}, {24, 25}, {29, 12}, {32, 36}}},
           {{{kAny, 80}, {kExact, 14}, {kHigh, 4}, {kLow, 1}, {kSomeRange, 1}}},
           {{{kAny, 45}, {kExact, 42}, {kHigh, 6}, {kLow, 2}, {kSomeRange, 5}}},
           {{{6, 55}, {17, 25}, {1, 4}, {kWildProtocol, 16}}}}};

struct Ports {
  unsigned low = 0;
  unsigned high = 65535;
};

/// All that is drawn: standard distributions differ between libraries, so none is used.
class FilterMaker {
 public:
  FilterMaker(const Family& family, std::uint64_t count, std::uint64_t seed)
      : family_(family), seed_(seed), random_(seed * 0x9e3779b97f4a7c15ULL + count) {
    // As many networks at each level as give room for the filters, and still share their prefixes.
    while (children_ < 200 && children_ * children_ * 4 < count) ++children_;
  }

  struct Line {
    unsigned bits = 0;  ///< how many it looks at
    std::string text;
  };

  Line line() {
    const unsigned source = drawn(family_.source_length);
    const unsigned destination = drawn(family_.destination_length);
    const unsigned protocol = drawn(family_.protocol);
    const bool has_ports = protocol == 6 || protocol == 17;
    const Ports from = has_ports ? ports(family_.source_ports) : Ports{};
    const Ports to = has_ports ? ports(family_.destination_ports) : Ports{};
    const bool wild = protocol == kWildProtocol;
    const std::string from_net = prefix(source, 1);
    const std::string to_net = prefix(destination, 2);
    return {source + destination + bits_of(from) + bits_of(to) + (wild ? 0 : 8),
            fmt::format("@{}\t{}\t{} : {}\t{} : {}\t0x{:02X}/0x{:02X}\t0x0000/0x0000\n", from_net,
                        to_net, from.low, from.high, to.low, to.high, wild ? 0 : protocol,
                        wild ? 0 : 0xff)};
  }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  template <std::size_t kCount>
  unsigned drawn(const std::array<Share, kCount>& shares) {
    auto left = static_cast<unsigned>(below(100));
    for (const Share& share : shares) {
      if (left < share.of_hundred) return share.value;
      left -= share.of_hundred;
    }
    return shares.back().value;
  }

  /// A network of the tree: at each of four levels one of few children, the first ones more often.
  std::string prefix(unsigned length, std::uint64_t tree) {
    std::uint64_t path = seed_ * 1'000'003 + tree;
    std::uint32_t address = 0;
    for (int level = 0; level < 4; ++level) {
      const std::uint64_t child = std::min(below(children_), below(children_));
      path = (path ^ (child + 1)) * 0xd6e8feb86659fd93ULL;
      path ^= path >> 32;
      address = address << 8 | static_cast<std::uint32_t>(path & 0xff);
    }
    const std::uint32_t mask = length == 0 ? 0 : ~std::uint32_t{0} << (32 - length);
    address &= mask;
    return fmt::format("{}.{}.{}.{}/{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
                       address & 0xff, length);
  }

  Ports ports(const std::array<Share, 5>& shares) {
    constexpr std::array kServices = {80,  443, 53,  22,   25,   21,   123,  161,  110, 143,
                                      389, 445, 514, 1433, 1521, 3306, 3389, 5060, 8080};
    switch (drawn(shares)) {
      case kExact: {
        const unsigned port = below(4) == 0
                                  ? static_cast<unsigned>(1024 + below(64'512))
                                  : static_cast<unsigned>(kServices[below(kServices.size())]);
        return {port, port};
      }
      case kHigh:
        return {1024, 65535};
      case kLow:
        return {0, 1023};
      case kSomeRange: {
        const auto low = static_cast<unsigned>(1024 + below(30'000));
        return {low, low + 1 + static_cast<unsigned>(below(64))};
      }
      default:
        return {};
    }
  }

  static unsigned bits_of(const Ports& ports) {
    unsigned bits = 16;
    for (unsigned width = ports.high - ports.low; width > 0; width >>= 1) --bits;
    return bits;
  }

  const Family& family_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
  std::uint64_t children_ = 6;
};

Result<std::uint64_t> number_in(std::string_view text, std::string_view whole) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: '{}' is no number; write made:FAMILY:COUNT:SEED", whole, text));
  }
  return number;
}

}  // namespace

Result<std::optional<MadeFilters>> made_filters_named(std::string_view text) {
  constexpr std::string_view kBegin = "made:";
  if (!text.starts_with(kBegin)) return std::optional<MadeFilters>();
  std::string_view rest = text.substr(kBegin.size());
  MadeFilters wanted;
  wanted.family = rest.substr(0, rest.find(':'));
  for (std::uint64_t* const into : {&wanted.count, &wanted.seed}) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return std::optional(wanted);
    rest.remove_prefix(colon + 1);
    // What stands behind the seed is left in its text, and is no number.
    const auto number =
        number_in(into == &wanted.seed ? rest : rest.substr(0, rest.find(':')), text);
    if (!number) return pass_on(number);
    *into = *number;
  }
  return std::optional(wanted);
}

Result<std::string> made_filters(const MadeFilters& wanted) {
  const auto* const family =
      std::find_if(kFamilies.begin(), kFamilies.end(),
                   [&](const Family& row) { return row.name == wanted.family; });
  if (family == kFamilies.end()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("there is no family '{}' of made filters: there are acl, fw and ipc",
                            wanted.family));
  }
  if (wanted.count < 1 || wanted.count > kMostFilters) {
    return fail(ErrorCode::kBadInput, fmt::format("{} filters cannot be made: ask for 1 to {}",
                                                  wanted.count, kMostFilters));
  }
  FilterMaker maker(*family, wanted.count, wanted.seed);
  struct Placed {
    std::uint64_t key;
    std::string text;
  };
  std::vector<Placed> lines;
  std::unordered_set<std::string> seen;
  while (lines.size() < wanted.count) {
    FilterMaker::Line line = maker.line();
    if (!seen.insert(line.text).second) continue;
    // Narrow filters first, with so much disorder that masks mix as they do in real sets.
    lines.push_back({maker.below(48) + 120 - line.bits, std::move(line.text)});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Placed& a, const Placed& b) { return a.key < b.key; });
  std::string text;
  for (const Placed& line : lines) text += line.text;
  return text;
}

}  // namespace greynic::rules
