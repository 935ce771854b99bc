#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "greynic/results/store.h"
#include "program.h"

namespace greynic::integration {
namespace {

// Claim:  one command finds the mask wall of the twin, names its factor, fits a law whose
//         prediction of the new layout holds, and the layout it proves is faster when it is
//         measured.
// Oracle: the twin, whose walk through masks the loop cannot see; the seed is not the demo's.
TEST(Tune, ClosesTheLoopOnTheTwin) {
  const Folder folder;
  const Outcome run = greynic(
      folder, "tune " + kSource + "/configs/campaigns/mask_wall.json --target twin:cx5 --rules " +
                  kSource + "/configs/rules/container_host.flows --seed 4242 --json --out " +
                  (folder / "loop"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto document = nlohmann::json::parse(run.out);
  std::string causes;
  for (const auto& cause : document["explanation"]["causes"]) {
    causes += cause["text"].get<std::string>() + "; ";
    EXPECT_TRUE(cause["by_experiment"]);
    EXPECT_GE(cause["confidence"].get<double>(), 0.99) << cause["text"];
  }
  EXPECT_NE(causes.find("server_decap_masks >="), std::string::npos) << causes;
  EXPECT_TRUE(document["layout"]["verified"]);
  EXPECT_GT(document["gain"]["low"].get<double>(), 1.5);
  EXPECT_LT(document["layout"]["after"]["matchers_tried"].get<double>(),
            document["layout"]["before"]["matchers_tried"].get<double>());
  // The report shows the very numbers, and the command that made the run.
  const std::string report = text_of(folder / "loop/report.html");
  for (const char* side : {"before", "after"}) {
    EXPECT_NE(report.find(
                  fmt::format("{:.2f}", document["layout"][side]["matchers_tried"].get<double>())),
              std::string::npos)
        << side;
  }
  EXPECT_NE(report.find("--target twin:cx5 --rules"), std::string::npos);
  EXPECT_NE(report.find("Layout proven equivalent"), std::string::npos);
  for (const char* name : {"run.db", "model.json", "layout.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / ("loop/" + std::string(name)))) << name;
  }

  const Outcome again = greynic(
      folder, "explain " + (folder / "loop/run.db") + " --target twin:cx5 --seed-is-no-flag");
  EXPECT_EQ(again.exit_code, 2);
  const Outcome verified =
      greynic(folder, "verify " + kSource + "/configs/rules/container_host.flows " +
                          (folder / "loop/layout.json"));
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const Outcome dry =
      greynic(folder, "apply " + (folder / "loop/layout.json") + " --target twin:cx5 --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  const Outcome predicted = greynic(
      folder, "predict " + (folder / "loop/model.json") + " --at server_decap_masks=30 --json");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_TRUE(nlohmann::json::parse(predicted.out).is_object());
}

// Claim:  a layout of other rules is refused as input that is bad, before anything is measured.
TEST(Tune, RefusesALayoutOfOtherRulesAtOnce) {
  const Folder folder;
  ASSERT_EQ(greynic(folder, "optimize made:acl:20:3 -o " + (folder / "other.json")).exit_code, 0);
  const Outcome tuned =
      greynic(folder, "tune mask_wall --target twin:cx6 --rules made:acl:30:4 --layout " +
                          (folder / "other.json") + " --out " + (folder / "out"));
  EXPECT_EQ(tuned.exit_code, 2) << tuned.err;
  EXPECT_NE(tuned.err.find("other.json: the layout does not do what made:acl:30:4 does"),
            std::string::npos)
      << tuned.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

// Claim: explaining the same run again orders nothing and comes to the same causes.
TEST(Explain, RepeatsNothing) {
  const Folder folder;
  const std::string db = folder / "run.db";
  ASSERT_EQ(
      greynic(folder, "run " + kSource +
                          "/configs/campaigns/mask_wall.json --target twin:cx6 --seed 11 -o " + db)
          .exit_code,
      0);
  const auto ask = [&] {
    const Outcome outcome = greynic(folder, "explain " + db + " --target twin:cx6 --json");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto first = ask();
  const auto second = ask();
  EXPECT_GT(first["tests_ordered"], 0);
  EXPECT_EQ(second["tests_ordered"], 0);
  EXPECT_EQ(first["configurations"], second["configurations"]);
  ASSERT_EQ(first["causes"].size(), second["causes"].size());
  for (std::size_t i = 0; i < first["causes"].size(); ++i) {
    EXPECT_EQ(first["causes"][i]["text"], second["causes"][i]["text"]);
  }
}

// Claim:  explaining a run without its device keeps the causes that were tested on it: both are
//         kept, and who plans on, or makes a report, reads the tested ones.
TEST(Explain, KeepsTheTestedCausesBesideHypotheses) {
  const Folder folder;
  const std::string db = folder / "run.db";
  ASSERT_EQ(
      greynic(folder, "run " + kSource +
                          "/configs/campaigns/mask_wall.json --target twin:cx6 --seed 11 -o " + db)
          .exit_code,
      0);
  const Outcome tested = greynic(folder, "explain " + db + " --target twin:cx6 --json");
  const Outcome guessed = greynic(folder, "explain " + db + " --json");
  ASSERT_NE(tested.out, guessed.out);
  const auto store = results::RunStore::open_to_read(db);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->kept(results::kExplanation).value(), tested.out);
  EXPECT_EQ(store->kept(results::kHypotheses).value(), guessed.out);
  EXPECT_EQ(store->best_explanation().value(), tested.out);
}

// Claim:  a run is explained from any folder, though its campaign names its topology by a relative
//         path, and the campaigns that ship for the twin vary what the twin varies.
TEST(Campaigns, RunOnTheTwinAndAreExplainedAnywhere) {
  const Folder folder;
  const std::string campaigns = kSource + "/configs/campaigns/";
  const std::vector<std::string> cases = {
      "qp_wall.json --target twin:cx6 --set qp_count=64,1024 --set message_bytes=65536 --set "
      "mr_count=1",
      "vxlan_contexts.json --target twin:cx6?defects=S8",
  };
  for (const std::string& one : cases) {
    const std::string db = folder / (one.substr(0, 7) + ".db");
    const Outcome run = greynic(folder, "run " + campaigns + one + " --seed 5 -o " + db);
    ASSERT_EQ(run.exit_code, 0) << one << "\n" << run.err;
    const Outcome explained = greynic(folder, "explain " + db + " --target twin:cx6 --json");
    EXPECT_LE(explained.exit_code, 1) << one << "\n" << explained.err;
  }
}

// Claim: what a user can get wrong ends with exit code 2, one message that names the file, and no
//        file written.
TEST(Program, BadInputWritesNothing) {
  const Folder folder;
  std::ofstream(folder / "bad.json") << "{ \"version\": 1, \"name\": ";
  std::ofstream(folder / "bad.db") << "this is no run";
  const std::string bad = folder / "bad.json";
  const std::string db = folder / "bad.db";
  const std::string good = kSource + "/configs/campaigns/mask_wall.json";
  const std::string out = folder / "written";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plan " + bad + " -o " + out, "bad.json"},
      {"run " + bad + " --target twin:cx6 -o " + out, "bad.json"},
      {"run " + good + " --target twin:cx99 -o " + out, "cx99"},
      {"run " + good + " --target twine:cx6 -o " + out, "twine"},
      {"run " + good + " --target twin:cx6 --set nothing=1 -o " + out, "nothing"},
      {"explain " + db, "bad.db"},
      {"fit " + db + " -o " + out, "bad.db"},
      {"report " + db + " -o " + out, "bad.db"},
      {"export " + db + " --format csv", "bad.db"},
      {"compare " + db + " " + db, "bad.db"},
      {"predict " + bad + " --at qp_count=1", "bad.json"},
      {"optimize " + bad + " --model published:cx6 -o " + out, "bad.json"},
      {"verify " + good + " " + bad, "mask_wall.json"},
      {"apply " + bad + " --target twin:cx6 --dry-run", "bad.json"},
      {"import perftest " + bad + " -o " + out, "bad.json"},
      {"tune " + bad + " --target twin:cx6 --out " + out, "bad.json"},
      {"watch " + bad, "bad.json"},
  };
  for (const auto& [arguments, name] : cases) {
    const Outcome outcome = greynic(folder, arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << arguments;
  }
}

}  // namespace
}  // namespace greynic::integration
