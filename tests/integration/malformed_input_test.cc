#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "program.h"

namespace greynic::integration {
namespace {

using nlohmann::json;

/// One way to spoil a document: a JSON pointer and what stands there instead (nothing: it is taken
/// out), or for other texts a piece and what replaces it. The message must contain `says`.
struct Fault {
  std::string place;
  std::string instead;
  std::string says;
};

/// A reader as its user meets it: the command line that reads FILE.
struct Reader {
  std::string name;
  std::string file;       ///< how the file is called
  std::string good;       ///< a text that it takes
  std::string arguments;  ///< with FILE, OUT and FOLDER to be filled in
  std::vector<Fault> faults;
};

std::string filled(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string spoiled(const Reader& reader, const Fault& fault) {
  if (fault.place.empty()) return fault.instead;
  if (fault.place.front() != '/') {
    const std::size_t at = reader.good.find(fault.place);
    EXPECT_NE(at, std::string::npos) << reader.name << ": " << fault.place;
    return std::string(reader.good).replace(at, fault.place.size(), fault.instead);
  }
  const json::json_pointer pointer(fault.place);
  json document = json::parse(reader.good);
  if (!fault.instead.empty()) {
    document[pointer] = json::parse(fault.instead);
  } else {
    document[pointer.parent_pointer()].erase(pointer.back());
  }
  return document.dump();
}

/// The good text is taken; then every fault ends with exit code 2, a message that names the file
/// and the place, and nothing written.
void refuses_malformed_input(const Folder& folder, const Reader& reader) {
  const std::string file = folder / reader.file;
  const std::string out = folder / "written";
  std::string arguments = filled(reader.arguments, "FILE", file);
  arguments = filled(filled(arguments, "OUT", out), "FOLDER", folder.path());
  std::ofstream(file) << reader.good;
  const Outcome taken = greynic(folder, arguments);
  EXPECT_LE(taken.exit_code, 1) << reader.name << "\n" << taken.err;
  EXPECT_GE(reader.faults.size(), 10U) << reader.name;
  for (const Fault& fault : reader.faults) {
    std::filesystem::remove_all(out);
    std::ofstream(file) << spoiled(reader, fault);
    const Outcome refused = greynic(folder, arguments);
    const bool said = refused.err.find(reader.file) != std::string::npos &&
                      refused.err.find(fault.says) != std::string::npos;
    EXPECT_TRUE(refused.exit_code == 2 && said && !std::filesystem::exists(out))
        << reader.name << ": " << fault.place << " = " << fault.instead.substr(0, 60)
        << "\n  exit code " << refused.exit_code << ", " << refused.err.substr(0, 300);
  }
}

// Claim:  every file that a user hands to greynic may be malformed: exit code 2, one message with
//         the file and the place inside it, and nothing written.
// Oracle: the rule itself; the unspoiled file is taken, so it is the fault that is refused.

TEST(MalformedInput, OfCampaigns) {
  const Folder folder;
  refuses_malformed_input(
      folder, {"campaign",
               "bad.json",
               text_of(kSource + "/configs/campaigns/mask_wall.json"),
               "plan FILE -o OUT",
               {{"", "", "line 1"},
                {"", "{ \"version\": 1", "line"},
                {"/version", "3", "/version"},
                {"/name", "", "name"},
                {"/factors", "{}", "/factors"},
                {"/factors/message_bytes/levels", "[1024, \"many\"]", "/factors/message_bytes"},
                {"/factors/message_bytes/levels", "[]", "/factors/message_bytes"},
                {"/factors/qp_count/levels", "[0.5]", "/factors/qp_count"},
                {"/factors/operation/levels", "[\"SENT\"]", "/factors/operation"},
                {"/factors/colour", R"({"type": "hue"})", "/factors/colour"},
                {"/design", "\"7-way\"", "/design"},
                {"/baseline/colour", "3", "/baseline/colour"},
                {"/wall/metric", "7", "/wall/metric"},
                {"/wall/below_baseline_by", "1.5", "/wall"},
                {"/measure/seconds", "-1", "/measure"},
                {"/measure/repeats", "1e9", "/measure"},
                {"/topology", "\"nowhere.json\"", "nowhere.json"},
                {"/constraints", "[\"transport ==\"]", "/constraints/0"},
                {"/constraints", "[\"transport == 7\"]", "/constraints/0"}}});
}

TEST(MalformedInput, OfTopologies) {
  const Folder folder;
  json campaign = json::parse(text_of(kSource + "/configs/campaigns/mask_wall.json"));
  campaign["topology"] = "bad.json";
  std::ofstream(folder / "campaign.json") << campaign.dump();
  refuses_malformed_input(
      folder, {"topology",
               "bad.json",
               text_of(kSource + "/configs/topologies/two_hosts.json"),
               "plan FOLDER/campaign.json -o OUT",
               {{"", "[", "line"},
                {"/version", "\"one\"", "/version"},
                {"/hosts", "", "hosts"},
                {"/hosts/0/name", "7", "/hosts/0/name"},
                {"/hosts/0/containers/0/port", "\"vf77\"", "/hosts/0/containers/0"},
                {"/hosts/0/containers/0/ipv4", "\"1.2.3.400\"", "/hosts/0/containers/0/ipv4"},
                {"/hosts/0/eswitch/tables/0/id", "5", "table 0"},
                {"/hosts/0/eswitch/ports", "[]", "port"},
                {"/wires/0", "[\"moon\"]", "/wires/0"},
                {"/flows", "[]", "/flows"},
                {"/flows/0/to", "\"nobody\"", "/flows/0"},
                {"/colour", "1", "colour"}}});
}

TEST(MalformedInput, OfPlans) {
  const Folder folder;
  ASSERT_EQ(greynic(folder, "plan " + kSource + "/configs/campaigns/mask_wall.json -o " +
                                (folder / "good.json"))
                .exit_code,
            0);
  const std::string too_long = '"' + std::string(5000, 'a') + '"';
  refuses_malformed_input(folder, {"plan",
                                   "bad.json",
                                   text_of(folder / "good.json"),
                                   "run FILE --target twin:cx6 -o OUT",
                                   {{"", "{]", "line 1"},
                                    {"/version", "2", "/version"},
                                    {"/campaign_text", "", "campaign_text"},
                                    {"/campaign_source", too_long, "/campaign_source"},
                                    {"/campaign_text", "\"{ \"", "/campaign_text"},
                                    {"/campaign_text", "7", "/campaign_text"},
                                    {"/configurations", "", "configurations"},
                                    {"/configurations", "[]", "/configurations"},
                                    {"/configurations", "{}", "/configurations"},
                                    {"/configurations/1/qp_count", "\"four\"", "/configurations/1"},
                                    {"/configurations/1/qp_count", "5", "/configurations/1"},
                                    {"/configurations/1/colour", "5", "/configurations/1"},
                                    {"/configurations/1/qp_count", "", "/configurations/1"},
                                    {"/seed", "-1", "/seed"},
                                    {"/set", "[\"nothing=1\"]", "/set"}}});
}

TEST(MalformedInput, OfLayouts) {
  const Folder folder;
  ASSERT_EQ(greynic(folder, "optimize " + kSource + "/configs/rules/container_host.flows -o " +
                                (folder / "good.json"))
                .exit_code,
            0);
  const std::string first = "/tables/0/matchers/0";
  refuses_malformed_input(
      folder, {"layout",
               "bad.json",
               text_of(folder / "good.json"),
               "apply FILE --target twin:cx6 --dry-run",
               {{"", "", "line 1"},
                {"/version", "\"1\"", "/version"},
                {"/tables", "", "tables"},
                {"/tables/0/id", "-3", "/tables/0/id"},
                {"/tables/0/id", "1", "/tables/"},
                {first + "/mask", R"({"vxlan_vni": "0xfffffffff"})", first + "/mask"},
                {first + "/mask", R"({"colour": "0xf"})", first + "/mask"},
                {first + "/rules", "7", first + "/rules"},
                {first + "/rules/0/match", R"({"vxlan_vni": "x"})", first + "/rules/0/match"},
                {first + "/rules/0/actions", R"([{"jump": -1}])", first + "/rules/0/actions"},
                {first + "/rules/0/actions", R"([{"fly": true}])", first + "/rules/0/actions"},
                {first + "/rules/0/actions", R"([{"jump": 0}])", "/tables/0"},
                {first + "/rules/0/weight", "-1", first + "/rules/0/weight"},
                {first + "/rules/0/from", "\"me\"", first + "/rules/0/from"}}});
}

TEST(MalformedInput, OfTraffic) {
  const Folder folder;
  refuses_malformed_input(
      folder, {"traffic",
               "bad.json",
               R"({"version": 1, "name": "noon", "flows": [{"packet": {"ipv4_src": "10.1.2.3",
                   "l4_dst_port": "443"}, "weight": 12, "table": 0}]})",
               "optimize " + kSource + "/configs/rules/container_host.flows --traffic FILE -o OUT",
               {{"", "[]", "at /"},
                {"/version", "", "version"},
                {"/version", "0", "/version"},
                {"/flows", "", "flows"},
                {"/flows", "[]", "/flows"},
                {"/flows", "[3]", "/flows/0"},
                {"/flows/0/packet", "", "packet"},
                {"/flows/0/packet/colour", "\"1\"", "/flows/0/packet/colour"},
                {"/flows/0/packet/l4_dst_port", "\"70000\"", "/flows/0/packet/l4_dst_port"},
                {"/flows/0/packet/ipv4_src", "\"10.0.0.0/8\"", "/flows/0/packet/ipv4_src"},
                {"/flows/0/weight", "-2", "/flows/0/weight"},
                {"/flows/0/weight", "\"much\"", "/flows/0/weight"},
                {"/flows/0/table", "1.5", "/flows/0/table"}}});
}

/// A small run of the twin that lies in the folder.
std::string small_run(const Folder& folder) {
  const Outcome run =
      greynic(folder, "run " + kSource +
                          "/configs/campaigns/mask_wall.json --target twin:cx6 --seed 3 --set "
                          "server_decap_masks=0,10,20,40 --set message_bytes=16384,65536 -o " +
                          (folder / "run.db"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return folder / "run.db";
}

TEST(MalformedInput, OfRunFiles) {
  const Folder folder;
  const std::string good = text_of(small_run(folder));
  // Where SQLite keeps the numbers that say whose file of which version it is.
  constexpr std::size_t kUserVersion = 60, kApplicationId = 68;
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  std::vector<Fault> faults = {
      {"", "", ""},
      {"", "this is no run\n", ""},
      {"", good.substr(0, 1000), ""},
      {"", good.substr(0, good.size() / 2), ""},
      {"", with(kApplicationId, "abcd"), ""},
      {"", with(kUserVersion, std::string("\0\0\0\7", 4)), "version"},
      {"", with(good.size() / 2, std::string(good.size() / 2, '\xff')), ""},
      {"CREATE TABLE observation", "CREATE TABLE observatiom", "observation"},
      {R"(measured{")", R"(mesaured{")", "mesaured"},
      {R"({"client_encap_masks":)", R"({"client_encap_masks";)", ""},
      {R"("transport":"RC"})", R"("transport":"RC"])", ""}};
  for (const std::string command :
       {"fit FILE -o OUT", "compare FILE FILE", "export FILE --format csv"}) {
    refuses_malformed_input(folder, {command, "bad.db", good, command, faults});
  }
  faults.push_back({"campaign_text", "campaign_tixt", "header"});
  faults.push_back({R"("factors")", R"("fractor")", "header"});
  refuses_malformed_input(folder, {"explain", "bad.db", good, "explain FILE", faults});
}

TEST(MalformedInput, OfModelsAndWorkloads) {
  const Folder folder;
  const std::string db = small_run(folder);
  ASSERT_EQ(
      greynic(folder, "fit " + db + " --form pipeline -o " + (folder / "good.json")).exit_code, 0);
  refuses_malformed_input(
      folder,
      {"model",
       "bad.json",
       text_of(folder / "good.json"),
       "predict FILE --at server_decap_masks=10",
       {{"", "{\"version\": 1,}", "line 1"},
        {"/version", "9", "/version"},
        {"/law", "\"gravity\"", "/law"},
        {"/law", "", "law"},
        {"/parameters", "[]", "/parameters"},
        {"/parameters/0/name", "\"speed\"", "/parameters/0"},
        {"/parameters/0/value", "\"fast\"", "/parameters/0/value"},
        {"/parameters/0/value", "-1", "/parameters/0/value"},
        {"/parameters/0/unit", "7", "/parameters/0/unit"},
        {"/parameters/0/low", "\"x\"", "/parameters/0/low"},
        {"/covariance", "[[1]]", "/covariance"},
        {"/noise", "7", "/noise"},
        {"/domain/numeric/server_decap_masks", "[5, 1]", "/domain/numeric/server_decap_masks"},
        {"/assumed/bandwidth_gbps/qp_count", "-4", "/assumed/bandwidth_gbps/qp_count"},
        {"/assumed/bandwidth_gbps/transport", "\"XX\"", "/assumed/bandwidth_gbps/transport"},
        {"/covariance/1/0", "null", "/covariance/1/0"},
        {"/observations", "-1", "/observations"}}});
  refuses_malformed_input(
      folder,
      {"workload",
       "bad_load.json",
       R"({"version": 1, "flows": [{"name": "rpc", "from": "h1", "to": "h2", "offered_gbps": 2,
           "configuration": {"operation": "SEND", "message_bytes": 65536, "qp_count": 4}}]})",
       "predict FOLDER/good.json --workload FILE",
       {{"", "", "line 1"},
        {"/version", "", "version"},
        {"/version", "7", "/version"},
        {"/flows", "[]", "/flows"},
        {"/flows/0/name", "", "name"},
        {"/flows/0/from", "3", "/flows/0/from"},
        {"/flows/0/offered_gbps", "-1", "/flows/0/offered_gbps"},
        {"/flows/0/configuration/qp_count", "0", "flow 'rpc'"},
        {"/flows/0/configuration/colour", "1", "flow 'rpc'"},
        {"/flows/0/configuration/operation", "\"SENT\"", "flow 'rpc'"},
        {"/flows/0/packet", R"({"colour": "1"})", "/flows/0/packet"},
        {"/layouts", R"({"server_decap": "nowhere.json"})", "nowhere.json"},
        {"/layouts", R"({"moon": "nowhere.json"})", "/layouts"}}});
  const std::string one = "/connections/0";
  refuses_malformed_input(folder, {"connections",
                                   "bad_matrix.json",
                                   text_of(kSource + "/configs/examples/connections.json"),
                                   "optimize --connections FILE --model FOLDER/good.json -o OUT",
                                   {{"", "", "line 1"},
                                    {"/version", "2", "/version"},
                                    {"/threads", "0", "/threads"},
                                    {"/broker_ns", "-1", "/broker_ns"},
                                    {"/connections", "", "connections"},
                                    {"/connections", "[]", "/connections"},
                                    {one + "/from", "", "from"},
                                    {one + "/to", "\"db\"", one + "/to"},
                                    {one + "/count", "0", one + "/count"},
                                    {one + "/count", "1000000", "/connections"},
                                    {one + "/operation", "\"SEND\"", one + "/operation"},
                                    {one + "/message_bytes", "\"big\"", one + "/message_bytes"},
                                    {one + "/outstanding", "1.5", one + "/outstanding"},
                                    {one + "/colour", "1", "colour"}}});
}

TEST(MalformedInput, OfRnicsSwitchesAndFleets) {
  const Folder folder;
  const std::string measure = kSource +
                              "/configs/campaigns/mask_wall.json --set message_bytes=65536 --set "
                              "server_decap_masks=0 --set qp_count=4 --set client_encap_masks=0 ";
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"rnics/cx6.json", "run " + measure + "--target twin:FILE -o OUT"},
      {"switches/ovs.json", "run " + measure + "--target 'twin:cx6?switch=FILE' -o OUT"},
      {"fleets/cloud.json", "run " + kSource +
                                "/configs/campaigns/fleet_wall.json --target 'twin:cx6?fleet=FILE' "
                                "--dry-run -o OUT"}};
  for (const auto& [config, arguments] : kinds) {
    const std::string good = text_of(kSource + "/configs/" + config);
    const json document = json::parse(good);
    const std::string parameter = "/parameters/" + document["parameters"].begin().key();
    refuses_malformed_input(folder, {config,
                                     "bad.json",
                                     good,
                                     arguments,
                                     {{"", "", "line 1"},
                                      {"/version", "0", "/version"},
                                      {"/name", "", "name"},
                                      {"/parameters", "", "parameters"},
                                      {"/parameters", "[]", "/parameters"},
                                      {parameter, "", parameter.substr(12)},
                                      {parameter, "7", parameter},
                                      {parameter + "/value", "", "value"},
                                      {parameter + "/value", "\"x\"", parameter + "/value"},
                                      {parameter + "/grade", "\"E\"", parameter + "/grade"},
                                      {parameter + "/source", "\"hearsay\"", parameter + "/source"},
                                      {parameter + "/colour", "1", "colour"},
                                      {"/parameters/colour", R"({"value": 1})", "colour"}}});
  }
}

TEST(MalformedInput, OfRules) {
  const Folder folder;
  refuses_malformed_input(
      folder, {"classbench",
               "bad.rules",
               "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\t\n",
               "optimize FILE --format classbench -o OUT",
               {{"", "", "is empty"},

                {"10.0.0.0/8", "10.0.0/8", "line 1"},
                {"10.0.0.0/8", "10.0.0.0/33", "line 1"},
                {"10.0.0.0/8", "10.0.0.0", "line 1"},
                {"80 : 80", "80 : 8", "line 1"},
                {"80 : 80", "80 80", "line 1"},
                {"80 : 80", "80 : 65536", "line 1"},
                {"0x06/0xFF", "0x106/0xFF", "line 1"},
                {"0x06/0xFF", "tcp", "line 1"},
                {"\t0x06/0xFF\t0x0000/0x0000\t", "", "line 1"}}});
  refuses_malformed_input(
      folder, {"openflow",
               "bad.flows",
               " table=0, priority=10,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:3\n",
               "optimize FILE --format openflow -o OUT",
               {{"", "\n", "is empty"},
                {"table=0", "table=zero", "line 1"},
                {"table=0", "table=999", "line 1"},
                {"priority=10", "priority=-1", "line 1"},
                {"priority=10", "priority=65536", "line 1"},
                {"nw_dst=10.0.0.0/8", "nw_dst=10.0.0.0/99", "line 1"},
                {"nw_dst=10.0.0.0/8", "nw_dest=10.0.0.0/8", "line 1"},
                {"tp_dst=80", "tp_dst=99999", "line 1"},
                {"tp_dst=80", "tp_dst=", "line 1"},
                {" actions=output:3", "", "line 1"},
                {"nw_dst=10.0.0.0/8", "nw_dst=10.0.0", "line 1"},
                {"actions=output:3", "actions=resubmit(,0)", "table 0 lies on a loop"},
                {"actions=output:3", "actions=resubmit(", "line 1"}}});
}

TEST(MalformedInput, OfLogsOfPerftest) {
  const Folder folder;
  const std::string columns =
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
  refuses_malformed_input(folder, {"perftest",
                                   "bad.log",
                                   columns + " 2          4000             14.05   13.87  7.27\n",
                                   "import perftest FILE -o OUT",
                                   {{"", "", "no perftest result"},
                                    {"", "Waiting for a client\n", "no perftest result"},
                                    {"   13.87  7.27", "", "3 values"},
                                    {"13.87", "x", "x"},
                                    {"13.87", "-13.87", "-13.87"},
                                    {"14.05", "1e999", "1e999"},
                                    {"14.05", "14,05", "14,05"},
                                    {"4000", "-4000", "-4000"},
                                    {"#iterations", "#furlongs", "#furlongs"},
                                    {"7.27\n", "7.", "middle of a row"},
                                    {"", "{\nresults: {\nfurlongs: 3,\n},\n}\n", "furlongs"}}});
}

TEST(MalformedInput, OfCoverModelsAndArrays) {
  const Folder folder;
  refuses_malformed_input(folder, {"pict",
                                   "bad.pict",
                                   "A: 1, 2, 3\nB: x, y\nIF [A] = 1 THEN [B] = \"x\";\n",
                                   "cover FILE --format pict",
                                   {{"", "", "no parameter"},
                                    {"1, 2, 3", "1, 2 <hundred>, 3", ":1"},
                                    {"THEN", "ELSE", ":3"},
                                    {"B: x, y", "A: x, y", ":2"},
                                    {"[A] = 1", "[A = 1", ":3"},
                                    {"[A] = 1", "[C] = 1", ":3"},
                                    {"THEN", "THAN", ":3"},
                                    {";", "", ":4"},
                                    {"\"x\"", "\"x", ":3:23"},
                                    {"[B] = \"x\"", "[B] IN {\"x\"", ":3"},
                                    {"[B] = \"x\"", "[B] > 7", ":3"}}});
  refuses_malformed_input(folder, {"casa",
                                   "bad.citmodel",
                                   "2\n3\n2 2 3\n",
                                   "cover FILE --format casa",
                                   {{"", "", "bad.citmodel"},
                                    {"2\n", "two\n", ":1"},
                                    {"2\n", "0\n", ":1"},
                                    {"2\n", "-2\n", ":1"},
                                    {"3\n", "x\n", ":2"},
                                    {"3\n", "0\n", ":2"},
                                    {"2 2 3", "2 2", ":4"},
                                    {"2 2 3", "2 2 3 4", ":3"},
                                    {"2 2 3", "2 2 0", ":3"},
                                    {"2 2 3", "2 2 -3", ":3"},
                                    {"2 2 3", "2 2 999999", ":3"}}});
  refuses_malformed_input(folder, {"cnf",
                                   "bad.dimacs",
                                   "c 1 a\np cnf 3 2\n1 -2 0\n2 3 0\n",
                                   "cover FILE --format cnf",
                                   {{"", "", "p cnf"},
                                    {"p cnf 3 2", "p dnf 3 2", ":2"},
                                    {"p cnf 3 2", "p cnf 3", ":2"},
                                    {"p cnf 3 2", "p cnf -3 2", ":2"},
                                    {"p cnf 3 2", "p cnf 3 5", "clauses"},
                                    {"1 -2 0", "1 -7 0", ":3"},
                                    {"1 -2 0", "1 x 0", ":3"},
                                    {"1 -2 0", "1 - 2 0", ":3"},
                                    {"2 3 0\n", "2 3", ":4"},
                                    {"c 1 a\n", "1 2 0\n", ":1"},
                                    {"1 -2 0", "1 99999999999 0", ":3"}}});
  std::ofstream(folder / "model.pict") << "A: 1, 2\nB: x, y\nC: p, q\n";
  refuses_malformed_input(folder, {"array",
                                   "bad.tsv",
                                   "A\tB\tC\n1\tx\tp\n1\ty\tq\n2\tx\tq\n2\ty\tp\n",
                                   "cover FOLDER/model.pict --check FILE",
                                   {{"", "", "bad.tsv"},
                                    {"A\tB\tC", "A\tB\tD", ":1"},
                                    {"A\tB\tC", "A\tB\tA", ":1"},
                                    {"A\tB\tC", "A\tB", ":1"},
                                    {"A\tB\tC\n", "", ":1"},
                                    {"1\tx\tp", "1\tx", ":2"},
                                    {"1\tx\tp", "1\tx\tp\tq", ":2"},
                                    {"1\tx\tp", "3\tx\tp", ":2"},
                                    {"1\tx\tp", "1 x p", ":2"},
                                    {"2\ty\tp\n", "2\ty\t\n", ":5"},
                                    {"2\ty\tp", "2\ty\tP", ":5"}}});
}

}  // namespace
}  // namespace greynic::integration
