#include <gtest/gtest.h>

#include "greynic/language/array_file.h"
#include "greynic/language/model_reader.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {
namespace {

// Claim:  hexadecimal numbers are numbers, in values and in constraints, as for C; what only begins
//         like one is text.
// Oracle: PICT 3.7.4's output for the same models.
TEST(PictReader, TakesHexadecimalNumbers) {
  const auto rows_of = [](const char* text) {
    const auto model = language::parse_pict(text, "m");
    EXPECT_TRUE(model) << model.error().message;
    const auto covered = cover_model(*model, {.strength = 2});
    EXPECT_TRUE(covered);
    return covered ? covered->rows.size() : 0;
  };
  EXPECT_EQ(rows_of("C: 0x10, 0x20, 5\nA: 1, 2\nIF [C] > 16 THEN [A] = 1;\n"), 5U);
  EXPECT_EQ(rows_of("C: 16, 32, 5\nA: 1, 2\nIF [C] = 0X10 THEN [A] = 1;\n"), 5U);
  EXPECT_EQ(rows_of("C: 0x10, -0x20, +5\nA: 1, 2\nIF [C] < 0 THEN [A] = 1;\n"), 5U);
  EXPECT_EQ(rows_of("C: 16, 10, 5\nA: 1, 2\nIF [C] IN {0x10, 1e1} THEN [A] = 1;\n"), 4U);
  EXPECT_FALSE(language::parse_pict("C: 0xG, 2\nA: 1, 2\nIF [C] = 2 THEN [A] = 1;\n", "m"));
}

// Claim:  a value's names come in turn, each with the mark of a negative value, and all are read.
// Oracle: PICT 3.7.4's table for the same model.
TEST(PictReader, ShowsAllNamesOfAValueInTurn) {
  const auto model = language::parse_pict("A: ~a | b, c | d\nB: 1, 2, 3\n", "m");
  ASSERT_TRUE(model);
  const language::LevelRows rows = {{0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 1}};
  const std::string table = language::rows_to_tsv(*model, rows);
  EXPECT_EQ(table, "A\tB\n~a\t1\nc\t1\n~b\t2\n~a\t3\nd\t2\n");
  EXPECT_EQ(language::parse_rows(*model, table, "rows").value(), rows);
}

// Claim:  clauses that stand in one line are told apart.
// Oracle: the text.
TEST(CnfReader, TellsClausesInOneLineApart) {
  const auto model = language::parse_cnf("p cnf 2 3\n1 0 -1 0\n2 0\n", "m");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->clause_where, (std::vector<std::string>{"clause in line 2", "clause 2 in line 2",
                                                           "clause in line 3"}));
}

}  // namespace
}  // namespace greynic::testgen
