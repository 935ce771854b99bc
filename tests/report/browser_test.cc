/// The page as a browser shows it.

#include <cstdlib>
#include <regex>

#include "full_run.h"

namespace greynic::report {
namespace {

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
  }                                                                          \
  NEEDS_PICTURES()

// Claim:  in a browser every picture is drawn and nothing is complained of.
// Oracle: headless Chromium: its console, and the page's own pictures after its scripts ran.
TEST(Report, OpensInABrowserWithItsChartsDrawn) {
  NEEDS_BROWSER();
  const Scratch scratch;
  std::string drawn =
      opened_in_browser(scratch, scratch.write("report.html", full_report(scratch)));
  EXPECT_NE(drawn.find("data-charts-drawn=\"16/16\""), std::string::npos) << drawn.substr(0, 300);
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
  EXPECT_EQ(pictures, 16U);
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

}  // namespace
}  // namespace greynic::report
