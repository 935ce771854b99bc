/// Forty-odd kinds of bad files, each given to every reader: by day an eighth of them, by night all, or the
/// eighth GREYNIC_PART (0, that of the day, to 7) where a whole night is too long.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "../integration/program.h"
#include "greynic/core/text.h"
#include "greynic/series/store.h"

namespace greynic::integration {
namespace {

namespace fs = std::filesystem;

const std::string kSource = GREYNIC_SOURCE_DIR;
constexpr unsigned kMostSeconds = 10;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// What a reader is called with: FILE is the bad file, OUT what it may write, MADE a folder of good
/// files.
struct Reader {
  std::string name;
  std::string good;  ///< a file that it takes
  std::string arguments;
  std::string extension = ".txt";
  std::string place = {};  ///< in MADE, where others name it; else it is a file of the trial's own
  bool may_miss = false;   ///< there need not be one
  bool is_log = false;     ///< one that was cut off in its head is good
  std::string takes = {};  ///< a kind that is no fault to this one
};

struct Kind {
  std::string name;
  std::function<std::string(std::string good)> bytes;
  bool always_bad = true;  ///< no reader can take it
};

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

/// Every run of digits becomes this.
std::string with_numbers(const std::string& good, const std::string& number) {
  std::string text;
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(good[at])) == 0) {
      text += good[at];
      continue;
    }
    text += number;
    while (at + 1 < good.size() &&
           (std::isdigit(static_cast<unsigned char>(good[at + 1])) != 0 || good[at + 1] == '.'))
      ++at;
  }
  return text;
}

/// Every piece becomes another.
std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string noise(std::size_t bytes) {
  std::mt19937_64 random(11);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::vector<Kind> kinds() {
  using S = std::string;
  const auto fixed = [](const S& text) { return [text](const S&) { return text; }; };
  const auto middle = [](const S& piece) {
    return [piece](S good) { return good.insert(good.size() / 2, piece); };
  };
  return {
      {"empty", fixed("")},
      {"newline", fixed("\n")},
      {"blanks", fixed(S(5000, ' '))},
      {"zeros", fixed(S(4096, '\0'))},
      {"ones", fixed(S(4096, '\xff'))},
      {"noise", fixed(noise(65536))},
      {"byte order mark", [](const S& good) { return "\xef\xbb\xbf" + good; }, false},
      {"UTF-16",
       [](const S& good) {
         S wide = "\xff\xfe";
         for (const char c : good) wide += {c, '\0'};
         return wide;
       }},
      {"half", [](const S& good) { return good.substr(0, good.size() / 2); }, false},
      {"a byte short", [](const S& good) { return good.substr(0, good.size() - 2); }, false},
      {"twice", [](const S& good) { return good + good; }, false},
      {"with a tail", [](const S& good) { return good + "\n%%% tail ]}"; }, false},
      {"zero inside", middle(S(1, '\0')), false},
      {"no UTF-8 inside", middle("\xc3\x28"), false},
      {"overlong UTF-8 inside", middle("\xc0\xaf"), false},
      {"surrogate inside", middle("\xed\xa0\x80"), false},
      {"escape inside", middle("\x1b[2J\x1b]0;x\x07"), false},
      {"carriage returns", [](const S& good) { return replaced(good, "\n", "\r\n"); }, false},
      {"brackets", fixed(S(100'000, '['))},
      {"many brackets", fixed(S(20'000'000, '['))},
      {"braces", fixed(repeated("{\"a\":", 100'000))},
      {"parentheses", fixed(S(100'000, '('))},
      {"open quote", fixed("\"" + S(1'000'000, 'a'))},
      {"long line", fixed(S(10'000'000, 'a'))},
      {"many lines", fixed(S(2'000'000, '\n'))},
      {"wide list", fixed("[0" + repeated(",0", 10'000'000) + "]")},
      {"list of lists", fixed("[[]" + repeated(",[]", 3'000'000) + "]")},
      {"list of objects", fixed("[{}" + repeated(",{}", 1'500'000) + "]")},
      {"null", fixed("null")},
      {"list", fixed("[]")},
      {"object", fixed("{}")},
      {"true", fixed("true")},
      {"text", fixed("\"text\"")},
      {"number", fixed("-1")},
      {"numbers negative", [](const S& good) { return with_numbers(good, "-1"); }, false},
      {"numbers infinite", [](const S& good) { return with_numbers(good, "1e999"); }, false},
      {"numbers of 20 digits",
       [](const S& good) { return with_numbers(good, "99999999999999999999"); }, false},
      {"numbers null", [](const S& good) { return with_numbers(good, "null"); }, false},
      {"numbers gone", [](const S& good) { return with_numbers(good, ""); }, false},
      {"keys twice", [](const S& good) { return replaced(good, "{", "{\"a\":1,\"a\":2,"); }, false},
      {"texts empty", [](const S& good) { return replaced(good, "e", ""); }, false},
      {"texts long",
       [](const S& good) { return replaced(good, "\": \"", "\": \"" + S(40'000, 'a')); }, false},
      {"letters raised",
       [](S good) {
         for (char& c : good) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
         return good;
       },
       false},
      {"web page", fixed("<!DOCTYPE html><html><body>404 Not Found</body></html>\n")},
      {"program", [](const S&) { return text_of(GREYNIC_BINARY).substr(0, 65536); }},
  };
}

struct Measured {
  int exit_code = -1;
  int signal = 0;
  std::uint64_t most_bytes = 0;
  std::string err;
};

/// Runs a command line of the shell; it is stopped when it takes too long.
Measured run(const std::string& arguments, const Folder& folder) {
  const std::string command = "exec " + std::string(GREYNIC_BINARY) + " " + arguments +
                              " >/dev/null 2>" + (folder / "err") + " </dev/null";
  const pid_t child = ::fork();
  if (child == 0) {
    // Of work, so that a busy machine makes no case fail; and of waiting for nothing.
    const rlimit work{kMostSeconds, kMostSeconds};
    ::setrlimit(RLIMIT_CPU, &work);
    ::alarm(30 * kMostSeconds);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, text_of(folder / "err")};
}

/// A store with a segment and a log, and folders that are stores but for what a reader puts there.
void make_stores(const Folder& made) {
  auto store = series::StoreWriter::open(made / "store");
  ASSERT_TRUE(store) << store.error().message;
  const series::Group group = {"host", "program", 1, {{"requests", "", "B", ""}}};
  for (const bool sealed : {true, false}) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      (*store)->add((*store)->group(group), static_cast<std::int64_t>(i), std::span(&i, 1));
    }
    ASSERT_TRUE(sealed ? (*store)->seal() : (*store)->commit());
  }
  for (const char* name : {"bad_log", "bad_raw", "bad_10s"}) {
    fs::create_directory(made / name);
    std::ofstream(made / name + "/lease").flush();
  }
}

constexpr const char* kAcl =
    "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\t\n";

std::string good_file(const Folder& made, const std::string& name, const std::string& text) {
  std::ofstream(made / name) << text;
  return made / name;
}

/// Of rules, and of models to cover.
std::vector<Reader> readers_of_rules(const Folder& made) {
  const auto file = [&](const std::string& name, const std::string& text) {
    return good_file(made, name, text);
  };
  const std::string acl = file("acl.rules", kAcl);
  const std::string pict = file("model.pict", "A: 1, 2\nB: x, y\nC: p, q\n");
  return {
      {"classbench", acl, "optimize FILE --format classbench -o OUT"},
      {"openflow",
       file("a.flows", " table=0, priority=10,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:3\n"),
       "optimize FILE --format openflow -o OUT"},
      {"fields", file("a.fields", "nw_src=1.2.3.4/32, tp_src=2888\n"),
       "optimize FILE --format fields -o OUT"},
      {"megaflow",
       file(
           "a.mega",
           "recirc_id(0),in_port(p7),eth_type(0x0800),ipv4(src=10.0.0.1), packets:3, actions:p9\n"),
       "optimize FILE --format megaflow -o OUT"},
      {"tc",
       file(
           "tc.json",
           R"([{"protocol":"ip","pref":10,"kind":"flower","chain":0,"options":{"keys":{"dst_ip":"10.0.0.0/8"},"actions":[{"kind":"gact","control_action":{"type":"drop"}}]}}])"),
       "optimize FILE --format tc -o OUT", ".json"},
      {"rules of any format", acl, "optimize FILE -o OUT"},
      {"pict", pict, "cover FILE --format pict"},
      {"casa", file("m.citmodel", "2\n3\n2 2 3\n"), "cover FILE --format casa"},
      {"constraints of casa", file("good.constraints", "2\n2\n- 0 - 2\n1\n+ 4\n"),
       "cover " + file("bad.citmodel", "2\n3\n2 2 3\n") + " --format casa", ".constraints",
       "bad.constraints", true},
      {"cnf", file("m.cnf", "c 1 a\np cnf 3 2\n1 -2 0\n2 3 0\n"), "cover FILE --format cnf"},
      {"cover model",
       file(
           "m.json",
           R"({"version":1,"parameters":[{"name":"a","levels":[1,2]},{"name":"b","levels":["x","y"]}]})"),
       "cover FILE --format json", ".json"},
      {"array", file("rows.tsv", "A\tB\tC\n1\tx\tp\n1\ty\tq\n2\tx\tq\n2\ty\tp\n"),
       "cover MADE/model.pict --check FILE"},
      {"array to go on with", made / "rows.tsv", "cover MADE/model.pict --already-run FILE"}};
}

/// Of what goes beside another file: to explain, to update, to compare and to show.
std::vector<Reader> readers_beside(const Folder& made) {
  const std::string levels =
      good_file(made, "levels.json", R"({"server_decap_masks":40,"message_bytes":65536})");
  return {
      {.name = "witness",
       .good = levels,
       .arguments = "explain mask_wall --target twin:cx6 --witness FILE --most-tests 2",
       .extension = ".json",
       .takes = "object"},
      {.name = "baseline",
       .good = levels,
       .arguments = "explain mask_wall --target twin:cx6 --witness MADE/levels.json "
                    "--baseline FILE --most-tests 2",
       .extension = ".json",
       .takes = "object"},
      {.name = "log",
       .good = made / "run.db",
       .arguments = "explain mask_wall --target twin:cx6 --witness MADE/levels.json --log FILE "
                    "--most-tests 2",
       .extension = ".db",
       .may_miss = true,
       .is_log = true},
      {"layout to update", made / "layout.json",
       "optimize MADE/acl.rules --update FILE --was MADE/acl.rules -o OUT", ".json"},
      {"rules of before", made / "acl.rules",
       "optimize MADE/acl.rules --update MADE/layout.json --was FILE -o OUT"},
      {"layout to measure", made / "layout.json",
       "tune mask_wall --target twin:cx6 --rules MADE/acl.rules --layout FILE --out OUT", ".json"},
      {"model to compare", made / "model.json", "fit --compare MADE/model.json FILE", ".json"},
      {"model of a design", made / "model.json",
       "plan --for-model pipeline --budget 20 FILE -o OUT", ".json"},
      {"model to show", made / "model.json", "report MADE/run.db --model FILE -o OUT", ".json"},
      {"model of connections", made / "model.json",
       "optimize --connections MADE/connections.json --model FILE -o OUT", ".json"}};
}

/// Good files of every format, in a folder; then who reads them.
std::vector<Reader> readers(const Folder& made) {
  const auto file = [&](const std::string& name, const std::string& text) {
    return good_file(made, name, text);
  };
  const std::string mask_wall = kSource + "/configs/campaigns/mask_wall.json";
  const std::string few = " --set message_bytes=65536 --set server_decap_masks=0,10,20,40 ";
  const auto must = [&](const std::string& arguments) {
    EXPECT_EQ(greynic(made, arguments).exit_code, 0) << arguments;
  };
  must("run " + mask_wall + " --target twin:cx6 --seed 3" + few + "-o " + (made / "run.db"));
  must("plan " + mask_wall + few + "-o " + (made / "plan.json"));
  must("fit " + (made / "run.db") + " -o " + (made / "model.json"));
  const std::string acl = file("acl.rules", kAcl);
  must("optimize " + acl + " -o " + (made / "layout.json"));
  must("optimize " + acl + " --for 'twin:cx4?hosts=4&rnics=8&models=cx4,e810' -o " +
       (made / "layouts.json"));
  must("plan " + mask_wall + " -o " + (made / "p.json"));
  std::string campaign = text_of(mask_wall);
  file("campaign.json", campaign.insert(campaign.rfind('}'), ",\"topology\":\"bad.json\""));
  make_stores(made);
  const std::string connections = kSource + "/configs/examples/connections.json";
  file("connections.json", text_of(connections));
  must("optimize --connections " + connections + " --model published:cx6 -o " +
       (made / "advice.json"));
  must("agent init " + (made / "lab") + " --name lab.example --client alice");
  std::vector<Reader> all = {
      {"campaign", mask_wall, "plan FILE -o OUT", ".json"},
      {"topology", kSource + "/configs/topologies/two_hosts.json", "plan MADE/campaign.json -o OUT",
       ".json", "bad.json"},
      {"plan", made / "plan.json", "run FILE --target twin:cx6 --dry-run", ".json"},
      {"layout", made / "layout.json", "apply FILE --target twin:cx6 --dry-run", ".json"},
      {"verified layout", made / "layout.json", "verify MADE/acl.rules FILE", ".json"},
      {"layouts of models", made / "layouts.json", "verify MADE/acl.rules FILE", ".json"},
      {"model", made / "model.json", "predict FILE --at server_decap_masks=10", ".json"},
      {"workload", kSource + "/configs/examples/workload.json",
       "predict MADE/model.json --workload FILE", ".json"},
      {"traffic",
       file("traffic.json",
            R"({"version":1,"flows":[{"packet":{"ipv4_src":"10.0.0.1"},"weight":0.5}]})"),
       "optimize MADE/acl.rules --traffic FILE", ".json"},
      {"perftest", kSource + "/configs/examples/write_bw_qps_4.log", "import perftest FILE -o OUT",
       ".log"},
      {"run to explain", made / "run.db", "explain FILE", ".db"},
      {"run to fit", made / "run.db", "fit FILE -o OUT", ".db"},
      {"run to export", made / "run.db", "export FILE --format csv", ".db"},
      {"run to compare", made / "run.db", "compare MADE/run.db FILE", ".db"},
      {"run to report", made / "run.db", "report FILE -o OUT", ".db"},
      {"rnic", kSource + "/configs/rnics/cx6.json",
       "run " + mask_wall + few + "--target twin:FILE --dry-run", ".json"},
      {"switch", kSource + "/configs/switches/ovs.json",
       "run " + mask_wall + few + "--target 'twin:cx6?switch=FILE' --dry-run", ".json"},
      {"fleet", kSource + "/configs/fleets/cloud.json",
       "run " + kSource +
           "/configs/campaigns/fleet_wall.json --target 'twin:cx6?fleet=FILE' --dry-run",
       ".json"},
      {"region", acl, "watch FILE", ".region"},
      {"hosts of zero", kSource + "/configs/examples/zero_hosts.json",
       "zero collect FILE --store OUT --for 10ms", ".json"},
      {"hosts to watch", kSource + "/configs/examples/zero_hosts.json", "watch FILE --count 1",
       ".json"},
      {"hosts of a trace",
       file("t.json", R"({"version":1,"hosts":[{"name":"bad","agent":"127.0.0.1:1"}]})"),
       "trace collect FILE veth_bridge --for 1ms", ".json"},
      {"certificate", made / "lab/alice/client.pem", "agent revoke MADE/lab FILE", ".pem"},
      {"counters to select", file("select.txt", "# all\nhw.*\n!hw.rx*\n"),
       "zero rnic --select FILE --device 'bad*' --list"},
      {"log of a store", made / "store/00000002.log", "zero show MADE/bad_log", ".log",
       "bad_log/00000001.log", true, true},
      {"segment of a store", made / "store/00000001.raw", "zero show MADE/bad_raw", ".raw",
       "bad_raw/00000001.raw", true},
      {"tier of a store", made / "store/00000001.10s", "zero show MADE/bad_10s --step 10s", ".10s",
       "bad_10s/00000001.10s", true},
      {"capture", kSource + "/configs/examples/incast.pcap", "bursts --pcap FILE", ".pcap"},
      {"traffic of bursts", kSource + "/configs/examples/burst_incast.json",
       "bursts --target twin:cx6 --workload FILE -o OUT", ".json"},
      {"rules of a trace", kSource + "/configs/trace/veth_bridge.json", "trace run FILE --for 1ms",
       ".json"},
      {"rnic of a lab", kSource + "/configs/rnics/cx6.json", "lab-run twin:FILE --pair -- true",
       ".json"},
      {"rnic of a session", kSource + "/configs/rnics/cx6.json",
       "lab-run twin:FILE --session bad-input --host 0 -- true", ".json"},
      {"connections", connections, "optimize --connections FILE --model published:cx6 -o OUT",
       ".json"},
      {"advice", made / "advice.json", "broker --advice FILE --device bad0", ".json"},
      {"run to extend", made / "run.db", "plan --extend FILE -o OUT", ".db"}};
  for (Reader& reader : readers_of_rules(made)) all.push_back(std::move(reader));
  for (Reader& reader : readers_beside(made)) all.push_back(std::move(reader));
  return all;
}

/// Gives files to readers, one after the other, in a folder of its own.
class Trial {
 public:
  explicit Trial(const Folder& made) : made_(made) {}

  void give_all(const Reader& reader, const std::vector<Kind>& kinds, std::size_t number) {
    const std::string path =
        reader.place.empty() ? folder_ / ("bad" + reader.extension) : made_ / reader.place;
    const std::string good = text_of(reader.good);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (!kNight && (i + number) % 8 != kPart) continue;
      const std::string bytes = kinds[i].bytes(good);
      std::ofstream(path, std::ios::binary) << bytes;
      const bool is_bad = kinds[i].always_bad && kinds[i].name != reader.takes &&
                          !(reader.is_log && bytes.size() < 32);
      check(reader, kinds[i].name, path, bytes.size(), is_bad);
    }
    fs::remove(path);
    check(reader, "missing", path, 0, !reader.may_miss);
    fs::remove(path);  // a log begins there
    fs::create_symlink(path, path);
    check(reader, "links in a circle", path, 0, !reader.may_miss);
    fs::remove(path);
    fs::create_directory(path);
    check(reader, "folder", path, 0, true);
    fs::remove(path);
    for (const char* device : {"/dev/null", "/dev/zero"}) {
      fs::create_symlink(device, path);
      check(reader, device, path, 0, true);
      fs::remove(path);
    }
  }
  [[nodiscard]] std::size_t tried() const { return tried_; }

 private:
  static inline const bool kNight = std::getenv("GREYNIC_NIGHTLY") != nullptr;
  static inline const std::size_t kPart = [] {
    const char* const part = std::getenv("GREYNIC_PART");
    return part == nullptr ? 0 : std::strtoul(part, nullptr, 10) % 8;
  }();

  void check(const Reader& reader, const std::string& kind, const std::string& path,
             std::uint64_t bytes, bool always_bad) {
    fs::remove_all(folder_ / "written");
    const std::string arguments =
        replaced(replaced(reader.arguments, "FILE", path), "OUT", folder_ / "written");
    const Measured got = run(replaced(arguments, "MADE", made_.path()), folder_);
    const std::string what = reader.name + ", " + kind + ": ";
    ++tried_;
    EXPECT_EQ(got.signal, 0) << what
                             << (got.signal == SIGALRM || got.signal == SIGXCPU ||
                                         got.signal == SIGKILL
                                     ? "hangs"
                                     : "crashes");
    EXPECT_TRUE(got.exit_code >= (always_bad ? 2 : 0) && got.exit_code <= 3)
        << what << got.exit_code << "\n"
        << got.err.substr(0, 500);
    EXPECT_LE(got.most_bytes, 4 * bytes + 256 * kMiB)
        << what << "takes " << got.most_bytes / kMiB << " MiB";
    EXPECT_EQ(bad_utf8(got.err), std::nullopt) << what;
    EXPECT_EQ(got.err.find('\x1b'), std::string::npos) << what;
    if (got.exit_code < 2) return;
    EXPECT_NE(got.err.find("bad"), std::string::npos)
        << what << "names no file: " << got.err.substr(0, 300);
    EXPECT_LT(got.err.size(), 4000U) << what << "tells too much";
    EXPECT_FALSE(fs::exists(folder_ / "written")) << what << "leaves something";
  }

  const Folder& made_;
  Folder folder_;
  std::size_t tried_ = 0;
};

// Claim:  whatever is in a file, and whatever the file is, every reader of it ends soon with exit
//         code 2 or 3 and a message that names the file, takes no more memory than the file lets
//         expect, and leaves nothing.
// Oracle: the rule itself. What may still be a good file is only held to end well.
TEST(BadInput, IsRefusedByEveryReader) {
  const Folder made;
  const std::vector<Reader> all = readers(made);
  const std::vector<Kind> every = kinds();
  EXPECT_GE(every.size(), 40U);
  std::atomic<std::size_t> next{0}, tried{0};
  const auto work = [&] {
    Trial trial(made);
    for (std::size_t i = next++; i < all.size(); i = next++) trial.give_all(all[i], every, i);
    tried += trial.tried();
  };
  std::vector<std::thread> others(std::clamp(std::thread::hardware_concurrency(), 1U, 8U) - 1);
  for (std::thread& other : others) other = std::thread(work);
  work();
  for (std::thread& other : others) other.join();
  RecordProperty("tried", static_cast<int>(tried));
}

}  // namespace
}  // namespace greynic::integration
