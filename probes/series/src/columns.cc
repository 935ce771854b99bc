#include "greynic/series/columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace greynic::series {
namespace {

enum class Way : std::uint8_t { kStill = 0, kIntegers = 1, kXor = 2, kDecimals = 3 };
constexpr std::size_t kBlock = 128;
constexpr unsigned kEscape = 24;   // as many ones, and then 64 bits as they are
constexpr unsigned kAllZero = 63;  // in place of a parameter
constexpr std::array<double, 7> kPowers = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};

tl::unexpected<Error> bad() { return fail(ErrorCode::kBadInput, "a column is damaged"); }

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}
  void put(std::uint64_t bits, unsigned count) {  // at most 57
    held_ |= bits << used_;
    used_ += count;
    if (used_ >= 8) {
      char bytes[8];
      std::memcpy(bytes, &held_, sizeof bytes);
      const unsigned whole = used_ / 8;
      out_.append(bytes, whole);
      held_ = whole == 8 ? 0 : held_ >> (whole * 8);
      used_ -= whole * 8;
    }
  }
  void put_word(std::uint64_t word) {
    put(word & 0xffffffff, 32);
    put(word >> 32, 32);
  }
  void end() {
    if (used_ > 0) out_.push_back(static_cast<char>(held_));
    held_ = used_ = 0;
  }

 private:
  std::string& out_;
  std::uint64_t held_ = 0;
  unsigned used_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view in) : in_(in) {}
  /// At most 57 bits. Behind the end come zeros, and lost() says so.
  std::uint64_t get(unsigned count) {
    while (used_ < count) {
      const std::uint64_t byte = at_ < in_.size() ? static_cast<unsigned char>(in_[at_]) : 0;
      ++at_;
      held_ |= byte << used_;
      used_ += 8;
    }
    const std::uint64_t bits = count == 0 ? 0 : held_ & (~std::uint64_t{0} >> (64 - count));
    held_ >>= count;
    used_ -= count;
    return bits;
  }
  std::uint64_t get_word() {
    const std::uint64_t low = get(32);
    return low | get(32) << 32;
  }
  bool lost() const { return at_ > in_.size(); }
  std::size_t bytes() const { return at_; }

 private:
  std::string_view in_;
  std::size_t at_ = 0;
  std::uint64_t held_ = 0;
  unsigned used_ = 0;
};

std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> 63);
}
std::uint64_t unzigzag(std::uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

std::uint64_t cost_of(std::span<const std::uint64_t> values, unsigned k) {
  std::uint64_t bits = 0;
  for (const std::uint64_t value : values) {
    const std::uint64_t high = value >> k;
    bits += high < kEscape ? high + 1 + k : kEscape + 64;
  }
  return bits;
}

/// The parameter that needs fewest bits, found near that of the mean.
std::pair<unsigned, std::uint64_t> choose(std::span<const std::uint64_t> values) {
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  if (sum == 0) return {kAllZero, 0};
  const double mean = sum / static_cast<double>(values.size());
  const int about = std::clamp(static_cast<int>(std::log2(mean * 0.7 + 1)), 0, 54);
  std::pair<unsigned, std::uint64_t> best{0, std::numeric_limits<std::uint64_t>::max()};
  for (int k = std::max(0, about - 1); k <= about + 1; ++k) {
    const std::uint64_t cost = cost_of(values, static_cast<unsigned>(k));
    if (cost < best.second) best = {static_cast<unsigned>(k), cost};
  }
  return best;
}

void put_integers(std::span<const std::uint64_t> values, std::string& out) {
  BitWriter bits(out);
  std::uint64_t before = 0;
  std::uint64_t step = 0;
  std::array<std::uint64_t, kBlock> first{}, second{};
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint64_t difference = block[i] - before;
      first[i] = zigzag(difference);
      second[i] = zigzag(difference - step);
      before = block[i];
      step = difference;
    }
    const auto by_first = choose(std::span(first).first(block.size()));
    const auto by_second = choose(std::span(second).first(block.size()));
    const bool twice = by_second.second < by_first.second;
    const unsigned k = twice ? by_second.first : by_first.first;
    bits.put(twice ? 1 : 0, 1);
    bits.put(k, 6);
    if (k == kAllZero) continue;
    const auto& chosen = twice ? second : first;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint64_t high = chosen[i] >> k;
      if (high < kEscape) {
        bits.put((std::uint64_t{1} << high) - 1, static_cast<unsigned>(high) + 1);
        bits.put(chosen[i] & ((std::uint64_t{1} << k) - 1), k);
      } else {
        bits.put((std::uint64_t{1} << kEscape) - 1, kEscape);
        bits.put_word(chosen[i]);
      }
    }
  }
  bits.end();
}

bool get_integers(BitReader& bits, std::span<std::uint64_t> values) {
  std::uint64_t before = 0;
  std::uint64_t step = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const bool twice = bits.get(1) != 0;
    const auto k = static_cast<unsigned>(bits.get(6));
    if (k > 56 && k != kAllZero) return false;
    for (std::uint64_t& value : block) {
      std::uint64_t code = 0;
      if (k != kAllZero) {
        unsigned high = 0;
        while (high < kEscape && bits.get(1) != 0) ++high;
        code = high == kEscape ? bits.get_word() : std::uint64_t{high} << k | bits.get(k);
      }
      const std::uint64_t difference = unzigzag(code) + (twice ? step : 0);
      value = before += difference;
      step = difference;
    }
    if (bits.lost()) return false;
  }
  return true;
}

void put_xor(std::span<const std::uint64_t> values, std::string& out) {
  BitWriter bits(out);
  std::uint64_t before = 0;
  unsigned lead = 64, trail = 64;
  for (const std::uint64_t value : values) {
    const std::uint64_t change = value ^ before;
    before = value;
    if (change == 0) {
      bits.put(0, 1);
      continue;
    }
    const unsigned new_lead = std::min(31U, static_cast<unsigned>(std::countl_zero(change)));
    const unsigned new_trail = static_cast<unsigned>(std::countr_zero(change));
    const bool fits = lead + trail < 64 && new_lead >= lead && new_trail >= trail;
    bits.put(fits ? 1 : 3, 2);
    if (!fits) {
      lead = new_lead;
      trail = new_trail;
      bits.put(lead, 5);
      bits.put(63 - lead - trail, 6);
    }
    const unsigned width = 64 - lead - trail;
    const std::uint64_t window = change >> trail;
    bits.put(window & 0xffffffff, std::min(width, 32U));
    if (width > 32) bits.put(window >> 32, width - 32);
  }
  bits.end();
}

bool get_xor(BitReader& bits, std::span<std::uint64_t> values) {
  std::uint64_t before = 0;
  unsigned lead = 64, trail = 0, width = 0;
  for (std::uint64_t& value : values) {
    if (bits.get(1) != 0) {
      if (bits.get(1) != 0) {
        lead = static_cast<unsigned>(bits.get(5));
        width = static_cast<unsigned>(bits.get(6)) + 1;
        if (lead + width > 64) return false;
        trail = 64 - lead - width;
      }
      if (width == 0) return false;
      std::uint64_t window = bits.get(std::min(width, 32U));
      if (width > 32) window |= bits.get(width - 32) << 32;
      before ^= window << trail;
    }
    value = before;
    if (bits.lost()) return false;
  }
  return true;
}

/// The power of ten that makes integers of all values, exactly; -1: none. `integers` are they.
int decimals_of(std::span<const std::uint64_t> values, std::vector<std::uint64_t>& integers) {
  constexpr double kMost = 9e15;
  std::size_t power = 0;
  integers.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = std::bit_cast<double>(values[i]);
    const double scaled = std::nearbyint(value * kPowers[power]);
    if (!(std::abs(scaled) < kMost)) return -1;
    if (std::bit_cast<std::uint64_t>(scaled / kPowers[power]) != values[i]) {
      // Minus zero is no integer; other values may want more digits, all of them from the start.
      if (++power == kPowers.size() || values[i] == std::bit_cast<std::uint64_t>(-0.0)) return -1;
      i = static_cast<std::size_t>(-1);
      continue;
    }
    integers[i] = static_cast<std::uint64_t>(static_cast<std::int64_t>(scaled));
  }
  return static_cast<int>(power);
}

}  // namespace

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

Result<std::uint64_t> get_number(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return bad();
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

Result<std::string> get_text(std::string_view& in, std::size_t most) {
  const auto bytes = get_number(in);
  if (!bytes) return pass_on(bytes);
  if (*bytes > in.size() || *bytes > most) return bad();
  std::string text(in.substr(0, *bytes));
  in.remove_prefix(*bytes);
  return text;
}

void pack(std::span<const std::uint64_t> values, bool floating, std::string& out) {
  const bool still =
      std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (still) {
    out.push_back(static_cast<char>(Way::kStill));
    put_number(out, values.empty() ? 0 : std::rotl(values[0], 8));  // small, and round doubles
    return;
  }
  std::string bits;
  std::vector<std::uint64_t> integers;
  const int power = floating ? decimals_of(values, integers) : -1;
  if (!floating) {
    out.push_back(static_cast<char>(Way::kIntegers));
    put_integers(values, bits);
  } else if (power >= 0) {
    out.push_back(static_cast<char>(Way::kDecimals));
    out.push_back(static_cast<char>(power));
    put_integers(integers, bits);
  } else {
    out.push_back(static_cast<char>(Way::kXor));
    put_xor(values, bits);
  }
  put_text(out, bits);
}

Result<std::vector<std::uint64_t>> unpack(std::string_view& in, std::size_t count) {
  if (in.empty()) return bad();
  const auto way = static_cast<Way>(in.front());
  in.remove_prefix(1);
  if (way == Way::kStill) {
    const auto value = get_number(in);
    if (!value) return pass_on(value);
    return std::vector<std::uint64_t>(count, std::rotr(*value, 8));
  }
  std::size_t power = 0;
  if (way == Way::kDecimals) {
    if (in.empty()) return bad();
    power = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
  }
  const auto bytes = get_number(in);
  if (!bytes) return pass_on(bytes);
  // A block of zeros takes 7 bits, so no count is far beyond what the bytes can hold.
  if (*bytes > in.size() || power >= kPowers.size() || count > (*bytes + 1) * 8 * kBlock) {
    return bad();
  }
  BitReader bits(in.substr(0, *bytes));
  in.remove_prefix(*bytes);
  std::vector<std::uint64_t> values(count);
  if (way == Way::kXor) {
    if (!get_xor(bits, values)) return bad();
  } else if (way == Way::kIntegers || way == Way::kDecimals) {
    if (!get_integers(bits, values)) return bad();
  } else {
    return bad();
  }
  if (way == Way::kDecimals) {
    for (std::uint64_t& value : values) {
      value = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(value)) /
                                           kPowers[power]);
    }
  }
  return values;
}

}  // namespace greynic::series
