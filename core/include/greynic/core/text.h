#pragma once

/// Text that came from outside: is it UTF-8, and what of it may a terminal see?

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace greynic {

/// Where the first byte stands that is not part of well-formed UTF-8 (RFC 3629: no overlong forms,
/// no surrogates, nothing beyond U+10FFFF); empty when all is well.
[[nodiscard]] std::optional<std::size_t> bad_utf8(std::string_view text);

/// How many bytes the first character of a text has; 0 when it does not begin with one.
[[nodiscard]] std::size_t character_bytes(std::string_view text);

/// The first character, or the first byte where no character begins; empty of no text.
[[nodiscard]] std::string_view first_character(std::string_view text);

/// The text with everything spelled out that steers a terminal or hides in it: control characters
/// but line breaks and tabs, and marks of writing direction, as \u001b; bytes that are no UTF-8 as
/// \xff. What is left of a JSON text is the same JSON text.
[[nodiscard]] std::string printable(std::string_view text);

/// At most `bytes` bytes of the text, cut between two characters, with "..." where it was cut.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t bytes);

}  // namespace greynic
