#include "greynic/report/report.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <regex>

#include "full_run.h"
#include "greynic/web/page.h"

namespace greynic::report {
namespace {

// Claim:  the page asks nobody for anything: it has no link, image, font or script of another
//         place.
TEST(Report, IsOneFileThatNeedsNoNetwork) {
  const Scratch scratch;
  const std::string page = own_part(full_report(scratch));
  for (const char* foreign : {"src=", "@import", "href=\"http", "href=\"//", "url("}) {
    EXPECT_EQ(page.find(foreign), std::string::npos) << foreign;
  }
}

// Claim:  what users wrote is shown as text, never run.
TEST(Report, EscapesWhatUsersWrote) {
  const Scratch scratch;
  const std::string page = own_part(full_report(scratch, "<img src=x onerror=alert(1)>"));
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("ENOMEM &lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("'exec:./m.sh --it'\\''s'"), std::string::npos) << "not quoted for a shell";
}

// Claim:  every number of the pictures also stands in a table, so the page reads without
//         JavaScript.
TEST(Report, HoldsEveryNumberInTables) {
  NEEDS_PICTURES();
  const Scratch scratch;
  std::string page = full_report(scratch);
  page.erase(page.find("<script type=\"application/json\""));
  for (const char* text : {"89.12",  // a value: 90.125 - 1
                           "82.62",
                           "26.62",  // means of two repeats
                           "qp_count &gt;= 64",
                           "50.0 %",
                           "1e-05",
                           "wall, cause 1",
                           "wall, no cause found",
                           "line_gbps",
                           "[97, 98]",
                           "nothing odd",
                           "[87, 91]",  // a prediction's interval
                           "ipv4_dst/0xffffffff",
                           "90.0 %",
                           "1.78 ×",
                           "82 [78, 86]",
                           "refused",
                           "Symptom S6",
                           "3.125 [3.05, 3.2]",
                           "0.3185 [0.31, 0.33]",
                           "server.rx_steering_pipe_hops 1.9 -&gt; 571.9",
                           "0.967 [0.91, 1]",
                           "80: 0.61 [0.6, 0.62]",
                           "a note",
                           "Document: odd"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

// Claim:  causes that were tested on a device are shown, not the hypotheses of a later look at the
//         same run.
TEST(Report, ShowsTheTestedCausesBeforeHypotheses) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  const std::string guess = std::regex_replace(kExplanation, std::regex("qp_count >= 64"),
                                               "guess_of_another_factor >= 1");
  results::RunStore run = full_run(path);
  ASSERT_TRUE(run.keep(results::kHypotheses, guess));
  const std::string page = own_part(report_html(run, options_of(path)).value());
  EXPECT_NE(page.find("qp_count &gt;= 64"), std::string::npos);
  EXPECT_EQ(page.find("guess_of_another_factor"), std::string::npos);
}

/// The descriptions of the pictures of one kind.
std::vector<nlohmann::json> charts_of(const std::string& page, const std::string& kind) {
  const std::string open = "id=\"charts\">";
  const std::size_t begin = page.find(open) + open.size();
  std::vector<nlohmann::json> found;
  for (const auto& chart :
       nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin))) {
    if (chart.at("kind") == kind) found.push_back(chart);
  }
  return found;
}

// Claim:  a configuration beyond the wall's line is never drawn as clear: it is a wall, or
//         undecided, or, without an explanation, beyond the line; what was not measured is none of
//         these; the tests that an explanation ordered are not among the campaign's configurations.
TEST(Report, NothingBeyondTheLineLooksClear) {
  NEEDS_PICTURES();
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  auto run = full_run(path);
  Observation ordered;
  ordered.asked = {{"qp_count", 40.0}, {"transport", std::string("RC")}};
  ordered.outcome = Outcome::kMeasured;
  ordered.measures["bandwidth_gbps"] = {30.0, std::nullopt};
  ASSERT_TRUE(run.append(ordered));
  Observation slow;
  slow.asked = {{"qp_count", 60.0}, {"transport", std::string("RC")}};
  slow.outcome = Outcome::kMeasured;
  slow.measures["bandwidth_gbps"] = {50.0, std::nullopt};
  ASSERT_TRUE(run.append(slow));
  ASSERT_TRUE(run.keep("ordered", R"(["qp_count=40,transport=RC"])"));
  const auto roles = [&] {
    const std::string page = report_html(run, options_of(path)).value();
    const auto chart = charts_of(page, "walls").at(0);
    const double bound = chart.at("bound");
    std::map<std::string, std::string> by_name;
    for (const auto& row : chart.at("rows")) {
      const std::string role = chart.at("groups").at(row.at(4).get<std::size_t>()).at("role");
      by_name[row.at(0)] = role;
      if (row.at(1).is_null() || row.at(1).get<double>() >= bound) continue;
      EXPECT_NE(role, "clear") << row;
      EXPECT_NE(role, "untested") << row;
    }
    return by_name;
  };
  auto explained = roles();
  EXPECT_EQ(explained.at("qp_count=1, transport=RC"), "clear");
  EXPECT_EQ(explained.at("qp_count=60, transport=RC"), "undecided");
  EXPECT_EQ(explained.at("qp_count=64, transport=RC"), "cause");
  EXPECT_EQ(explained.at("qp_count=64, transport=UC"), "unexplained");
  EXPECT_EQ(explained.at("qp_count=128, transport=</script><script>alert(1)"), "unmeasured");
  EXPECT_FALSE(explained.contains("qp_count=40, transport=RC"));
  EXPECT_EQ(explained.at("qp_count=8, transport=RC"), "clear");
  auto explanation = nlohmann::json::parse(kExplanation);
  explanation["undecided_configurations"] = {{{"qp_count", 8}, {"transport", "RC"}}};
  ASSERT_TRUE(run.keep("explanation", explanation.dump()));
  EXPECT_EQ(roles().at("qp_count=8, transport=RC"), "undecided");
  SQLite::Database(path, SQLite::OPEN_READWRITE)
      .exec("DELETE FROM document WHERE kind = 'explanation'");
  auto untested = roles();
  EXPECT_EQ(untested.at("qp_count=1, transport=RC"), "untested");
  EXPECT_EQ(untested.at("qp_count=60, transport=RC"), "beyond");
}

// Claim:  before anything else the page says what device was measured, whether the layout is
//         proven, and the command as it was typed; a run that does not hold these says so.
TEST(Report, BeginsWithWhatWasMeasuredAndHow) {
  const Scratch scratch;
  const auto head = [](const std::string& page) { return page.substr(0, page.find("</header>")); };
  const std::string path = scratch / "run.db";
  auto run = full_run(path);
  std::string page = head(report_html(run, options_of(path)).value());
  for (const char* text :
       {"Your own command", "Layout proven equivalent", "Command, as typed",
        "greynic run 'a &lt;b&gt;.json' --target 'exec:./m.sh --it'\\''s' --seed 7", "Seed", "Made",
        " UTC"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text << "\n" << page;
  }
  EXPECT_NE(page.find(run.header().version), std::string::npos);
  EXPECT_NE(page.find(run.header().made), std::string::npos);
  SQLite::Database(path, SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE header SET value = 'twin:cx6' WHERE name = 'target';"
          "DELETE FROM header WHERE name IN ('command', 'version', 'made');"
          "DELETE FROM document WHERE kind = 'optimization';"
          "DROP TABLE checksum");  // as in runs of before
  page = head(report_html(results::RunStore::open_to_read(path).value(), options_of(path)).value());
  for (const char* text : {"Virtual device", "does not say whether it is proven",
                           "does not hold its command", "greynic run shown.json", "not kept"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text << "\n" << page;
  }
}

// Claim:  what the page says of the layouts is what `greynic tune` kept, to the digit that it
//         printed; nothing is computed again from layouts, whose rules may carry other weights.
TEST(Report, SaysOfTheLayoutsWhatTheTerminalSaid) {
  NEEDS_PICTURES();
  const Scratch scratch;
  const std::string page = own_part(full_report(scratch));
  EXPECT_NE(page.find("tries 99.70 matchers on average before, and 20.03 after"),
            std::string::npos);
  EXPECT_EQ(page.find("1.90 matchers"), std::string::npos) << "computed from the layout";
  for (const char* text : {"24513 pairs of rules", "20.02 [19.15, 20.93] (extrapolated)",
                           "97.23 [96.27, 98.21]", "zipf:1.1"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  const auto walk = charts_of(full_report(Scratch()), "walk").at(0).at("series");
  EXPECT_EQ(walk.at(1).at("points").dump(), "[[0,0.0],[2,0.25],[41,1.0]]");
  const auto tradeoff = charts_of(full_report(Scratch()), "tradeoff").at(0).at("series");
  EXPECT_EQ(tradeoff.at(0).at("points").dump(), "[[277,60.5],[369,20.0312]]");
  const auto masks = charts_of(full_report(Scratch()), "tradeoff").at(1);
  EXPECT_EQ(masks.at("taken"), 410);
  EXPECT_EQ(masks.at("series").at(0).at("points").dump(), "[[277,40],[410,12]]");
  EXPECT_EQ(masks.at("series").at(1).at("points").dump(), "[[277,38],[410,9]]");
}

/// A run without a campaign, whose two configurations differ in one measure.
std::string imported(const Scratch& scratch, const std::string& measure) {
  const std::string path = scratch / (measure + ".db");
  results::RunHeader header;
  header.campaign_name = "perftest";
  header.target = "import:perftest";
  auto run = results::RunStore::open_to_append(path, header);
  EXPECT_TRUE(run);
  for (const double value : {300.0, 20.0}) {
    Observation observation;
    observation.asked = {{"qp_count", value}};
    observation.outcome = Outcome::kMeasured;
    observation.measures[measure] = {value, std::nullopt};
    EXPECT_TRUE(run->append(observation));
  }
  return report_html(*run, options_of(path)).value();
}

// Claim:  the best configuration is the one with the least cost or the most bandwidth; where nobody
//         knows which direction is better, none is called the best, and the page says so.
TEST(Report, KnowsWhichDirectionIsBetter) {
  NEEDS_PICTURES();
  const Scratch scratch;
  const auto best = [](const std::string& page) {
    std::smatch found;
    const std::string head = page.substr(0, page.find("<main>"));
    const std::regex card("Best</div><div class=\"value\">([^<]*)<");
    return std::regex_search(head, found, card) ? found[1].str() : "";
  };
  EXPECT_EQ(best(imported(scratch, "packet_cost_ns")), "20 ns");
  EXPECT_EQ(best(imported(scratch, "subtable_lookups_per_packet")), "20 lookups");
  EXPECT_EQ(best(imported(scratch, "bandwidth_gbps")), "300 Gbit/s");
  const std::string unknown = imported(scratch, "cost_per_container");
  EXPECT_EQ(best(unknown), "not known");
  EXPECT_NE(unknown.find("no configuration is called the best"), std::string::npos);
  const auto first_row = [&](const std::string& measure) {
    return charts_of(imported(Scratch(), measure), "walls").at(0).at("rows").at(0).at(1);
  };
  EXPECT_EQ(first_row("packet_cost_ns"), 20.0);
  EXPECT_EQ(first_row("bandwidth_gbps"), 300.0);
  const auto axis = [&](const std::string& measure) {
    return charts_of(imported(Scratch(), measure), "walls").at(0).at("axis").dump();
  };
  EXPECT_EQ(axis("packet_cost_ns"), R"json({"scale":"log","title":"packet cost (ns)"})json");
  EXPECT_EQ(axis("miss_share"), R"json({"scale":"share","title":"miss (share)"})json");
  EXPECT_EQ(axis("cost_per_container"),
            R"json({"scale":"linear","title":"cost per container"})json");
}

// Claim:  a run without observations and documents that are not what they should be are refused, by
//         name.
TEST(Report, RefusesWhatItCannotShow) {
  const Scratch scratch;
  const std::string empty = scratch / "empty.db";
  auto store = results::RunStore::open_to_append(empty, header_of("empty"));
  ASSERT_TRUE(store);
  EXPECT_EQ(exit_code(report_html(*store, options_of(empty)).error().code), 2);
  const std::string path = scratch / "run.db";
  auto run = full_run(path);
  for (const auto& [kind, text] : std::vector<std::pair<std::string, std::string>>{
           {"explanation", "{"},
           {"explanation", R"({"walls": 3})"},
           {"explanation", R"({"walls": [{}]})"},
           {"explanation", R"({"walls": [], "causes": [{}]})"},
           {"explanation", R"({"walls": [], "causes": [{"text": 5}]})"},
           {"explanation", R"({"walls": [], "causes": "many"})"},
           {"model", "not json"},
           {"model", R"({"law": 3})"},
           {"model", R"({"law": "x", "findings": [1]})"},
           {"layout", R"({"tables": [{"matchers": [{"rules": [{"weight": "heavy"}]}]}]})"},
           {"layout", R"({"tables": [3]})"},
           {"gain", R"({"before": "little"})"},
           {"optimization", R"({"before": {}, "after": {}})"},
           {"plan", R"({"report": {"kept": "all"}})"},
           {"plan", R"({"report": {"raw": 3}})"}}) {
    auto good = run.kept(kind);
    ASSERT_TRUE(good);
    ASSERT_TRUE(run.keep(kind, text));
    const auto page = report_html(run, options_of(path));
    ASSERT_FALSE(page) << kind << " " << text;
    EXPECT_EQ(exit_code(page.error().code), 2);
    EXPECT_NE(page.error().message.find(path), std::string::npos) << page.error().message;
    ASSERT_TRUE(run.keep(kind, good->empty() ? "{}" : *good));
  }
}

TEST(Report, SaysWhyItHasNoPictures) {
  const std::array<EmbeddedFile, 1> without = {{{"page.css", "p {}"}}};
  web::Page page("Without", without);
  page.chart({{"kind", "gain"}}, "A picture");
  web::Table table({"a", ">b"});
  table.add({"x", "1"});
  page.table(table);
  const std::string text = page.text();
  EXPECT_EQ(text.find("<figure"), std::string::npos);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_NE(text.find("scripts/setup.sh"), std::string::npos);
  EXPECT_NE(text.find("<td>x</td>"), std::string::npos);
  const auto live = web::check_live_pages(without);
  ASSERT_FALSE(live.has_value());
  EXPECT_EQ(live.error().code, ErrorCode::kMissing);
  const std::array<EmbeddedFile, 1> with = {{{"echarts.min.js", "let x;"}}};
  EXPECT_TRUE(web::check_live_pages(with));
}

}  // namespace
}  // namespace greynic::report
