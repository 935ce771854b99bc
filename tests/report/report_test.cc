#include "greynic/report/report.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <nlohmann/json.hpp>
#include <regex>

#include "../results/scratch.h"
#include "greynic/web/page.h"

namespace greynic::report {
namespace {

using greynic::testing::Scratch;

constexpr const char* kCampaign = R"({
  "version": 1, "name": "shown",
  "factors": { "qp_count": { "type": "numeric", "levels": [1, 8, 64] },
               "transport": { "type": "categorical", "levels": ["RC", "UC"] } },
  "design": "full", "baseline": { "qp_count": 1, "transport": "RC" },
  "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
  "measure": { "repeats": 2, "seconds": 1 } })";

constexpr const char* kExplanation = R"({
  "version": 1, "campaign": "shown", "metric": "bandwidth_gbps", "bound": "a fifth less",
  "expected": 90, "confidence": 0.99, "configurations": 6, "tests_read": 12, "tests_ordered": 9,
  "walls": [{ "configuration": { "qp_count": 64, "transport": "RC" }, "cause": 0 },
            { "configuration": { "qp_count": 64, "transport": "UC" }, "cause": null }],
  "causes": [{ "text": "qp_count >= 64", "by_experiment": true, "confidence": 0.995,
    "severity": { "value": 0.5, "low": 0.45, "high": 0.55 }, "walls_explained": 1,
    "evidence": [{ "role": "all terms", "wall": true, "decided": true, "tests": 5, "p_value": 1e-5,
                   "ratio": { "value": 0.5, "low": 0.45, "high": 0.55 } }] }],
  "critical_path": { "symptom": "S6", "symptom_text": "masks are queried", "stages": [
    { "stage": "host", "settings": ["thread_count"], "healed": null, "alone": null, "up_to_here": null,
      "holds": false, "counters": [] },
    { "stage": "caches", "settings": ["qp_count"], "healed": { "value": 1.01, "low": 0.98, "high": 1.04 },
      "alone": null, "up_to_here": { "value": 0.99, "low": 0.97, "high": 1.02 }, "holds": false, "counters": [] },
    { "stage": "server decap", "settings": [], "healed": { "value": 3.125, "low": 3.05, "high": 3.2 },
      "alone": null, "up_to_here": { "value": 0.3185, "low": 0.31, "high": 0.33 }, "holds": true,
      "counters": [{ "name": "server.rx_steering_pipe_hops", "baseline": 1.9, "wall": 571.9 }] }] },
  "sensitivity": { "noise": 0.031, "paths": 8, "rows": 32, "settings": [
    { "factor": "server_decap_masks", "healed": null, "weaker": null, "mean": null, "mean_of_size": null,
      "stronger": { "level": 80, "ratio": { "value": 0.61, "low": 0.6, "high": 0.62 } }, "spread": 0.08,
      "first": { "value": 0.967, "low": 0.91, "high": 1.0 }, "total": { "value": 0.981, "low": 0.93, "high": 1.02 } }] },
  "notes": ["a note"] })";

constexpr const char* kModel = R"({
  "version": 1, "law": "pipeline", "observations": 12, "findings": ["nothing odd"],
  "parameters": [{ "name": "line_gbps", "value": 97.5, "low": 97, "high": 98, "unit": "Gbit/s" }] })";

constexpr const char* kLayouts = R"({
  "before": { "version": 1, "tables": [{ "id": 0, "matchers": [
    { "mask": { "ipv4_src": "0xffffff00" }, "rules": [{ "weight": 0.1 }] },
    { "mask": { "ipv4_dst": "0xffffffff" }, "rules": [{ "weight": 0.9 }, { "weight": 0 }] }] }] },
  "after": { "version": 1, "tables": [{ "id": 0, "matchers": [
    { "mask": {}, "rules": [{ "weight": 1 }] }] }] } })";

constexpr const char* kOptimization = R"({
  "version": 1, "rules": "host.flows", "traffic": "zipf:1.1", "rules_dropped": 0,
  "before": { "tables": 1, "matchers": 114, "rules": 277, "matchers_tried_mean": 99.7041,
              "matchers_tried_most": 114, "shares_by_tried": [[90, 0.5], [114, 0.5]],
              "predicted": { "bandwidth_gbps": { "value": 20.02, "low": 19.15, "high": 20.93 },
                             "extrapolated": true } },
  "after": { "tables": 7, "matchers": 108, "rules": 369, "matchers_tried_mean": 20.0312,
             "matchers_tried_most": 41, "shares_by_tried": [[2, 0.25], [41, 0.75]],
             "predicted": { "bandwidth_gbps": { "value": 97.23, "low": 96.27, "high": 98.21 } } },
  "curve": [{ "growth": 1, "rules": 277, "matchers_tried_mean": 60.5, "matchers_tried_p99": 90 },
            { "growth": 1.5, "rules": 369, "matchers_tried_mean": 20.0312, "matchers_tried_p99": 41 }],
  "proof": { "tables": 7, "pairs": 24513, "verified": true } })";

constexpr const char* kGain =
    R"({ "metric": "bandwidth_gbps", "before": 45, "after": 80,
         "predicted": { "value": 82, "low": 78, "high": 86 } })";

results::RunHeader header_of(const std::string& name) {
  results::RunHeader header;
  header.campaign_name = name;
  header.campaign_text = kCampaign;
  header.target = "exec:./m.sh --it's";
  header.seed = 7;
  header.command = "greynic run 'a <b>.json' --target 'exec:./m.sh --it'\\''s' --seed 7";
  return header;
}

/// A run with every kind of content that a report can show.
results::RunStore full_run(const std::string& path, const std::string& name = "shown") {
  auto store = results::RunStore::open_to_append(path, header_of(name));
  EXPECT_TRUE(store) << store.error().message;
  for (const double qps : {1.0, 8.0, 64.0}) {
    for (const char* transport : {"RC", "UC"}) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        Observation observation;
        observation.asked = {{"qp_count", qps}, {"transport", std::string(transport)}};
        observation.repeat = repeat;
        observation.outcome = Outcome::kMeasured;
        observation.measures["bandwidth_gbps"] = {90.125 - qps + repeat, std::nullopt};
        observation.measures["latency_us_p50"] = {3.0 + qps / 10, std::nullopt};
        for (std::uint64_t i = 0; i < 2000; ++i) observation.latency.record(3000 + i * (1 + i % 7));
        EXPECT_TRUE(store->append(observation));
      }
    }
  }
  Observation refused;
  refused.asked = {{"qp_count", 128.0}, {"transport", std::string("</script><script>alert(1)")}};
  refused.outcome = Outcome::kRefused;
  refused.reason = "ENOMEM <b>";
  EXPECT_TRUE(store->append(refused));
  for (const auto& [kind, text] : {std::pair{"explanation", kExplanation},
                                   {"model", kModel},
                                   {"layout", kLayouts},
                                   {"optimization", kOptimization},
                                   {"gain", kGain},
                                   {"odd", "{\"a\":1}"}}) {
    EXPECT_TRUE(store->keep(kind, text));
  }
  return std::move(*store);
}

ReportOptions options_of(const std::string& path) {
  ReportOptions options;
  options.run_path = path;
  options.predictor = [](const Configuration& configuration,
                         const std::string& measure) -> std::optional<Predicted> {
    if (measure != "bandwidth_gbps") return std::nullopt;
    const double value = 90 - configuration.number("qp_count");
    return Predicted{value, value - 2, value + 2, configuration.number("qp_count") > 32};
  };
  return options;
}

std::string full_report(const Scratch& scratch, const std::string& name = "shown") {
  const std::string path = scratch / "run.db";
  auto html = report_html(full_run(path, name), options_of(path));
  EXPECT_TRUE(html) << html.error().message;
  return html.value_or("");
}

/// The page up to the drawing library, whose text holds words of HTML that it only ever draws.
std::string own_part(const std::string& page) { return page.substr(0, page.find("<script>")); }

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
  const Scratch scratch;
  std::string page = full_report(scratch);
  page.erase(page.find("<script type=\"application/json\""));
  for (const char* text : {"89.12",  // a value: 90.125 - 1
                           "82.62",
                           "26.62",  // means of two repeats
                           "qp_count &gt;= 64", "50.0 %", "1e-05", "wall, cause 1",
                           "wall, no cause found", "line_gbps", "[97, 98]", "nothing odd",
                           "[87, 91]",  // a prediction's interval
                           "ipv4_dst/0xffffffff", "90.0 %", "1.78 ×", "82 [78, 86]", "refused",
                           "Symptom S6", "3.125 [3.05, 3.2]", "0.3185 [0.31, 0.33]",
                           "server.rx_steering_pipe_hops 1.9 -&gt; 571.9", "0.967 [0.91, 1]",
                           "80: 0.61 [0.6, 0.62]", "a note", "Document: odd"}) {
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

/// What the browser made of a page, and what it complained of. Empty when there is no browser.
std::string opened_in_browser(const Scratch& scratch, const std::string& file,
                              const std::string& flags = {}) {
  const std::string console = scratch / "console.txt";
  const std::string dom = scratch / "dom.html";
  const std::string command = "timeout 100 " GREYNIC_CHROMIUM
                              " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
                              " --window-size=1280,2000 --virtual-time-budget=10000 " +
                              flags + " --user-data-dir=" + (scratch / "profile") +
                              " --enable-logging=stderr --dump-dom 'file://" + file + "' > " + dom +
                              " 2> " + console;
  EXPECT_EQ(std::system(command.c_str()), 0) << testing::read_file(console);
  const std::string complaints = testing::read_file(console);
  EXPECT_EQ(complaints.find(":CONSOLE"), std::string::npos) << complaints;
  return testing::read_file(dom);
}

/// Opens the page in a frame of this width, runs `script` there once it has loaded ("page" is its
/// window), and gives the text that the script returns.
std::string asked_in_browser(const Scratch& scratch, const std::string& page, int width,
                             const std::string& script, const std::string& flags = {}) {
  const std::string file = scratch.write("report.html", page);
  const std::string frame = scratch.write(
      "frame.html", "<body><iframe id='f' src='file://" + file +
                        "' style='border:0;height:1500px;width:" + std::to_string(width) +
                        "px'></iframe><script>const f = document.getElementById('f');"
                        "f.onload = () => { const page = f.contentWindow, root = "
                        "page.document.documentElement;" +
                        "document.body.dataset.answer = (() => {" + script +
                        "})(); };</script></body>");
  const std::string dom =
      opened_in_browser(scratch, frame, "--allow-file-access-from-files " + flags);
  std::smatch answer;
  return std::regex_search(dom, answer, std::regex("data-answer=\"([^\"]*)\"")) ? answer[1].str()
                                                                                : dom;
}

#define NEEDS_BROWSER()                                                      \
  if (std::string(GREYNIC_CHROMIUM).empty()) {                               \
    GTEST_SKIP() << "no Chromium here; scripts/setup.sh --test installs it"; \
  }

// Claim:  in a browser every picture is drawn and nothing is complained of.
// Oracle: headless Chromium: its console, and the page's own pictures after its scripts ran.
TEST(Report, OpensInABrowserWithItsChartsDrawn) {
  NEEDS_BROWSER();
  const Scratch scratch;
  std::string drawn =
      opened_in_browser(scratch, scratch.write("report.html", full_report(scratch)));
  EXPECT_NE(drawn.find("data-charts-drawn=\"15/15\""), std::string::npos) << drawn.substr(0, 300);
  // The pictures themselves: each an SVG with shapes in it. The library's text holds SVG names too.
  drawn = std::regex_replace(drawn.substr(drawn.find("<main>"), drawn.find("</main>")),
                             std::regex("\\s+"), " ");
  std::size_t pictures = 0;
  for (std::size_t at = drawn.find("<svg"); at != std::string::npos;
       at = drawn.find("<svg", at + 1)) {
    const std::string picture = drawn.substr(at, drawn.find("</svg>", at) - at);
    std::size_t shapes = 0;
    for (std::size_t s = picture.find("<path"); s != std::string::npos;
         s = picture.find("<path", s + 1)) {
      ++shapes;
    }
    EXPECT_GE(shapes, 5U) << picture.substr(0, 400);
    ++pictures;
  }
  EXPECT_EQ(pictures, 15U);
}

// Claim:  on a phone the page does not scroll sideways and every picture fits its column; for paper
//         every folded table is open and every picture is as wide as the paper; afterwards all is
//         as before.
// Oracle: the layout that headless Chromium makes at 390 px.
TEST(Report, FitsAPhoneAndPaper) {
  NEEDS_BROWSER();
  const Scratch scratch;
  const std::string answer = asked_in_browser(
      scratch, full_report(scratch), 390,
      "const widths = () => [...root.querySelectorAll('.chart svg')].map(s => s.clientWidth);"
      "const closed = () => root.querySelectorAll('details:not([open])').length;"
      "const overhang = () => root.scrollWidth - root.clientWidth;"
      "const phone = [overhang(), Math.max(...widths()) <= 390, closed() > 0];"
      "page.dispatchEvent(new Event('beforeprint'));"
      "const column = root.querySelector('section').clientWidth;"
      "const paper = [Math.max(...widths()) > 500, Math.max(...widths()) <= column, closed()];"
      "page.dispatchEvent(new Event('afterprint'));"
      "return [...phone, ...paper, overhang(), closed() > 0].join(' ');");
  EXPECT_EQ(answer, "0 true true true true 0 0 true");
}

// Claim:  where the reader's system is dark, the page and its pictures are dark; paper is light.
TEST(Report, IsDarkWhereTheReaderWantsIt) {
  NEEDS_BROWSER();
  const Scratch scratch;
  const std::string script =
      "const light = (c) => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) > 382;"
      "const ground = () => light(page.getComputedStyle(root.querySelector('section'))"
      ".backgroundColor);"
      "const text = () => light(page.getComputedStyle("
      "root.querySelector('.chart svg text')).fill);"
      "const screen = [ground(), text()];"
      "page.dispatchEvent(new Event('beforeprint'));"
      "return [...screen, ground(), text()].join(' ');";
  const std::string page = full_report(scratch);
  EXPECT_EQ(asked_in_browser(scratch, page, 900, script, "--blink-settings=preferredColorScheme=0"),
            "false true true false");
  EXPECT_EQ(asked_in_browser(scratch, page, 900, script), "true false true false");
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
  EXPECT_TRUE(web::check_live_pages());
}

}  // namespace
}  // namespace greynic::report
