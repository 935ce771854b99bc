#include "greynic/core/text.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace greynic {
namespace {

using namespace std::string_literals;

// Claim:  well-formed UTF-8 is taken, and of all else the place of the first bad byte is told.
// Oracle: the table of well-formed byte sequences in the Unicode Standard (table 3-7).
TEST(Text, TellsWhereUtf8Ends) {
  for (const std::string& good :
       {""s, "plain\n\0"s, "\u00e9\u20ac\U0001f600"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s,
        "\xed\x9f\xbf"s, "\xee\x80\x80"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s}) {
    EXPECT_EQ(bad_utf8(good), std::nullopt) << printable(good);
  }
  for (const std::string& bad :
       {"\x80"s, "\xbf"s, "\xc0\xaf"s, "\xc1\xbf"s, "\xc2"s, "\xc2 "s, "\xe0\x9f\xbf"s, "\xe2\x82"s,
        "\xed\xa0\x80"s, "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xff"s}) {
    EXPECT_EQ(bad_utf8(bad), 0U) << printable(bad);
    EXPECT_EQ(bad_utf8("ab\u20ac" + bad), 5U) << printable(bad);
  }
}

// Claim: what steers a terminal is spelled out, and what people write stays.
TEST(Text, SpellsOutWhatSteersATerminal) {
  EXPECT_EQ(printable("a\tb\n\u20ac 5"), "a\tb\n\u20ac 5");
  EXPECT_EQ(printable("\x1b]0;x\x07\r\x7f"), "\\u001b]0;x\\u0007\\u000d\\u007f");
  EXPECT_EQ(printable("\u009b31m\u202eabc"), "\\u009b31m\\u202eabc");
  EXPECT_EQ(printable("a\xff\xc2"), "a\\xff\\xc2");
  EXPECT_EQ(printable("a\0b"s), "a\\u0000b");
}

TEST(Text, IsCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("ab\u20acd", 4), "ab...");
  EXPECT_EQ(shortened("\u20ac\u20ac", 2), "...");
}

}  // namespace
}  // namespace greynic
