#include "greynic/report/report.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <regex>

#include "../results/scratch.h"

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

constexpr const char* kGain =
    R"({ "metric": "bandwidth_gbps", "before": 45, "after": 80,
         "predicted": { "value": 82, "low": 78, "high": 86 } })";

results::RunHeader header_of(const std::string& name) {
  results::RunHeader header;
  header.campaign_name = name;
  header.campaign_text = kCampaign;
  header.target = "exec:./m.sh --it's";
  header.seed = 7;
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
// place.
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
// JavaScript.
TEST(Report, HoldsEveryNumberInTables) {
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
                           "1.90 matchers",
                           "1.78 ×",
                           "[78, 86]",
                           "refused",
                           "a note",
                           "Document: odd"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

// Claim:  causes that were tested on a device are shown, not the hypotheses of a later look at the
// same run.
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

// Claim:  in a browser every picture is drawn and nothing is complained of.
// Oracle: headless Chromium: its console, and the page's own pictures after its scripts ran.
TEST(Report, OpensInABrowserWithItsChartsDrawn) {
  const std::string browser = GREYNIC_CHROMIUM;
  if (browser.empty()) GTEST_SKIP() << "no Chromium here; scripts/setup.sh --test installs it";
  const Scratch scratch;
  const std::string page = scratch.write("report.html", full_report(scratch));
  const std::string console = scratch / "console.txt";
  const std::string dom = scratch / "dom.html";
  const std::string command = "timeout 100 " + browser +
                              " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
                              " --window-size=1280,2000 --virtual-time-budget=10000"
                              " --user-data-dir=" +
                              (scratch / "profile") +
                              " --enable-logging=stderr --dump-dom 'file://" + page + "' > " + dom +
                              " 2> " + console;
  ASSERT_EQ(std::system(command.c_str()), 0) << testing::read_file(console);
  const std::string complaints = testing::read_file(console);
  EXPECT_EQ(complaints.find(":CONSOLE"), std::string::npos) << complaints;
  std::string drawn = testing::read_file(dom);
  EXPECT_NE(drawn.find("data-charts-drawn=\"12/12\""), std::string::npos) << drawn.substr(0, 300);
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
  EXPECT_EQ(pictures, 12U);
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

}  // namespace
}  // namespace greynic::report
