/// Readers that take a text.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fuzz.h"
#include "greynic/core/text.h"
#include "greynic/files/campaign_file.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/language/array_file.h"
#include "greynic/language/constraint_language.h"
#include "greynic/language/model_reader.h"
#include "greynic/model/model.h"
#include "greynic/results/perftest.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/testgen/topology.h"

namespace greynic::fuzz {
namespace {

constexpr const char* kSource = "input";

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(GREYNIC_SOURCE_DIR) / "configs/schema";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    names.push_back(file.substr(0, file.find('.')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Target json_schemas() {
  return {"json_schemas",
          {tree_file("configs/campaigns/mask_wall.json"),
           tree_file("configs/topologies/two_hosts.json"), tree_file("configs/fleets/cloud.json"),
           tree_file("configs/examples/workload.json")},
          [](std::string_view text) {
            const auto document = files::parse_json(text, kSource);
            claim_sound(document);
            if (!document) return;
            static const std::vector<std::string> schemas = schema_names();
            // Three of them: another length meets others.
            for (std::size_t i = 0; i < 3; ++i) {
              const std::string& schema = schemas[(text.size() + 4 * i) % schemas.size()];
              claim_sound(files::check_schema(*document, schema, kSource));
            }
            (void)files::json_text(*document);
          }};
}

Target campaign() {
  return {
      "campaign",
      {tree_file("configs/campaigns/mask_wall.json"),
       tree_file("configs/campaigns/mask_shapes.json"), tree_file("configs/campaigns/faults.json")},
      [](std::string_view text) {
        const auto read = files::parse_campaign(text, kSource);
        claim_sound(read);
        if (!read) return;
        for (const std::string override : {"qp_count=1,2", "transport=RC", "x=1"}) {
          claim_sound(files::override_levels(*read, {override}));
        }
      }};
}

Target topology() {
  return {"topology", {tree_file("configs/topologies/two_hosts.json")}, [](std::string_view text) {
            claim_sound(testgen::parse_topology(text, kSource));
          }};
}

Target model() {
  return {"model",
          {tree_file("tests/fuzz/seeds/scalacn_model.json"),
           tree_file("tests/fuzz/seeds/pipeline_model.json")},
          [](std::string_view text) {
            const auto read = model::parse(text, kSource);
            claim_sound(read);
            if (!read) return;
            const auto predicted = (*read)->predict({{"server_decap_masks", 10.0}});
            claim_sound(predicted);
            if (predicted) {
              for (const auto& [name, measure] : predicted->measures) {
                claim(!std::isnan(measure.value), "a prediction is a number");
              }
            }
            (void)(*read)->to_json_text();
          }};
}

Target cover_model(const char* name, std::vector<std::string> seeds,
                   Result<language::CoverModel> (*parse)(std::string_view, const std::string&)) {
  return {name, std::move(seeds), [parse](std::string_view text) {
            const auto read = parse(text, kSource);
            claim_sound(read);
            if (!read) return;
            std::string table;
            for (const auto& parameter : read->parameters) table += parameter.name + "\t";
            claim_sound(language::parse_rows(*read, table + "\n", kSource));
          }};
}

Result<language::CoverModel> parse_casa_alone(std::string_view text, const std::string& source) {
  // The model and its constraints, one after the other.
  const std::size_t cut = text.find("\n\n");
  if (cut == std::string_view::npos) return language::parse_casa(text, source, "", "");
  return language::parse_casa(text.substr(0, cut + 1), source, text.substr(cut + 2), source);
}

Target array_rows() {
  return {"array_rows",
          {"A\tB\tC\n1\tx\tp\n2\ty\tq\n", R"({"rows":[{"A":1,"B":"x","C":"p"}]})"},
          [](std::string_view text) {
            static const auto model =
                language::parse_pict("A: 1, 2\nB: x, y\nC: p, q\n", "model").value();
            claim_sound(language::parse_rows(model, text, kSource));
          }};
}

Target constraint() {
  return {"constraint",
          {"transport == \"UC\" -> operation != \"READ\"",
           "a + 2 * b <= 7 && !(c in {1, 2, 3}) || max(a, b) > 3", "covers(m0, m1) -> a == 1"},
          [](std::string_view text) {
            static const auto model =
                language::parse_pict(
                    "a: 1, 2\nb: 1, 2, 9\nc: 3, 4\ntransport: RC, UC\noperation: READ, SEND\n",
                    "model")
                    .value();
            claim_sound(language::parse_constraint(text, model, "here"));
          }};
}

void read_rules(std::string_view text, std::optional<rules::Format> format) {
  const auto set = rules::parse_rules(text, kSource, format);
  claim_sound(set);
  if (!set) return;
  for (const FlowRule& rule : set->rules) claim_sound(rule.match);
  claim_sound(rules::resolve_conjunctions(*set, 10'000));
}

std::vector<Target> rule_targets() {
  using rules::Format;
  const std::vector<std::pair<Format, std::vector<std::string>>> formats = {
      {Format::kClassbench,
       {"@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x1000/0x1000\t\n"
        "@1.2.3.4/32\t5.6.0.0/16\t53 : 60\t1024 : 65535\t0x01/0xFF\n"}},
      {Format::kOpenflow,
       {" cookie=0x1, table=8, priority=100,tcp,reg15=0x1/0xff,nw_dst=10.0.0.0/8,ct_state=+new-est "
        "actions=conjunction(5,1/2)\n"
        " table=8, priority=100,conj_id=5,ip "
        "actions=set_field:0x3->reg13,resubmit(,9),output:2\n"}},
      {Format::kFields,
       {"nw_src=1.2.3.4/32, tp_src=2888, dl_dst=fa:16:3e:44:48:72, ipv6_src=::1\n"}},
      {Format::kMegaflow,
       {"recirc_id(0x58),in_port(p7),eth(src=0a:58:0a:80:01:09),eth_type(0x0800),ipv4(src=10.0.0.1,"
        "dst=10.0.0.0/255.0.0.0,tos=0x2/0x3,frag=no),tcp(dst=443), packets:3, "
        "actions:ct(nat),p9\n"}},
      {Format::kTcFilter,
       {R"([{"protocol":"ip","pref":10,"kind":"flower","chain":0,"options":{"keys":{"dst_ip":"10.0.0.0/8","src_port":{"start":2,"end":5},"ip_tos":"4/12"},"actions":[{"kind":"gact","control_action":{"type":"drop"}}]}}])"}},
      {Format::kLayout,
       {R"({"version":1,"tables":[{"id":0,"matchers":[{"mask":{"ipv4_src":"0xff000000"},"priority":0,"rules":[{"match":{"ipv4_src":"10.0.0.0/8"},"actions":[{"jump":3},{"count":true},{"set_field":"reg0","to":"0x1"}],"weight":0.5,"from":[1]}]}]},{"id":3,"matchers":[]}]})"}}};
  std::vector<Target> targets;
  std::vector<std::string> all;
  for (const auto& [format, seeds] : formats) {
    for (const std::string& seed : seeds) {
      claim(rules::parse_rules(seed, kSource, format).has_value(), "a seed is taken: " + seed);
      all.push_back(seed);
    }
    targets.push_back({"rules_" + std::string(to_string(format)), seeds,
                       [format = format](std::string_view text) { read_rules(text, format); }});
  }
  targets.push_back({"rules", all, [](std::string_view text) { read_rules(text, std::nullopt); }});
  return targets;
}

Target layout() {
  return {
      "layout",
      {R"({"version":1,"tables":[{"id":0,"matchers":[{"mask":{"ipv4_src":"0xff000000"},"priority":0,"rules":[{"match":{"ipv4_src":"10.0.0.0/8"},"actions":[{"jump":3},{"vxlan_encap":100,"options":"x"},{"other":"note"}],"weight":0.5,"from":[1]}]}]}]})"},
      [](std::string_view text) {
        const auto at_once = files::layout_from_text(text, kSource);
        claim_sound(at_once);
        const auto document = files::parse_json(text, kSource);
        if (!document) return;
        const auto read = files::layout_from_json(*document, kSource);
        claim_sound(read);
        claim(read ? at_once && *at_once == *read : !at_once,
              "a layout reads from its text as from its tree");
        if (!read) return;
        // What was read is written as something that reads the same.
        const auto again = files::layout_from_json(files::to_json(*read), kSource);
        claim_sound(again);
        claim(again && *again == *read, "a layout reads back as written");
      }};
}

Target layouts_of_models() {
  return {
      "layouts_of_models",
      {R"({"version":1,"models":[{"names":["cx4","cx5"],"tables":[{"id":0,"matchers":[{"mask":{"ipv4_src":"0xff000000"},"priority":0,"rules":[{"match":{"ipv4_src":"10.0.0.0/8"},"actions":[{"vxlan_encap":100}]}]}]}]},{"names":["e810"],"tables":[]}]})"},
      [](std::string_view text) {
        const auto at_once = files::model_layouts_from_text(text, kSource);
        claim_sound(at_once);
        const auto document = files::parse_json(text, kSource);
        if (!document) return;
        const auto read = files::model_layouts_from_json(*document, kSource);
        claim_sound(read);
        claim(read ? at_once && *at_once == *read : !at_once,
              "layouts of models read from their text as from its tree");
        if (!read) return;
        const auto again = files::model_layouts_from_json(files::to_json(*read), kSource);
        claim_sound(again);
        claim(again && *again == *read, "layouts of models read back as written");
      }};
}

Target traffic() {
  return {
      "traffic",
      {R"({"version":1,"flows":[{"packet":{"ipv4_src":"10.0.0.1","l4_dst_port":"443"},"weight":0.5}]})"},
      [](std::string_view text) { claim_sound(rules::parse_traffic(text, kSource)); }};
}

Target perftest() {
  const std::string latency =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
  return {
      "perftest",
      {tree_file("configs/examples/write_bw_qps_4.log"),
       "                    RDMA_Read Latency Test\n" + latency + "#, usec\n1, 2.5\n" + latency +
           " 2 1000 2.71 4.15 2.74 2.75 0.08 2.95 4.15\n",
       "{\ntest_info: {\ntest: Send_BW,\nDual_port: OFF,\n},\nresults: {\nMsgSize: 128,\n"
       "t_avg: 2.42,\npercentile_99.9: 4.03,\n},\n}\n",
       "{\n\"results\": {\n\"MsgSize\": 65536,\n\"BW_average\": 83.89,\n\"MsgRate\": 0.16\n}\n}\n"},
      [](std::string_view text) {
        const auto import = results::parse_perftest(text, "damaged.log");
        claim_sound(import);
        if (!import) {
          claim(import.error().code == ErrorCode::kBadInput, "a bad log is bad input");
          claim(import.error().message.find("damaged.log") != std::string::npos,
                "a message names the log");
          return;
        }
        for (const Observation& observation : import->observations) {
          claim_sound(observation);
          for (const auto& [name, measure] : observation.measures) {
            claim(measure.value >= 0.0, "no log measures less than nothing");
          }
        }
      }};
}

Target observation() {
  return {
      "observation",
      {R"({"configuration":{"qp_count":4,"transport":"RC"},"bandwidth_gbps":91.2,"standard_errors":{"bandwidth_gbps":0.5},"counters":{"rx":1e12},"latency_ns_buckets":[[3100,7]],"steady":{"settled":true,"warmup_share":0.1,"test":"MSER-5"},"environment":{"host":"a"},"outcome":"measured","repeat":1,"seed":7})"},
      [](std::string_view text) {
        const auto document = files::parse_json(text, kSource);
        if (!document) return;
        const auto read = files::observation_from_json(*document, kSource, "");
        claim_sound(read);
        if (read) (void)files::json_text(files::to_json(*read));
      }};
}

}  // namespace

std::vector<Target> text_targets() {
  std::vector<Target> targets = {
      json_schemas(),
      campaign(),
      topology(),
      model(),
      layout(),
      layouts_of_models(),
      traffic(),
      perftest(),
      observation(),
      array_rows(),
      constraint(),
      cover_model(
          "pict",
          {tree_file("configs/examples/model.pict"),
           "A: 1, 2, 3\nB: x, y | z, ~w\nC: 1 (5), 2\n{ A, B } @ 3\nIF [A] = 1 AND [B] <> \"x\" "
           "THEN [C] IN {1, 2} ELSE NOT [A] LIKE \"1*\";\n[A] > [C];\n"},
          &language::parse_pict),
      cover_model("casa", {"2\n3\n2 2 3\n\n2\n2\n- 0 - 2\n1\n+ 4\n", "2\n3\n2 2 3\n"},
                  &parse_casa_alone),
      cover_model("cnf", {"c 1 a\nc 2 b\np cnf 3 2\n1 -2 0\n2 3 0\n"}, &language::parse_cnf),
      cover_model(
          "json_model",
          {R"({"version":1,"strength":2,"parameters":[{"name":"t","levels":["RC","UC"],"weights":[3,1]},{"name":"q","levels":[1,64],"costs":[0.1,1]},{"name":"s","levels":[true,false],"only_if":"t != \"UC\""}],"masks":[{"name":"m0","fields":["ether_type","ipv4_dst"],"bits":"prefix"}],"constraints":["t == \"UC\" -> q <= 1"],"tables":[{"parameters":["t","q"],"allowed":[["RC",1],["UC",1]]}],"forbidden":[{"t":"UC","q":64}],"seeds":[{"t":"RC","q":64}],"sub_models":[{"parameters":["t","q","s"],"strength":3}]})"},
          &language::parse_json_model)};
  for (Target& target : rule_targets()) targets.push_back(std::move(target));
  for (Target& target : targets) {
    // Files come through a door that lets UTF-8 alone pass (files/text_file.h).
    target.read = [read = std::move(target.read)](std::string_view text) {
      if (!bad_utf8(text)) read(text);
    };
  }
  return targets;
}

}  // namespace greynic::fuzz
