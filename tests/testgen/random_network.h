#pragma once

/// Random small networks for the topology tests.

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "greynic/language/cover_model.h"

namespace greynic::testgen {

using nlohmann::json;

/// Random networks that could work: rules that deliver, then changed and added to at random.
class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : random_(seed) {}

  json make() {
    json document = {{"version", 1},
                     {"hosts", json::array()},
                     {"switches", json::array()},
                     {"wires", json::array()},
                     {"flows", json::array()}};
    const int hosts = 2 + pick(2);
    const bool two_switches = pick(2) == 0;
    for (int h = 0; h < hosts; ++h) document["hosts"].push_back(host(h, hosts));
    for (int s = 0; s < (two_switches ? 2 : 1); ++s) {
      document["switches"].push_back(fabric(s, hosts, two_switches));
    }
    for (int h = 0; h < hosts; ++h) {
      const int s = two_switches && h % 2 == 1 ? 1 : 0;
      document["wires"].push_back({fmt::format("h{}.up", h), fmt::format("s{}.p{}", s, h)});
    }
    if (two_switches) document["wires"].push_back({"s0.x", "s1.x"});
    const int flows = 1 + pick(3);
    for (int f = 0; f < flows; ++f) {
      const int from = pick(hosts);
      const int to = (from + 1 + pick(hosts - 1)) % hosts;
      json flow = {{"from", fmt::format("h{}.a", from)}, {"to", fmt::format("h{}.a", to)}};
      if (pick(6) == 0) flow["expect"] = "dropped";
      document["flows"].push_back(flow);
    }
    return document;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  static std::string inside(int h) { return fmt::format("192.168.{}.2", h); }
  static std::string outside(int h) { return fmt::format("10.9.0.{}", h + 1); }

  json encap(int h) {
    return {{"vxlan_encap", 100}, {"options", fmt::format("src=10.9.9.9,dst={}", outside(h))}};
  }

  json random_actions(int hosts, bool eswitch) {
    switch (pick(eswitch ? 8 : 5)) {
      case 0:
        return json::array();
      case 1:
        return json::array({{{"drop", true}}});
      case 2:
        return json::array({{{"jump", pick(2)}}});
      case 3:
        return json::array({{{"forward", eswitch ? "up" : fmt::format("p{}", pick(hosts))}}});
      case 4:
        return json::array({{{"set_field", "ipv4_dst"},
                             {"to", pick(2) == 0 ? inside(pick(hosts)) : outside(pick(hosts))}},
                            {{"jump", pick(2)}}});
      case 5:
        return json::array({encap(pick(hosts)), {{"forward", "up"}}});
      case 6:
        return json::array({{{"vxlan_decap", true}}, {{"jump", pick(2)}}});
      default:
        return pick(2) == 0 ? json::array({{{"forward", "va"}}})
                            : json::array({{{"push_vlan", 5}}, {{"jump", pick(2)}}});
    }
  }

  json random_match(int hosts) {
    switch (pick(6)) {
      case 0:
        return json::object();
      case 1:
        return {{"ipv4_dst", inside(pick(hosts))}};
      case 2:
        return {{"ipv4_dst", outside(pick(hosts))}};
      case 3:
        return {{"inner_ipv4_dst", inside(pick(hosts))}};
      case 4:
        return {{"vxlan_vni", "100"}};
      default:
        return {{"vlan_id", "5"}};
    }
  }

  /// A rule, and now and then something about it that the configuration decides.
  json rule(const std::string& name, const json& match, const json& actions, int hosts,
            bool eswitch) {
    json out = {{"name", name}};
    if (pick(5) == 0) {
      json other = random_match(hosts);
      out["match_any_of"] = other == match ? json::array({match}) : json::array({match, other});
    } else {
      out["match"] = match;
    }
    if (pick(4) == 0) {
      json alternatives = json::array({actions});
      for (int i = 1 + pick(2); i > 0; --i) {
        json other = random_actions(hosts, eswitch);
        // An empty list and a drop are the same level.
        bool known = false;
        for (const json& one : alternatives) {
          const auto drops = [](const json& list) {
            return list.empty() || list[0].contains("drop");
          };
          known = known || one == other || (drops(one) && drops(other));
        }
        if (!known) alternatives.push_back(other);
      }
      out["actions_any_of"] = alternatives;
    } else {
      out["actions"] = actions;
    }
    if (pick(6) == 0) out["optional"] = true;
    if (pick(8) == 0) out["when"] = fmt::format("mode >= {}", pick(3));
    return out;
  }

  json table(int id, std::vector<json> rules, int hosts, bool eswitch) {
    if (pick(3) == 0) {
      rules.insert(rules.begin() + pick(static_cast<int>(rules.size()) + 1),
                   rule(fmt::format("extra{}", id), random_match(hosts),
                        random_actions(hosts, eswitch), hosts, eswitch));
    }
    json out = {{"id", id}};
    if (rules.size() > 1 && pick(4) == 0) {
      const auto half = rules.begin() + static_cast<std::ptrdiff_t>(rules.size() / 2);
      out["groups"] =
          json::array({{{"name", "g0"}, {"rules", std::vector<json>(rules.begin(), half)}},
                       {{"name", "g1"}, {"rules", std::vector<json>(half, rules.end())}}});
      out["any_order"] = pick(2) == 0;
    } else {
      out["rules"] = rules;
    }
    return out;
  }

  json host(int h, int hosts) {
    const bool tunnel = pick(4) != 0;
    std::vector<json> first;
    first.push_back(rule("arrive", {{"vxlan_vni", "100"}},
                         json::array({{{"vxlan_decap", true}}, {{"jump", 1}}}), hosts, true));
    for (int other = 0; other < hosts; ++other) {
      if (other == h) continue;
      json actions = json::array();
      if (tunnel) actions.push_back(encap(other));
      actions.push_back({{"forward", "up"}});
      first.push_back(
          rule(fmt::format("to{}", other), {{"ipv4_dst", inside(other)}}, actions, hosts, true));
    }
    first.push_back(rule("rest", json::object(), json::array({{{"jump", 1}}}), hosts, true));
    if (pick(3) == 0) first.back()["in_port"] = "up";
    std::vector<json> second = {rule("deliver", {{"ipv4_dst", inside(h)}},
                                     json::array({{{"forward", "va"}}}), hosts, true)};
    return {
        {"name", fmt::format("h{}", h)},
        {"containers", json::array({{{"name", "a"}, {"port", "va"}, {"ipv4", inside(h)}}})},
        {"eswitch",
         {{"ports", {"va", "up"}},
          {"tables", json::array({table(0, first, hosts, true), table(1, second, hosts, true)})}}}};
  }

  json fabric(int s, int hosts, bool two_switches) {
    json ports = json::array();
    std::vector<json> rules;
    for (int h = 0; h < hosts; ++h) {
      ports.push_back(fmt::format("p{}", h));
      const bool here = !two_switches || h % 2 == s;
      const json actions = json::array({{{"forward", here ? fmt::format("p{}", h) : "x"}}});
      rules.push_back(
          rule(fmt::format("out{}", h), {{"ipv4_dst", outside(h)}}, actions, hosts, false));
      rules.push_back(
          rule(fmt::format("in{}", h), {{"ipv4_dst", inside(h)}}, actions, hosts, false));
    }
    if (two_switches) ports.push_back("x");
    json second = {
        {"id", 1},
        {"rules", json::array({{{"name", "back"}, {"actions", json::array({{{"jump", 0}}})}}})}};
    return {{"name", fmt::format("s{}", s)},
            {"ports", ports},
            {"tables", json::array({table(0, rules, hosts, false), second})}};
  }

  std::mt19937_64 random_;
};

inline language::CoverModel model_with_mode() {
  language::CoverModel model;
  model.source = "random";
  language::ModelParameter mode;
  mode.name = "mode";
  mode.levels = {"0", "1", "2"};
  mode.numbers = {0, 1, 2};
  model.parameters.push_back(mode);
  return model;
}

}  // namespace greynic::testgen
