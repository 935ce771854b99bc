#include <cstdlib>
#include <fstream>

#include "greynic/http/server.h"
#include "greynic/monitor_page/monitor_page.h"
#include "host_fixture.h"
#include "program.h"

namespace greynic::monitor {
namespace {

using zero::Program;

class LivePage : public HostFixture {
 protected:
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// Claim:  in a browser the page draws hosts and series that are read, says why a host is not, and
//         complains of nothing.
// Oracle: headless Chromium: its console, and the page after some turns.
TEST_F(LivePage, DrawsWhatIsRead) {
  if (std::string(GREYNIC_CHROMIUM).empty()) {
    GTEST_SKIP() << "no Chromium here; scripts/setup.sh --test installs it";
  }
  start_agent();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  HostSpec absent = by_agent("absent");
  absent.agent = folder_ + "/nobody";
  start_collector({by_agent("web1"), absent});
  ASSERT_TRUE(wait_for([&] { return latest().contains("web1/server_requests{port=\"80\"}"); }));
  auto server = http::Server::open(":0");
  ASSERT_TRUE(server) << server.error().message;
  monitor_page::serve(**server, *collector_);
  (*server)->start();
  // The page's clock does not wait for a collector that gets no processor: then it is looked at for longer.
  std::string page;
  const std::string early = "waiting for a second sample";
  for (int seconds = 3; seconds < 100 && (page.empty() || page.find(early) != std::string::npos);
       seconds *= 4) {
    const std::string command = fmt::format(
        "timeout 100 " GREYNIC_CHROMIUM
        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1280,2000 "
        "--virtual-time-budget={2}000 --user-data-dir={0}/profile --enable-logging=stderr "
        "--dump-dom 'http://{1}/' > {0}/dom 2> {0}/console",
        folder_, (*server)->address(), seconds);
    ASSERT_EQ(std::system(command.c_str()), 0) << text_of("console");
    EXPECT_EQ(text_of("console").find(":CONSOLE"), std::string::npos) << text_of("console");
    page = text_of("dom");
  }
  EXPECT_EQ(page.find("not reached"), std::string::npos);
  EXPECT_NE(page.find("1 of 2"), std::string::npos);
  EXPECT_NE(page.find("web1 server_requests{port=\"80\"}"), std::string::npos);
  EXPECT_NE(page.find("no agent at"), std::string::npos) << "why a host is not read";
  EXPECT_NE(page.find("<option value=\"server_requests\">"), std::string::npos);
  EXPECT_EQ(page.find(early), std::string::npos) << "several turns";
  const std::size_t map = page.find("id=\"map\""), lines = page.find("id=\"lines\"");
  ASSERT_NE(map, std::string::npos);
  ASSERT_NE(lines, std::string::npos);
  const std::string cells = page.substr(map, lines - map);
  EXPECT_GE(count_of("<path", cells), 2U) << "a cell for each host";
  EXPECT_EQ(count_of("fill=\"rgb(0,158,115)\"", cells), 1U) << "the host that is read";
  EXPECT_EQ(count_of("fill=\"#c0392b\"", cells), 1U) << "the host that is not";
  EXPECT_GE(count_of("<svg", page.substr(lines)), 4U) << "a picture for each series";
  (*server).reset();
}

}  // namespace
}  // namespace greynic::monitor
