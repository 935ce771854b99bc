#include "greynic/files/json_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>

#include "greynic/files/campaign_file.h"
#include "greynic/files/core_json.h"
#include "greynic/files/output_file.h"

namespace greynic::files {
namespace {

constexpr std::string_view kCampaign = R"({ "version": 1, "name": "mask_wall",
  "factors": {
    "server_decap_masks": { "type": "numeric", "levels": [0, 5, 10, 20, 40, 80] },
    "transport":          { "type": "categorical", "levels": ["RC", "UC"] },
    "operation":          { "type": "categorical", "levels": ["SEND", "READ"] },
    "shared_receive_queue": { "type": "bool" },
    "message_bytes":      { "type": "numeric", "powers_of_two": [64, 8388608] } },
  "constraints": ["transport == \"UC\" -> operation != \"READ\""],
  "forbidden":   [{ "transport": "UC", "shared_receive_queue": true }],
  "design": "pairwise",
  "baseline": { "server_decap_masks": 0, "transport": "RC", "message_bytes": 65536 },
  "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
  "measure": { "repeats": 3, "seconds": 1 } })";

TEST(CampaignFile, ReadsTheCampaignOfTheDesign) {
  const auto campaign = parse_campaign(kCampaign, "c.json");
  ASSERT_TRUE(campaign) << campaign.error().message;
  EXPECT_EQ(campaign->factors.size(), 5U);
  EXPECT_EQ(campaign->find("message_bytes")->levels.size(), 18U);
  EXPECT_EQ(campaign->find("shared_receive_queue")->levels.size(), 2U);
  EXPECT_EQ(campaign->design.strength, 2);
  EXPECT_EQ(campaign->wall.below_baseline_by, 0.2);
  const auto changed = override_levels(*campaign, {"server_decap_masks=0,7"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->find("server_decap_masks")->levels.back(), FactorValue(7.0));
  EXPECT_FALSE(override_levels(*campaign, {"nothing=1"}));
}

// Claim: each of these is refused with exit code 2, the file's name and the place inside it.
TEST(CampaignFile, RefusesMalformedInput) {
  const std::string good(kCampaign);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1"},
      {good.substr(0, 200), "line"},
      {with("\"version\": 1", "\"version\": 2"), "/version"},
      {with("\"name\": \"mask_wall\",", ""), "name"},
      {with("\"type\": \"bool\"", "\"type\": \"boolean\""), "/factors/shared_receive_queue"},
      {with("[0, 5, 10", "[0, 0, 10"), "/factors/server_decap_masks"},
      {with("[0, 5, 10", "[-1, 5, 10"), "/factors/server_decap_masks"},
      {with("[\"RC\", \"UC\"]", "[\"RC\", \"UX\"]"), "/factors/transport"},
      {with("[64, 8388608]", "[8388608, 64]"), "/factors/message_bytes"},
      {with("\"pairwise\"", "\"9-way\""), "/design"},
      {with("\"below_baseline_by\": 0.2", "\"below\": 1, \"above\": 2"), "/wall"},
      {with("\"baseline\": { \"server_decap_masks\": 0", "\"baseline\": { \"nothing\": 0"),
       "/baseline/nothing"},
      {with("{ \"transport\": \"UC\", ", "{ \"transport\": \"UD\", "), "/forbidden/0/transport"},
      {with("\"repeats\": 3", "\"repeats\": 0"), "/measure"},
      {with("\"name\": \"mask_wall\"", "\"name\": \"a\", \"name\": \"b\""), "stands twice"},
      {with("\"version\": 1", "\"version\": 1, \"desing\": 1"), "desing"},
  };
  for (const auto& [text, place] : cases) {
    const auto read = parse_campaign(text, "bad.json");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(exit_code(read.error().code), 2) << read.error().message;
    EXPECT_NE(read.error().message.find("bad.json"), std::string::npos) << read.error().message;
    EXPECT_NE(read.error().message.find(place), std::string::npos) << read.error().message;
  }
}

// Claim: what a schema forbids is told in words that say what would do.
TEST(CheckSchema, SaysWhatWouldDo) {
  const std::string good(kCampaign);
  const std::vector<std::array<std::string, 3>> cases = {
      {"\"seconds\": 1", "\"duration\": 1",
       "/measure: \"duration\" is not known here; what may stand is metrics, repeats, seconds"},
      {"\"seconds\": 1", "\"it's a key\": 1", "/measure: \"it's a key\" is not known here"},
      {"\"seconds\": 1", "\"seconds\": \"1s\"", "/measure/seconds: must be a number, not \"1s\""},
      {"\"seconds\": 1", "\"seconds\": -1", "/measure/seconds: must be greater than 0, not -1"},
      {"\"pairwise\"", "\"11-way\"", "/design: \"11-way\" is not allowed here; allowed: \"full\""},
      {"\"version\": 1", "\"version\": 2", "/version: must be 1, not 2"},
      {"\"name\": \"mask_wall\",", "", "\"name\" is missing"},
      {"\"constraints\": [", "\"constraints\": [7, ", "/constraints/0: must be text, not 7"},
  };
  for (const auto& [from, to, words] : cases) {
    std::string text = good;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const auto read = parse_campaign(text.replace(at, from.size(), to), "bad.json");
    ASSERT_FALSE(read) << to;
    EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
  }
}

// Claim: a text of any length is held against its pattern, and is not told at that length.
TEST(CheckSchema, RefusesLongTextsInFewWords) {
  auto rnic = read_json(GREYNIC_SOURCE_DIR "/configs/rnics/cx6.json", "rnic");
  ASSERT_TRUE(rnic) << rnic.error().message;
  (*rnic)["id"] = std::string(2'000'000, 'a');
  const auto refused = check_schema(*rnic, "rnic", "cx6.json");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cx6.json: at /id:"), std::string::npos);
  EXPECT_LT(refused.error().message.size(), 3000U);
}

// Claim: what a message quotes of a file is text, whatever its bytes are.
TEST(BadValue, IsText) {
  const Error error = bad_value("run.db", "/outcome", "unknown outcome \"re\xac\"").value();
  EXPECT_EQ(error.message, "run.db: at /outcome: unknown outcome \"re\\xac\"");
}

// Claim: whatever bytes are flipped, the reader answers; it never crashes.

TEST(CampaignFile, SurvivesMutation) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text(kCampaign);
    for (std::uint64_t flips = random() % 8 + 1; flips > 0; --flips) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
      }
      if (text.empty()) text = "{";
    }
    const auto read = parse_campaign(text, "mutated.json");
    if (!read) EXPECT_FALSE(read.error().message.empty());
  }
}

// Claim:  each value is built once, and none is looked at again for those that follow it: a list of a
//         million objects is read in a second, not in hours.
TEST(ParseJson, BuildsWhatIsThere) {
  std::string text = R"([{"a":[1,-2,3.5,true,null,"x",{}]})";
  constexpr std::size_t kObjects = 1'000'000;
  for (std::size_t i = 1; i < kObjects; ++i) text += ",{}";
  const auto read = parse_json(text + "]", "list.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), kObjects);
  EXPECT_EQ(read->front(), nlohmann::json::parse(R"({"a":[1,-2,3.5,true,null,"x",{}]})"));
  EXPECT_EQ(read->back(), nlohmann::json::object());
  // In comments nothing counts, and what is wrong behind them is told with its place.
  EXPECT_EQ(parse_json("/* x */ 7", "n").value(), 7);
  for (const auto& [bad, place] :
       std::vector<std::pair<std::string, std::string>>{{"[1,\n 2,, 3]", "line 2, column 4"},
                                                        {"{\"a\":1e999}", "line 1, column "},
                                                        {"[1] [2]", "line 1, column 5"},
                                                        {"", "line 1, column 1"}}) {
    const auto refused = parse_json(bad, "n");
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find("n: " + place), std::string::npos)
        << refused.error().message;
  }
}

// Claim:  texts that would overflow the stack or fill the memory are refused, fast and with a
// place.
TEST(ParseJson, RefusesWhatWouldHarm) {
  const auto message = [](const std::string& text) {
    const auto read = parse_json(text, "deep.json");
    return read ? std::string("taken") : read.error().message;
  };
  EXPECT_EQ(message(std::string(64, '[') + std::string(64, ']')), "taken");
  EXPECT_NE(
      message("\n" + std::string(100'000, '[')).find("deep.json: line 2, column 65: is nested"),
      std::string::npos);
  EXPECT_NE(message(std::string(30, '[') + std::string(100'000'000, '[')).find("column 65"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += R"({"a":)";
  EXPECT_NE(message(deep).find("is nested"), std::string::npos);
  EXPECT_EQ(
      message(R"(["[[[[[[[[\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["])"),
      "taken");
  std::string wide = "[0";
  for (int i = 0; i < 20'000'000; ++i) wide += ",0";
  const auto too_big = parse_json(wide + "]", "wide.json");
  ASSERT_FALSE(too_big);
  EXPECT_EQ(too_big.error().code, ErrorCode::kTooBig) << too_big.error().message;
}

// Claim:  what is refused for its size is counted as it lies in memory: a list of many small objects, as in a layout
//         of 100,000 rules, is taken.
// Method: 120,000 objects of ten keys, some 190 MB in memory, of 7 MB of text.
TEST(ParseJson, TakesManySmallObjects) {
  std::string text = "[0";
  for (int i = 0; i < 120'000; ++i) {
    text += R"(,{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0})";
  }
  const auto read = parse_json(text + "]", "rules.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 120'001U);
}

TEST(ReadText, RefusesWhatIsNoUtf8WithItsPlace) {
  char path[] = "/tmp/greynic_text_XXXXXX";
  close(mkstemp(path));
  ASSERT_TRUE(write_text(path, "one\ntw\xe9\n"));
  const auto read = read_text(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  EXPECT_NE(read.error().message.find("line 2, column 3"), std::string::npos)
      << read.error().message;
  unlink(path);
  const auto endless = read_text("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, ErrorCode::kTooBig);
}

// Claim: an observation survives the trip through JSON.
TEST(CoreJson, AnObservationReadsBackAsWritten) {
  Observation out;
  out.asked = {{"qp_count", 4.0}, {"transport", std::string("RC")}};
  out.granted = {{"qp_count", 2.0}};
  out.outcome = Outcome::kMeasured;
  out.measures["bandwidth_gbps"] = {91.2, 0.5};
  out.measures["latency_us_p50"] = {3.1, {}};
  out.counters_after["rx_packets"] = 1e12;
  out.latency.record(3100, 7);
  out.steady = SteadyState{true, 0.1, "MSER-5"};
  out.environment["host"] = "a";
  const auto back = observation_from_json(to_json(out), "o", "");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(out));
  EXPECT_EQ(back->measures, out.measures);
  EXPECT_EQ(back->granted, out.granted);
}

// Claim: counts that no integer holds are refused with their place, not cut off.
TEST(CoreJson, AnObservationHoldsNoCountsThatCannotBe) {
  for (const char* text :
       {R"({"seed": 184467440737095516167})", R"({"seed": 18446744073709551616})",
        R"({"seed": -1})", R"({"repeat": 4294967297})", R"({"repeat": 1e300})", R"({"repeat": -1})",
        R"({"latency_ns_buckets": [[1e30, 7]]})", R"({"latency_ns_buckets": [[3, -7]]})",
        R"({"latency_ns_buckets": 3})"}) {
    const auto object = nlohmann::json::parse(text);
    const auto read = observation_from_json(object, "answers", "");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_NE(read.error().message.find("/" + object.begin().key()), std::string::npos)
        << read.error().message;
  }
  const auto most =
      nlohmann::json::parse(R"({"seed": 18446744073709551615, "repeat": 2147483647})");
  ASSERT_TRUE(observation_from_json(most, "answers", ""));
  EXPECT_EQ(observation_from_json(most, "answers", "")->seed, UINT64_MAX);
}

// Claim: whole numbers are written without a point, and numbers that no integer holds as they are.
TEST(CoreJson, ALevelIsWrittenAsItIs) {
  EXPECT_EQ(to_json(FactorValue{65536.0}).dump(), "65536");
  EXPECT_EQ(to_json(FactorValue{-3.0}).dump(), "-3");
  EXPECT_EQ(to_json(FactorValue{0.5}).dump(), "0.5");
  for (const double number : {1e300, -1e300, 1e19, 9007199254740993.0}) {
    EXPECT_EQ(to_json(FactorValue{number}).get<double>(), number);
  }
}

// Claim: matches and actions of every kind survive the trip through JSON.
TEST(CoreJson, MatchesAndActionsReadBackAsWritten) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    Match match;
    for (int i = 0; i < 4; ++i) {
      const auto field = static_cast<MatchField>(random() % kMatchFieldCount);
      const U128 noise = U128{random()} << 64 | random();
      U128 bits = (U128{random()} << 64 | random()) & full_mask(field);
      if (round % 3 == 0) bits = full_mask(field);
      if (round % 3 == 1) bits = full_mask(field) >> 3 << 3;
      match.set(field, noise, bits);
    }
    const auto back = match_from_json(to_json(match), "m", "");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, match) << to_string(match);
    EXPECT_EQ(mask_from_json(to_json(match.mask()), "m", "").value(), match.mask());
  }
  const Action set{.kind = ActionKind::kSetField,
                   .field = MatchField::kIpv4Dst,
                   .value = 0x0a000000,
                   .bits = 0xff000000};
  const Action encap{.kind = ActionKind::kVxlanEncap, .number = 7, .text = "dst=10.0.0.1"};
  for (const Action& action : {Action::drop(), Action::forward("p1"), Action::jump(3), set, encap,
                               Action::other("ct(commit)")}) {
    EXPECT_EQ(action_from_json(to_json(action), "a", "").value(), action);
  }
}

}  // namespace
}  // namespace greynic::files
