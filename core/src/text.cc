#include "greynic/core/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace greynic {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with a character
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {code, bytes};
}

bool is_harmless(std::uint32_t code) {
  if (code < 0x20) return code == '\n' || code == '\t';
  if (code >= 0x7f && code < 0xa0) return false;
  // Marks and overrides of writing direction show other text than is there.
  return !(code >= 0x200e && code <= 0x200f) && !(code >= 0x202a && code <= 0x202e) &&
         !(code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::optional<std::size_t> bad_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Character next = first_of(text.substr(at));
    if (next.bytes == 0) return at;
    at += next.bytes;
  }
  return std::nullopt;
}

std::size_t character_bytes(std::string_view text) {
  return text.empty() ? 0 : first_of(text).bytes;
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(character_bytes(text), 1));
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_harmless(next.code)) {
      out += text.substr(0, next.bytes);
    } else {
      out += fmt::format("\\u{:04x}", next.code);
    }
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes)) + "...";
}

}  // namespace greynic
