#include "greynic/zero/table.h"

namespace greynic::zero {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Bytes of the UTF-8 character at the front; 0: it is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
  if (bytes == 1) return 1;
  if (text.size() < bytes || (bytes == 4 && first >> 3 != 30)) return 0;
  std::uint32_t code = first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  if (code < 0xa0) return 0;                       // C1 controls steer terminals too
  if (code >= 0x2028 && code <= 0x202e) return 0;  // separators and overrides of direction
  if (code >= 0x2066 && code <= 0x2069) return 0;
  return bytes;
}

}  // namespace

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0 || (bytes == 1 && (text[0] < 0x20 || text[0] == 0x7f))) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool is_metric_name(std::string_view text) {
  if (text.empty() || text.size() > ZERO_MOST_NAME_BYTES || is_digit(text[0]) || text[0] == '.') {
    return false;
  }
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c) && c != ':' && c != '.') return false;
  }
  return true;
}

bool is_label_list(std::string_view text) {
  if (!is_plain_text(text)) return false;
  std::size_t at = 0;
  const auto now = [&] { return at < text.size() ? text[at] : '\0'; };
  while (at < text.size()) {
    if (!is_letter(now())) return false;
    while (is_letter(now()) || is_digit(now())) ++at;
    if (now() != '=') return false;
    ++at;
    if (now() != '"') return false;
    for (++at; now() != '"'; ++at) {
      if (at >= text.size()) return false;
      if (now() != '\\') continue;
      ++at;
      if (now() != '\\' && now() != '"' && now() != 'n') return false;
    }
    ++at;
    if (at == text.size()) return true;
    if (now() != ',' || at + 1 == text.size()) return false;
    ++at;
  }
  return true;
}

}  // namespace greynic::zero
