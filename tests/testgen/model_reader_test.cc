#include "greynic/language/model_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "greynic/check/array_check.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/language/array_file.h"
#include "greynic/testgen/model_cover.h"
#include "model_rows.h"

namespace greynic::testgen {
namespace {

using language::CoverModel;
using language::LevelRows;

constexpr const char* kPict = R"(# a comment
Mode:     fast (3), slow | sluggish, Stopped
Size:     1, 2, 10, 20
Other:    <Size>, 30
Name:     alpha, Beta, gamma
Mood:     ~bad, good, fine
Level:    ~-1, 0, 1

{ Mode, Size, Name } @ 3
IF [mode] = "FAST" THEN [Size] <= 10 ELSE [Name] <> "alpha";
IF [Name] LIKE "*A" AND NOT [Size] IN {1, 2}
# another comment
   THEN [Other] > [Size];
NOT ([Mode] = "Stopped" AND [Name] = "beta") OR IsNegative(Mood);
[Name] NOT LIKE "g?mma" OR [Size] NOT IN {20};
)";

/// The rules of that model, by hand.
bool pict_allows(const std::string& mode, double size, double other, const std::string& name,
                 const std::string& mood, double level) {
  if (mode == "fast" ? size > 10 : name == "alpha") return false;
  if ((name == "alpha" || name == "Beta" || name == "gamma") && size > 2 && other <= size) {
    return false;
  }
  if (mode == "Stopped" && name == "Beta" && mood != "~bad") return false;
  if (name == "gamma" && size == 20) return false;
  return mood != "~bad" || level != -1;
}

// Claim:  a PICT model allows the rows that PICT's manual says, whatever the case of its words.
// Oracle: the rules written by hand, over all rows.
TEST(PictReader, AllowsWhatThePictManualSays) {
  const auto model = language::parse_pict(kPict, "m.pict");
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ(model->parameters.size(), 6U);
  EXPECT_EQ(model->parameters[0].weights, (std::vector<double>{3, 1, 1}));
  EXPECT_EQ(model->parameters[0].aliases[1], (std::vector<std::string>{"sluggish"}));
  EXPECT_EQ(model->parameters[2].levels.size(), 5U);
  ASSERT_EQ(model->groups.size(), 1U);
  EXPECT_EQ(model->groups[0].strength, 3);
  int valid = 0;
  for_each_row(*model, [&](const std::vector<int>& row) {
    const auto level = [&](std::size_t p) { return static_cast<std::size_t>(row[p]); };
    const auto text = [&](std::size_t p) { return model->parameters[p].levels[level(p)]; };
    const auto number = [&](std::size_t p) { return model->parameters[p].numbers[level(p)]; };
    const bool expected = pict_allows(text(0), number(1), number(2), text(3), text(4), number(5));
    ASSERT_EQ(is_valid(*model, row), expected);
    valid += expected ? 1 : 0;
  });
  EXPECT_GT(valid, 50);
}

// Claim:  pairs of ordinary values are covered by rows without any negative value.
// Oracle: all valid rows listed by hand.
TEST(PictReader, NegativeValuesHideNoPair) {
  const auto model =
      language::parse_pict("A: ~-1, 0, 1, 2\nB: ~-1, 0, 1, 2\nC: x, y, ~z\n", "n.pict");
  ASSERT_TRUE(model);
  const auto cover = cover_model(*model, {});
  ASSERT_TRUE(cover) << cover.error().message;
  std::set<std::pair<int, int>> wanted;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a > 0 || b > 0) wanted.insert({a, b});
    }
  }
  std::set<std::pair<int, int>> found;
  for (const auto& row : cover->rows) {
    const int negatives = (row[0] == 0) + (row[1] == 0) + (row[2] == 2);
    EXPECT_LE(negatives, 1);
    // A pair with a negative value has it itself; any other pair needs a row without.
    if (negatives == ((row[0] == 0) + (row[1] == 0))) found.insert({row[0], row[1]});
  }
  EXPECT_EQ(found, wanted);
  EXPECT_TRUE(check::check_array(*model, cover->rows, 2).good());
}

// Claim:  a sub-model of lower order asks for fewer tuples: none with more of its parameters than
//         that.
// Oracle: pairs counted by hand.
TEST(PictReader, SubModelsOfLowerOrderNeedFewerRows) {
  const std::string parameters = "A: 1, 2, 3\nB: 1, 2, 3\nC: 1, 2, 3\nD: 1, 2\nE: 1, 2\n";
  const auto whole = language::parse_pict(parameters, "m");
  const auto lower = language::parse_pict(parameters + "{ A, B, C } @ 1\n", "m");
  ASSERT_TRUE(whole && lower);
  const auto all = cover_model(*whole, {});
  const auto fewer = cover_model(*lower, {});
  ASSERT_TRUE(all && fewer);
  EXPECT_GE(all->rows.size(), 9U);
  EXPECT_LE(fewer->rows.size(), 7U);
  for (const auto& [p, q, pairs] :
       {std::tuple{0, 3, 6U}, std::tuple{1, 4, 6U}, std::tuple{2, 3, 6U}, std::tuple{3, 4, 4U}}) {
    std::set<std::pair<int, int>> found;
    for (const auto& row : fewer->rows) {
      found.insert({row[static_cast<std::size_t>(p)], row[static_cast<std::size_t>(q)]});
    }
    EXPECT_EQ(found.size(), pairs);
  }
  EXPECT_TRUE(check::check_array(*lower, fewer->rows, 2).good());
  EXPECT_FALSE(check::check_array(*whole, fewer->rows, 2).good());
}

// Claim:  a value written twice is one value.
TEST(PictReader, JoinsAValueWrittenTwice) {
  const auto model = language::parse_pict("A: x, y (2), x, y\nB: <A>, z\n", "m");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->parameters[0].levels, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(model->parameters[0].weights, (std::vector<double>{2, 3}));
  EXPECT_EQ(model->parameters[1].levels.size(), 3U);
}

// Claim:  a CASA model and its constraints file mean what CASA's authors say: symbols are counted
//         through all options, a constraint is a disjunction of signed symbols.
TEST(CasaReader, CountsSymbolsThroughAllOptions) {
  const auto model = language::parse_casa("2\n3\n2 3 2\n", "m.citmodel",
                                          "2\n2\n- 0 - 3\n3\n+ 1 + 5 - 6\n", "m.constraints");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->strength, 2);
  for_each_row(*model, [&](const std::vector<int>& row) {
    // Symbols: option 1 has 0 1, option 2 has 2 3 4, option 3 has 5 6.
    const bool first = !(row[0] == 0) || !(row[1] == 1);
    const bool second = row[0] == 1 || row[2] == 0 || row[2] != 1;
    EXPECT_EQ(is_valid(*model, row), first && second);
  });
  EXPECT_EQ(model->parameters[1].levels, (std::vector<std::string>{"2", "3", "4"}));
}

TEST(CnfReader, ReadsNamesAndClauses) {
  const auto model = language::parse_cnf(
      "c a feature model\nc 1 ROOT\nc 2$ helper\nc 4 has words behind\n"
      "p cnf 4 3\n1 0\n-1 2\n3 0 -3 -4 0\n",
      "m.dimacs");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->parameters[0].name, "ROOT");
  EXPECT_EQ(model->parameters[1].name, "helper");
  EXPECT_EQ(model->parameters[3].name, "4");
  for_each_row(*model, [&](const std::vector<int>& row) {
    EXPECT_EQ(is_valid(*model, row), row[0] == 1 && (row[0] == 0 || row[1] == 1 || row[2] == 1) &&
                                         (row[2] == 0 || row[3] == 0));
  });
}

constexpr const char* kJson = R"({ "version": 1, "strength": 2,
  "parameters": [
    { "name": "a", "levels": [1, 2, 3] },
    { "name": "b", "levels": ["x", "y"], "only_if": "a >= 2" },
    { "name": "c", "levels": [true, false], "costs": [5, 1] },
    { "name": "d", "levels": [0.5, 1.5], "weights": [2, 1] } ],
  "constraints": ["a + d <= 4", "b == \"y\" -> c"],
  "tables": [{ "parameters": ["a", "c"], "allowed": [[1, true], [2, false], [2, true], [3, true]] }],
  "forbidden": [{ "a": 2, "d": 1.5 }],
  "seeds": [{ "a": 3 }],
  "sub_models": [{ "parameters": ["a", "c", "d"], "strength": 3 }] })";

TEST(JsonModelReader, AllowsWhatTheFileSays) {
  const auto model = language::parse_json_model(kJson, "m.json");
  ASSERT_TRUE(model) << model.error().message;
  int valid = 0;
  for (int b = -1; b < 2; ++b) {
    for_each_row(*model, [&](std::vector<int> row) {
      if (row[1] == 1) return;
      row[1] = b;
      const double a = row[0] + 1.0;
      const double d = row[3] + 0.5;
      const bool c = row[2] == 0;
      const bool expected = (b >= 0) == (a >= 2) && a + d <= 4 && (b != 1 || c) && (a == 2 || c) &&
                            !(a == 2 && d == 1.5);
      EXPECT_EQ(is_valid(*model, row), expected);
      valid += expected ? 1 : 0;
    });
  }
  EXPECT_GT(valid, 5);
  const auto cover = cover_model(*model, {});
  ASSERT_TRUE(cover) << cover.error().message;
  EXPECT_EQ(cover->rows[0][0], 2);  // the seed comes first
  EXPECT_TRUE(check::check_array(*model, cover->rows, 2).good());
}

using Parse = std::function<Result<CoverModel>(std::string_view)>;

struct Reader {
  std::string name;
  Parse parse;
  std::string good;
  std::vector<std::pair<std::string, std::string>> bad;  ///< text, part of the message
};

std::vector<Reader> readers() {
  const std::string pict = "A: 1, 2\nB: x, y\n";
  return {
      {"pict",
       [](std::string_view t) { return language::parse_pict(t, "f"); },
       kPict,
       {{"", "f:1:1: the model has no parameters"},
        {"A 1\n", "f:1:1: 'name: value"},
        {": 1, 2\n", "f:1:1: the parameter has no name"},
        {"A: 1\na: 2\n", "f:2:1: a second parameter"},
        {"$R: 1, 2\n", "f:1:1: result parameters"},
        {"A @ 3: 1, 2\n", "f:1:1: an order of one parameter"},
        {pict + "{ A, C } @ 2\n", "f:3:1: the sub-model names"},
        {pict + "{ A, B @ 2\n", "f:3:1: '}' is missing"},
        {pict + "{ A, B } @ x\n", "f:3:9: '@ order'"},
        {pict + "{ A, B } @ 3\n", "f:3:9: an order from 1 to 2"},
        {pict + "{ A, B } @ 2\nC: 1\n", "f:4:1: parameters must come before"},
        {pict + "IF [A] = 1 [B] = \"x\";\n", "f:3:12: THEN expected"},
        {pict + "IF [A] = \"1\" THEN [B] = \"x\";\n", "f:3:10: [A] is numeric"},
        {pict + "[B] = 1;\n", "f:3:7: [B] is text"},
        {pict + "[C] = 1;\n", "f:3:1: unknown parameter [C]"},
        {pict + "[A] = 1\n", "';' expected"},
        {pict + "[A] ~ 1;\n", "f:3:5: a relation expected"},
        {pict + "[A] = [B];\n", "f:3:5: [A] and [B] are of different types"},
        {pict + "[B] IN \"x\";\n", "f:3:8: '{' expected"},
        {pict + "[B] = \"x;\n", "f:3:7: the quote that opens here is not closed"},
        {pict + "[A] > 0x;\n", "f:3:8: ';' expected"},
        {pict + "[A] > -;\n", "f:3:7: a number"},
        {pict + "[A] LIKE 1;\n", "f:3:10: LIKE needs text"},
        {pict + "[A] = 1 AND (" + std::string(5000, '(') + "\n", "nested too deeply"},
        {"[A] = 1;\n", "f:1:1: no parameter comes first"}}},
      {"casa",
       [](std::string_view t) {
         const std::size_t bar = std::min(t.find('|'), t.size());
         return language::parse_casa(t.substr(0, bar), "f", bar < t.size() ? t.substr(bar + 1) : "",
                                     "g");
       },
       "2\n3\n2 3 2\n|2\n2\n- 0 - 3\n3\n+ 1 + 5 - 6\n",
       {{"", "f:1:1: the strength is missing"},
        {"9 1 2", "f:1:1: the strength must be"},
        {"2 x", "f:1:3: the number of options"},
        {"2 3 2 2", "the level count of option 3 is missing"},
        {"2 1 0", "f:1:5: the level count of option 1"},
        {"2 1 2 7", "f:1:7: '7' after"},
        {"2 1 99999999999999999999", "f:1:5: the level count"},
        {"2 1 2|x", "g:1:1: the number of constraints"},
        {"2 1 2|1\n2\n- 0 - 5\n", "g:3:7: the symbol must be a number from 0 to 1"},
        {"2 1 2|1\n1\n0\n", "g:3:1: a term must begin"},
        {"2 1 2|2\n1\n- 0\n", "the number of terms of constraint 2 is missing"},
        {"2 1 2|1 1 - 0 7", "g:1:9: '7' after"}}},
      {"cnf",
       [](std::string_view t) { return language::parse_cnf(t, "f"); },
       "c 1 A\np cnf 3 2\n1 -2 0\n2 3 0\n",
       {{"", "no 'p cnf"},
        {"1 2 0\n", "f:1:1: the 'p cnf' line must come first"},
        {"p cnf 2\n", "f:1:1: 'p cnf VARIABLES"},
        {"p sat 2 1\n1 0\n", "f:1:1: 'p cnf"},
        {"p cnf 0 0\n", "f:1:1: 'p cnf"},
        {"p cnf 2 1\n1 3 0\n", "f:2:3: variable 3 is beyond"},
        {"p cnf 2 1\n1 x 0\n", "f:2:3: 'x' is not a literal"},
        {"p cnf 2 1\n1 2\n", "does not end in 0"},
        {"p cnf 2 2\n1 2 0\n", "2 clauses announced, 1 found"},
        {"p cnf 2 1\n1 0 2 0\n", "1 clauses announced, 2 found"},
        {"p cnf 2 1\np cnf 2 1\n1 0\n", "f:2:1: a second 'p' line"},
        {"p cnf 99999999999 1\n1 0\n", "at most"}}},
      {"json",
       [](std::string_view t) { return language::parse_json_model(t, "f"); },
       kJson,
       {{"", "f"},
        {"{", "f"},
        {"[]", "f"},
        {R"({"version": 2, "parameters": [{"name": "a", "levels": [1]}]})", "/version"},
        {R"({"version": 1})", "no parameters"},
        {R"({"version": 1, "parameters": []})", "/parameters"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": []}]})", "/parameters/0/levels"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1], "wat": 1}]})", "wat"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}, {"name": "a", "levels": [1]}]})",
         "/parameters/1"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1], "weights": [1, 2]}]})",
         "/parameters/0/weights"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1], "only_if": "a == 1"}]})",
         "/parameters/0/only_if"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}], "constraints": ["a <"]})",
         "/constraints/0: column 4"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}], "forbidden": [{"a": 2}]})",
         "/forbidden/0"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}], "seeds": [{"b": 2}]})",
         "/seeds/0"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}],
            "tables": [{"parameters": ["a"], "allowed": [[1, 2]]}]})",
         "/tables/0/allowed/0"},
        {R"({"version": 1, "parameters": [{"name": "a", "levels": [1]}],
            "sub_models": [{"parameters": ["a"], "strength": 2}]})",
         "/sub_models/0"},
        {R"({"version": 1, "masks": [{"name": "m", "fields": ["nope"]}]})", "/masks/0/fields"}}},
  };
}

// Claim:  malformed input is refused with the place and the reason, by every reader.
TEST(ModelReaders, RefuseMalformedInputWithItsPlace) {
  for (const Reader& reader : readers()) {
    ASSERT_GE(reader.bad.size(), 10U);
    EXPECT_TRUE(reader.parse(reader.good)) << reader.name;
    for (const auto& [text, message] : reader.bad) {
      const auto model = reader.parse(text);
      ASSERT_FALSE(model) << reader.name << ": " << text;
      EXPECT_EQ(model.error().code, ErrorCode::kBadInput);
      EXPECT_NE(model.error().message.find(message), std::string::npos)
          << reader.name << ": " << text.substr(0, 80) << " -> " << model.error().message;
    }
  }
}

// Claim: a parameter of more levels than a level's number can say is refused, not counted forever.
TEST(ModelReaders, RefuseMoreLevelsThanTheyTake) {
  std::string levels = "0";
  for (int i = 1; i < 70000; ++i) levels += "," + std::to_string(i);
  const auto json = language::parse_json_model(
      R"({"version": 1, "parameters": [{"name": "a", "levels": [)" + levels + "]}]}", "m.json");
  ASSERT_FALSE(json);
  EXPECT_NE(json.error().message.find("/parameters/0/levels"), std::string::npos);
  const auto pict = language::parse_pict("A: " + levels + "\n", "m.pict");
  ASSERT_FALSE(pict);
  EXPECT_EQ(pict.error().code, ErrorCode::kBadInput);
}

// Claim:  files with the mark that Windows puts before UTF-8, and with its line ends, read as they
//         read without.
// Method: each reader's good input, and an array made from it, with and without.
TEST(ModelReaders, TakeFilesFromWindows) {
  const auto from_windows = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
      text.replace(at, 1, "\r\n");
    }
    return "\xef\xbb\xbf" + text;
  };
  const std::filesystem::path folder(testing::TempDir());
  const auto read = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(files::write_text(folder / name, text));
    return language::read_model({(folder / name).string(), std::nullopt, std::nullopt}).value();
  };
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"windows.pict", kPict},
      {"windows.cnf", "c 2 b\np cnf 3 2\n1 -2 0\n2 3 0\n"},
      {"windows.citmodel", "2\n3\n2 2 3\n"},
      {"windows.json", R"({"version": 1,
        "parameters": [{"name": "a", "levels": [1, 2]}, {"name": "b", "levels": ["x"]}]})"}};
  for (const auto& [name, text] : inputs) {
    SCOPED_TRACE(name);
    const CoverModel plain = read(name, text);
    const CoverModel marked = read(name, from_windows(text));
    const auto covered = cover_model(plain, {});
    ASSERT_TRUE(covered);
    const std::string rows = language::rows_to_tsv(plain, covered->rows);
    const auto again = cover_model(marked, {});
    ASSERT_TRUE(again);
    EXPECT_EQ(language::rows_to_tsv(marked, again->rows), rows);
    const auto parsed = language::parse_rows(marked, from_windows(rows), "rows.tsv");
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(check::check_array(marked, *parsed, 2).good());
    const auto foreign =
        language::read_model({(folder / name).string(), std::nullopt, "none.constraints"});
    ASSERT_FALSE(foreign);  // not CASA's: refused as such; CASA's: there is no such file
    EXPECT_EQ(foreign.error().message.find("goes with CASA") != std::string::npos,
              !name.ends_with(".citmodel"));
  }
}

// Claim:  no input makes a reader crash or hang.
// Method: good inputs with bytes and pieces changed, deterministic.
TEST(ModelReaders, SurviveAnyText) {
  std::mt19937_64 random(77);
  for (const Reader& reader : readers()) {
    for (int round = 0; round < 3000; ++round) {
      std::string text = reader.good;
      for (std::uint64_t change = random() % 8 + 1; change > 0 && !text.empty(); --change) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            text.erase(at, random() % 10 + 1);
            break;
          case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 20));
            break;
          default:
            text.insert(at, std::string(1, "{}[]();:,\"0-9~|@<>#%"[random() % 20]));
        }
      }
      (void)reader.parse(text);
    }
  }
}

// Claim:  the check finds what is wrong with an array: an invalid row, a pair left out.
TEST(ArrayCheck, FindsInvalidRowsAndMissingTuples) {
  const auto model =
      language::parse_pict("A: 1, 2, 3\nB: x, y\nC: p, q\nIF [A] = 1 THEN [B] = \"x\";\n", "m");
  ASSERT_TRUE(model);
  const auto cover = cover_model(*model, {});
  ASSERT_TRUE(cover);
  const check::CheckReport good = check::check_array(*model, cover->rows, 2);
  EXPECT_TRUE(good.good());
  EXPECT_EQ(good.tuples_covered, 15U);
  EXPECT_EQ(good.tuples_infeasible, 1U);
  for (std::size_t r = 0; r < cover->rows.size(); ++r) {
    LevelRows fewer = cover->rows;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(r));
    const check::CheckReport report = check::check_array(*model, fewer, 2);
    EXPECT_EQ(report.tuples_covered + report.tuples_missing, 15U);
    EXPECT_GT(report.tuples_missing, 0U);
  }
  LevelRows broken = cover->rows;
  broken.push_back({0, 1, 0});
  EXPECT_EQ(check::check_array(*model, broken, 2).invalid_rows, 1U);
  // A tuple that only an invalid row has is not covered.
  EXPECT_EQ(check::check_array(*model, {{0, 1, 0}}, 2).tuples_covered, 0U);
}

// Claim:  tables come back as they were written, whatever the order of the columns; bad ones do
//         not.
TEST(ArrayFile, SurvivesItsText) {
  const auto model = language::parse_json_model(kJson, "m.json");
  ASSERT_TRUE(model);
  const auto cover = cover_model(*model, {});
  ASSERT_TRUE(cover);
  const auto again =
      language::parse_rows(*model, language::rows_to_tsv(*model, cover->rows), "r.tsv");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, cover->rows);
  const auto from_json =
      language::parse_rows(*model, cover_to_json_text(*model, *cover, 2), "r.json");
  ASSERT_TRUE(from_json) << from_json.error().message;
  EXPECT_EQ(*from_json, cover->rows);
  const auto turned = language::parse_rows(*model, "d\tc\tb\ta\n0.5\ttrue\t\t1\n", "r.tsv");
  ASSERT_TRUE(turned) << turned.error().message;
  EXPECT_EQ(*turned, (LevelRows{{0, -1, 0, 0}}));
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "r:1: the header row"},
           {"a\tb\tc\n", "the column of 'd'"},
           {"a\tb\tc\te\n", "unknown parameter 'e'"},
           {"a\tb\tc\ta\n", "a second column 'a'"},
           {"a\tb\tc\td\n1\tx\ttrue\n", "r:2: 3 cells"},
           {"a\tb\tc\td\n9\tx\ttrue\t0.5\n", "r:2: '9' is no level of 'a'"},
           {"{\"rows\": 3}", "'parameters' and 'rows'"},
           {"{", "r"},
           {"{\"parameters\": [\"a\"], \"rows\": []}", "the column of 'b'"},
           {"{\"parameters\": [\"a\",\"b\",\"c\",\"d\"], \"rows\": [7]}", "/rows/0"}}) {
    const auto rows = language::parse_rows(*model, text, "r");
    ASSERT_FALSE(rows) << text;
    EXPECT_NE(rows.error().message.find(message), std::string::npos) << rows.error().message;
  }
}

}  // namespace
}  // namespace greynic::testgen
