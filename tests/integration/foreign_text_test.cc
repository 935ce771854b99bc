/// Text from outside that is no text, or that steers a terminal: it is refused with its place, or
/// spelled out.

#include <gtest/gtest.h>

#include "greynic/core/text.h"
#include "program.h"

namespace greynic::integration {
namespace {

const std::string kBad = "\xff\xfe\xe9";

Outcome on_a_twin(const Folder& folder, const std::string& more) {
  return greynic(folder,
                 "run mask_wall --target twin:cx6 --set server_decap_masks=0,40 --set "
                 "message_bytes=65536 -o " +
                     (folder / "run.db") + " " + more);
}

// Claim:  bytes that are no UTF-8 are told with their file and place wherever they come in.
TEST(ForeignText, ThatIsNoUtf8IsRefusedWithItsPlace) {
  const Folder folder;
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  };
  const std::string pict = file("model.pict", "A: 1, 2\nB: x, " + kBad + "\n");
  const std::string table = file("rows.tsv", "A\tB\n1\t" + kBad + "\n");
  const std::string good_pict = file("good.pict", "A: 1, 2\nB: x, y\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plan " + file("campaign.json", "{\"version\": 1,\n\"name\": \"" + kBad + "\"}"), "line 2"},
      {"cover " + pict, "line 2, column 7"},
      {"cover " + file("m.citmodel", "2\n" + kBad + "\n") + " --format casa", "line 2"},
      {"cover " + file("m.dimacs", "c 1 " + kBad + "\np cnf 1 1\n1 0\n"), "line 1"},
      {"cover " + good_pict + " --check " + table, "line 2"},
      {"cover " + good_pict + " --seeds " + table, "line 2"},
      {"optimize " + file("a.rules", "@10.0.0.0/8" + kBad + "\n"), "line 1"},
      {"optimize " + file("a.flows", "table=0,tcp actions=note:" + kBad + "\n"), "line 1"},
      {"optimize " + file("tc.json", "[{\"kind\":\"" + kBad + "\"}]") + " --format tc", "line 1"},
      {"apply " + file("layout.json", "{\"version\":\n1,\"tables\":\"" + kBad + "\"}") +
           " --target twin:cx6",
       "line 2"},
      {"import perftest " + file("log.log", " #bytes #iterations\n" + kBad + "\n") + " -o " +
           (folder / "o.db"),
       "line 2"},
      {"predict " + file("model.json", "{\"law\": \"" + kBad + "\"}") + " --at qp_count=1",
       "line 1"},
      {"run mask_wall --target twin:" + file("rnic.json", "{\"name\": \"" + kBad + "\"}") + " -o " +
           (folder / "r.db"),
       "line 1"},
      {"run mask_wall --target twin:cx6 --set 'transport=" + kBad + "' -o " + (folder / "r.db"),
       "word 6"},
      {"plan '" + kBad + "'", "word 2"},
      {"run mask_wall --target 'exec:echo " + kBad + "' -o " + (folder / "r.db"), "word 4"},
      {"'" + kBad + "'", "word 1"}};
  for (const auto& [arguments, place] : cases) {
    const Outcome refused = greynic(folder, arguments);
    EXPECT_EQ(refused.exit_code, 2) << printable(arguments) << "\n" << refused.err;
    EXPECT_NE(refused.err.find(place), std::string::npos) << printable(arguments) << "\n"
                                                          << refused.err;
    EXPECT_EQ(bad_utf8(refused.err + refused.out), std::nullopt) << printable(arguments);
  }
}

// Claim:  what a command under test answers cannot end greynic, nor get into its files as no text.
TEST(ForeignText, OfACommandUnderTestIsAnOutcome) {
  const Folder folder;
  std::ofstream(folder / "answer.sh")
      << "while read -r line; do id=${line#*\"id\":}; id=${id%%,*}\n"
         "printf '{\"id\":%s,\"outcome\":\"failed\",\"reason\":\"\\377\\376\\033[2J\"}\\n' $id\n"
         "printf '\\377\\376 no answer \\033[2J\\n'\n"
         "printf '{\"id\":%s,\"outcome\":\"failed\",\"reason\":\"\\\\u001b[2J\"}\\n' $id; done\n";
  const Outcome run =
      greynic(folder,
              "run mask_wall --set server_decap_masks=0,40 --set message_bytes=65536 "
              "--target 'exec:sh " +
                  (folder / "answer.sh") + "' -o " + (folder / "run.db"));
  EXPECT_NE(run.exit_code, 4) << run.err;
  for (const std::string& arguments :
       {"export " + (folder / "run.db"), "explain " + (folder / "run.db") + " --json",
        "report " + (folder / "run.db") + " -o " + (folder / "r.html")}) {
    const Outcome read = greynic(folder, arguments);
    EXPECT_NE(read.exit_code, 4) << arguments << "\n" << read.err;
    for (const std::string& text : {read.out, read.err, run.out}) {
      EXPECT_EQ(bad_utf8(text), std::nullopt) << arguments;
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << arguments << printable(text);
    }
  }
}

// Claim:  what steers a terminal in a file, a name or an answer does not reach it.
// Method: escape sequences in everything that is told or shown, also on a terminal.
TEST(ForeignText, DoesNotSteerTheTerminal) {
  const Folder folder;
  const std::string escape = "\x1b]0;owned\x07\x1b[2J";
  std::ofstream(folder / "bad.pict") << "A: 1, 2" << escape << "\nB: x, y\n";
  std::ofstream(folder / "bad.json") << "{\"version\": 1, \"name\": \"\\u001b[2J\\u009b2J\"}";
  std::ofstream(folder / "bad.rules") << "@10.0.0.0/8 " << escape << "\n";
  const std::vector<std::string> told = {
      "plan '" + escape + "'",
      "plan " + (folder / "bad.json"),
      "plan mask_wall --set '" + escape + "=1'",
      "optimize " + (folder / "bad.rules"),
      "run mask_wall --target 'twin:" + escape + "' -o " + (folder / "r.db"),
      "'" + escape + "'"};
  for (const std::string& arguments : told) {
    const Outcome said = greynic(folder, arguments);
    EXPECT_EQ((said.err + said.out).find('\x1b'), std::string::npos)
        << printable(arguments) << said.err;
  }
  // Data goes to a file as it is; on a terminal it is spelled out.
  const std::string cover = "cover " + (folder / "bad.pict");
  EXPECT_NE(greynic(folder, cover).out.find(escape), std::string::npos);
  const std::string on_terminal = "script -qec '" + std::string(GREYNIC_BINARY) + " " + cover +
                                  "' /dev/null >" + (folder / "screen") + " </dev/null";
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "needs script, of bsdutils";
  ASSERT_EQ(std::system(on_terminal.c_str()), 0);
  const std::string screen = text_of(folder / "screen");
  EXPECT_EQ(screen.find("\x1b]0;"), std::string::npos);
  EXPECT_NE(screen.find("\\u001b]0;owned"), std::string::npos) << printable(screen);
}

// Claim:  a seed is a number from 0 to 2^64 - 1, or is refused; nothing wraps around.
TEST(ForeignText, ThatIsNoSeedIsRefused) {
  const Folder folder;
  for (const std::string seed :
       {"-1", "18446744073709551616", "1e3", "0x10", "1.5", "''", "' 7'", "7x"}) {
    for (const std::string option : {"--seed", "--plan-seed", "--measure-seed"}) {
      const Outcome refused = on_a_twin(folder, option + "=" + seed);
      EXPECT_EQ(refused.exit_code, 2) << option << " " << seed << refused.err;
    }
  }
  EXPECT_EQ(on_a_twin(folder, "--seed 18446744073709551615").exit_code, 0);
  EXPECT_NE(greynic(folder, "export " + (folder / "run.db") + " --format openmetrics").exit_code,
            4);
}

// Claim:  links in a circle are told as what they are.
TEST(ForeignText, OfLinksInACircleIsToldAsSuch) {
  const Folder folder;
  const std::string loop = folder / "loop";
  std::filesystem::create_symlink("loop", loop);
  for (const std::string& arguments :
       {"plan " + loop, "explain " + loop, "fit " + loop, "export " + loop,
        "compare " + loop + " " + loop, "cover " + loop, "cover " + loop + " --format casa",
        "optimize " + loop, "apply " + loop + " --target twin:cx6",
        "predict " + loop + " --at qp_count=1", "watch " + loop,
        "import perftest " + loop + " -o " + (folder / "o.db"),
        "run " + loop + " --target twin:cx6", "run mask_wall --target twin:" + loop,
        "run mask_wall --target twin:cx6 -o " + loop, "plan mask_wall -o " + loop,
        "tune mask_wall --target twin:cx6 --out " + loop,
        "run mask_wall --target twin:cx6 -o " + loop + "/run.db"}) {
    const Outcome refused = greynic(folder, arguments);
    EXPECT_TRUE(refused.exit_code == 2 || refused.exit_code == 3)
        << arguments << ": " << refused.exit_code << refused.err;
    EXPECT_NE(refused.err.find("loop"), std::string::npos) << arguments << refused.err;
  }
}

}  // namespace
}  // namespace greynic::integration
