#pragma once

/// Tokens of the constraint language.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::language {

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,
  kQuotedName,
  kNumber,
  kText,
  kAnd,
  kOr,
  kNot,
  kImplies,
  kIff,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kPlus,
  kMinus,
  kTimes,
  kDivide,
  kOpen,
  kClose,
  kOpenSet,
  kCloseSet,
  kComma,
  kRange,
  kIf,
  kThen,
  kElse,
  kIn,
  kTrue,
  kFalse,
  kExists,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::size_t column = 1;  ///< 1-based
  std::string text;        ///< name or text, without quotes; else as written
  double number = 0.0;
};

/// The last token is kEnd. On failure `error` and `column` say what and where.
struct Lexed {
  std::vector<Token> tokens;
  std::string error;
  std::size_t column = 0;
};

[[nodiscard]] Lexed lex_constraint(std::string_view text);

}  // namespace greynic::language
