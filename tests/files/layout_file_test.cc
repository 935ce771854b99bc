#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::files {
namespace {

using nlohmann::json;

std::string described(const Result<ModelLayouts>& read) {
  return read ? json_text(to_json(*read)) : read.error().message;
}

/// All values of the text at first, then the layouts: the slow way, which says what is wrong.
Result<ModelLayouts> by_tree(const std::string& text) {
  const auto document = parse_json(text, "l.json");
  if (!document) return pass_on(document);
  return model_layouts_from_json(*document, "l.json");
}

template <typename Random>
U128 bits_of(MatchField field, Random& random) {
  const U128 noise = U128{random()} << 64 | random();
  return random() % 3 == 0 ? full_mask(field) : noise & full_mask(field);
}

/// Any fields, ranges, actions and texts; tables that no jump leads round.
Layout some_layout(std::mt19937_64& random) {
  Layout layout;
  for (std::uint32_t id = 0; id < random() % 4; ++id) {
    layout.tables.push_back({.id = id * 7, .matchers = {}, .software = random() % 4 == 0});
    for (std::uint32_t m = 0; m < random() % 4; ++m) {
      Matcher matcher{.mask = {}, .priority = m, .rules = {}};
      matcher.idle_seconds = random() % 5 == 0 ? 10 : 0;
      for (int i = 0; i < 3; ++i) {
        const auto field = static_cast<MatchField>(random() % kMatchFieldCount);
        if (matcher.mask.bits(field) == 0) matcher.mask.add(field, bits_of(field, random));
      }
      if (random() % 3 == 0 && matcher.mask.bits(MatchField::kL4DstPort) == 0) {
        matcher.mask.add_range(MatchField::kL4DstPort);
      }
      for (std::uint64_t r = random() % 4; r > 0; --r) {
        FlowRule rule{.match = {}, .priority = m, .table = id * 7, .actions = {}, .from = {}};
        for (const FieldMask& part : matcher.mask.fields()) {
          rule.match.set(part.field, U128{random()} << 64 | random(), part.bits);
        }
        for (const MatchField field : matcher.mask.ranges()) rule.match.set_range(field, 80, 443);
        const std::vector<Action> actions = {
            Action::drop(),
            Action::forward("p\"1\xc3\xbc"),
            Action::other("ct(commit)\n"),
            Action::jump(100 + random() % 9),
            {.kind = ActionKind::kSetField,
             .field = MatchField::kReg3,
             .value = 0x10,
             .bits = 0xf0},
            {.kind = ActionKind::kVxlanEncap, .number = 7, .text = "dst=10.0.0.1"},
            {.kind = ActionKind::kPushVlan, .number = 4095}};
        for (std::uint64_t i = random() % 3; i > 0; --i) {
          rule.actions.push_back(actions[random() % actions.size()]);
        }
        rule.weight = static_cast<double>(random() % 1000) / 999.0;
        for (std::uint64_t i = random() % 3; i > 0; --i) {
          rule.from.push_back(static_cast<std::uint32_t>(random()));
        }
        matcher.rules.push_back(std::move(rule));
      }
      layout.tables.back().matchers.push_back(std::move(matcher));
    }
  }
  return layout;
}

ModelLayouts some_layouts(std::mt19937_64& random) {
  if (random() % 2 == 0) return {{{}, some_layout(random)}};
  ModelLayouts layouts;
  for (int i = 0; i < 2; ++i) {
    layouts.push_back({{"cx" + std::to_string(i), "e\"" + std::to_string(i)}, some_layout(random)});
  }
  return layouts;
}

std::string file_of(const ModelLayouts& layouts) {
  const std::string path = testing::TempDir() + "greynic_layout_file.json";
  EXPECT_TRUE(write_model_layouts(layouts, path));
  const std::string text = read_text(path).value();
  std::filesystem::remove(path);
  return text;
}

// Claim:  a file of layouts is the text that JSON's own writer makes of its document, one value a
//         line and keys in order, and reads back as what was written.
// Oracle: nlohmann::json, of the document that it parses from the file.
TEST(LayoutFile, IsWrittenAsJsonWouldBe) {
  std::mt19937_64 random(18);
  for (int round = 0; round < 200; ++round) {
    const ModelLayouts layouts = some_layouts(random);
    const std::string text = file_of(layouts);
    EXPECT_EQ(text, json_text(json::parse(text), 1) + "\n");
    const auto read = model_layouts_from_text(text, "l.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, layouts);
  }
}

// Claim:  read without a tree, a text gives the layout that its tree gives; and of a bad one the same
//         is said, with the place inside the file.
// Method: texts with bytes changed, left out and doubled, keys and values exchanged for others; some
//         are good still.
TEST(LayoutFile, ReadsAsByItsTree) {
  std::mt19937_64 random(19);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"from\"", "\"form\""},
      {"\"id\"", "\"matchers\""},
      {"\"rules\"", "\"rule\""},
      {"\"tables\"", "\"rules\""},
      {"\"version\": 1", "\"version\": 2"},
      {"\"weight\": ", "\"weight\": 1"},
      {"\"weight\": ", "\"weight\": -"},
      {"\"jump\": ", "\"jump\": 99999999"},
      {"\"jump\": ", "\"jump\": \"1\", \"x\": "},
      {"\"priority\": ", "\"priority\": 0."},
      {"4095", "4096"},
      {"true", "false"},
      {"true", "1"},
      {"\"0x", "\"0xff"},
      {"\"0x", "\""},
      {"\"80..443\"", "\"443..80\""},
      {"\"80..443\"", "80"},
      {"\"range\"", "\"0xffff\""},
      {"[]", "[null]"},
      {"{}", "[]"},
      {"\"drop\"", "\"count\""},
      {"\"drop\": true", "\"drop\": true, \"count\": true"},
      {"\"options\": \"dst=10.0.0.1\",", ""},
      {"ct(commit)\\n", ""},
      {"\"forward\": ", "\"forward\": 7, \"to\": "},
      {"\"id\": 7", "\"id\": 0"},
      {"\"jump\": 10", "\"jump\": "},
      {"\n ", "\n/* a comment */ "},
      {"\"0x", "\"0X"},
      {"\"p\\\"1\xc3\xbc\"", "7"},
      {"\"other\": ", "\"\": 1, \"other\": "},
      {"\"names\"", "\"names \""},
      {"\"cx1\"", "\"cx0\""}};
  int good = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = json_text(to_json(some_layouts(random)), 1) + "\n";
    const auto& [from, to] = changes[random() % changes.size()];
    std::size_t at = text.find(from, random() % text.size());
    if (at != std::string::npos) text.replace(at, from.size(), to);
    if (round % 4 == 0) {
      at = random() % text.size();
      const std::string part = text.substr(random() % text.size(), random() % 20);
      if (random() % 2 == 0)
        text.insert(at, part);
      else
        text.erase(at, random() % 20);
    }
    const auto read = model_layouts_from_text(text, "l.json");
    const auto wanted = by_tree(text);
    ASSERT_EQ(described(read), described(wanted)) << text;
    ASSERT_EQ(read.has_value(), wanted.has_value()) << text;
    if (!read) continue;
    EXPECT_EQ(*read, *wanted);
    ++good;
  }
  EXPECT_GT(good, 400);
  EXPECT_LT(good, 3600);
}

// Claim:  one layout is read as layouts are, and layouts for models are refused where one is asked for.
TEST(LayoutFile, OfOneLayoutIsNoneForModels) {
  std::mt19937_64 random(20);
  const Layout layout = some_layout(random);
  EXPECT_EQ(layout_from_text(json_text(to_json(layout)), "l.json").value(), layout);
  const auto refused = layout_from_text(file_of({{{"cx5"}, layout}, {{"cx6"}, layout}}), "l.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(refused.error().message.find("l.json: has a layout for each model"), 0U)
      << refused.error().message;
}

// Claim:  what a layout may hold is counted as it lies in memory, not as its tree would: of more
//         than that, and of more than its size lets expect, nothing is read.
TEST(LayoutFile, TakesWhatItsTreeWouldNot) {
  const auto with = [](const std::string& rules) {
    return R"({"version":1,"tables":[{"id":0,"matchers":[{"mask":{},"rules":[)" + rules + "]}]}]}";
  };
  std::string lines = "0";
  for (int i = 0; i < 5'200'000; ++i) lines += ",0";
  const std::string many = with(R"({"match":{},"actions":[],"from":[)" + lines + "]}");
  EXPECT_EQ(by_tree(many).error().code, ErrorCode::kTooBig);
  const auto read = layout_from_text(many, "l.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tables[0].matchers[0].rules[0].from.size(), 5'200'001U);

  std::string rules = R"({"match":{},"actions":[]})";
  for (int i = 0; i < 1'200'000; ++i) rules += R"(,{"match":{},"actions":[]})";
  EXPECT_EQ(layout_from_text(with(rules), "l.json").error().code, ErrorCode::kTooBig);
}

}  // namespace
}  // namespace greynic::files
