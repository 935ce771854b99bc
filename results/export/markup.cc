#include "greynic/results/markup.h"

#include <algorithm>

#include "greynic/core/text.h"

namespace greynic::results {
namespace {

/// XML 1.0 has no place, not even an escaped one, for control characters, U+FFFE and U+FFFF.
bool is_forbidden(std::string_view character) {
  const auto c = static_cast<unsigned char>(character.front());
  return character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf" || c == 0x7f ||
         (c < 0x20 && c != '\t' && c != '\n');
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  for (std::size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    bytes = character_bytes(text.substr(at));
    const std::string_view character = text.substr(at, bytes);
    if (bytes == 0 || is_forbidden(character)) {
      bytes = std::max<std::size_t>(bytes, 1);
      out += '?';
      continue;
    }
    switch (text[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += character;
    }
  }
  return out;
}

}  // namespace greynic::results
