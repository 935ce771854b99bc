#pragma once

/// The oracle of the topology tests: brute-force packet simulation over the JSON text of a
/// topology.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace greynic::testgen {

using nlohmann::json;

/// One row of the model, by name; a factor that is absent is not in it.
using Setting = std::map<std::string, std::string>;

/// Brute force: reads the topology's JSON as it stands and walks packets through it with headers as
/// text. Shares nothing with the generator but the meaning of the file.
class Network {
 public:
  explicit Network(const json& document) : document_(document) {
    for (const json& host : document["hosts"]) switches_[host["name"]] = host["eswitch"];
    if (document.contains("switches")) {
      for (const json& entry : document["switches"]) switches_[entry["name"]] = entry;
    }
    for (const json& wire : document["wires"]) {
      wires_[wire[0]] = wire[1];
      wires_[wire[1]] = wire[0];
    }
    for (const json& host : document["hosts"]) {
      for (const json& c : host["containers"]) {
        const std::string name =
            host["name"].get<std::string>() + "." + c["name"].get<std::string>();
        place_[name] = host["name"].get<std::string>() + "." + c["port"].get<std::string>();
        at_[place_[name]] = name;
        address_[name] = c["ipv4"];
      }
    }
  }

  /// A factor exists where it should, nothing loops, all flows end well, no match is misplaced.
  bool valid(const Setting& setting, const std::set<std::string>& factors) {
    if (!factors_exist_rightly(setting, factors)) return false;
    visits_.clear();
    for (const json& flow : document_["flows"]) {
      if (!ends_well(flow, setting)) return false;
    }
    return !some_match_is_misplaced(setting);
  }

  bool exists(const Setting& setting, const std::set<std::string>& factors) const {
    return factors_exist_rightly(setting, factors);
  }
  /// Whether all packets between two containers end as their flow says.
  bool fares_well(const std::string& from, const std::string& to, const Setting& setting) {
    for (const json& flow : document_["flows"]) {
      if (flow["from"] == from && flow["to"] == to && !ends_well(flow, setting)) return false;
    }
    return true;
  }
  bool misplaces_a_match(const Setting& setting) {
    visits_.clear();
    for (const json& flow : document_["flows"]) ends_well(flow, setting);
    return some_match_is_misplaced(setting);
  }
  /// Whether a table of a switch has a rule of that name.
  bool has_rule(const std::string& at, int table_id, const std::string& rule_name) const {
    bool found = false;
    for_each_rule([&](const std::string& name, const json& table, const json& rule) {
      found = found || (name == at && table["id"] == table_id && rule["name"] == rule_name);
    });
    return found;
  }

 private:
  using Headers = std::map<std::string, std::string>;

  template <typename Visit>
  void for_each_rule(Visit visit) const {
    for (const auto& [name, entry] : switches_) {
      for (const json& table : entry["tables"]) {
        for (const json& rule : all_rules(table)) visit(name, table, rule);
      }
    }
  }

  static json all_rules(const json& table) {
    json out = table.value("rules", json::array());
    if (table.contains("groups")) {
      for (const json& group : table["groups"]) {
        for (const json& rule : group["rules"]) out.push_back(rule);
      }
    }
    return out;
  }

  static bool there(const std::string& at, const json& rule, const Setting& setting) {
    // The only conditions used here are "mode >= N".
    if (rule.contains("when") &&
        std::stoi(setting.at("mode")) < std::stoi(rule["when"].get<std::string>().substr(8))) {
      return false;
    }
    if (!rule.value("optional", false)) return true;
    const auto found = setting.find(at + "." + rule["name"].get<std::string>() + ".installed");
    return found != setting.end() && found->second == "true";
  }

  bool factors_exist_rightly(const Setting& setting, const std::set<std::string>& factors) const {
    std::set<std::string> wanted = {"mode"};
    for_each_rule([&](const std::string& at, const json&, const json& rule) {
      const std::string name = at + "." + rule["name"].get<std::string>();
      const bool by_mode =
          !rule.contains("when") ||
          std::stoi(setting.at("mode")) >= std::stoi(rule["when"].get<std::string>().substr(8));
      if (by_mode) wanted.insert(name + ".installed");
      if (there(at, rule, setting)) {
        wanted.insert(name + ".match");
        wanted.insert(name + ".action");
      }
    });
    for (const std::string& factor : factors) {
      const bool always = factor.ends_with(".order") || factor == "mode";
      if (setting.contains(factor) != (always || wanted.contains(factor))) return false;
    }
    return true;
  }

  json match_of(const std::string& at, const json& rule, const Setting& setting) const {
    json match = rule.value("match", json::object());
    if (rule.contains("match_any_of")) {
      const bool several = rule["match_any_of"].size() > 1;
      const std::string name = at + "." + rule["name"].get<std::string>() + ".match#";
      match = rule["match_any_of"][several ? std::stoul(setting.at(name)) : 0];
    }
    if (rule.contains("in_port")) {
      const json& ports = switches_.at(at)["ports"];
      const auto place = std::find(ports.begin(), ports.end(), rule["in_port"]);
      match["in_port"] = std::to_string(place - ports.begin() + 1);
    }
    return match;
  }

  json actions_of(const std::string& at, const json& rule, const Setting& setting) const {
    if (!rule.contains("actions_any_of")) return rule.value("actions", json::array());
    if (rule["actions_any_of"].size() == 1) return rule["actions_any_of"][0];
    const std::string& level = setting.at(at + "." + rule["name"].get<std::string>() + ".action#");
    return rule["actions_any_of"][std::stoul(level)];
  }

  static bool matched(const json& match, const Headers& headers) {
    for (const auto& [field, value] : match.items()) {
      const auto found = headers.find(field);
      if (found == headers.end() || found->second != value.get<std::string>()) return false;
    }
    return true;
  }

  std::vector<json> rules_in_order(const std::string& at, const json& table,
                                   const Setting& setting) const {
    std::vector<json> out;
    for (const json& rule : table.value("rules", json::array())) out.push_back(rule);
    if (!table.contains("groups")) return out;
    std::vector<std::string> names;
    for (const json& group : table["groups"]) names.push_back(group["name"]);
    const auto order = setting.find(fmt::format("{}.t{}.order", at, table["id"].get<int>()));
    if (order != setting.end()) {
      names.clear();
      std::string text = order->second + ">";
      while (!text.empty()) {
        names.push_back(text.substr(0, text.find('>')));
        text.erase(0, text.find('>') + 1);
      }
    }
    for (const std::string& name : names) {
      for (const json& group : table["groups"]) {
        if (group["name"] != name) continue;
        for (const json& rule : group["rules"]) out.push_back(rule);
      }
    }
    return out;
  }

  bool ends_well(const json& flow, const Setting& setting) {
    const bool deliver = flow.value("expect", "delivered") == "delivered";
    Headers headers = {{"ether_type", "0x0800"},
                       {"ipv4_src", address_.at(flow["from"])},
                       {"ipv4_dst", address_.at(flow["to"])},
                       {"ip_protocol", "17"},
                       {"l4_dst_port", "4791"}};
    std::string port = place_.at(flow["from"]);
    int table = 0;
    bool entering = true;
    std::set<std::string> seen;
    while (true) {
      const std::string at = port.substr(0, port.find('.'));
      if (entering) {
        headers.erase("reg0");
        const json& ports = switches_.at(at)["ports"];
        for (std::size_t i = 0; i < ports.size(); ++i) {
          if (at + "." + ports[i].get<std::string>() == port) {
            headers["in_port"] = std::to_string(i + 1);
          }
        }
        table = 0;
      }
      entering = false;
      std::string key = at + "|" + std::to_string(table);
      visits_[key].push_back(headers);
      for (const auto& [field, value] : headers) key += "|" + field + "=" + value;
      if (!seen.insert(key).second) return false;  // a loop
      json actions;
      bool hit = false;
      for (const json& entry : switches_.at(at)["tables"]) {
        if (entry["id"] != table) continue;
        for (const json& rule : rules_in_order(at, entry, setting)) {
          if (!there(at, rule, setting) || !matched(match_of(at, rule, setting), headers)) continue;
          actions = actions_of(at, rule, setting);
          hit = true;
          break;
        }
      }
      if (!hit) return !deliver;
      bool moved = false;
      for (const json& action : actions) {
        if (action.contains("drop")) break;
        if (action.contains("jump")) {
          table = action["jump"];
          moved = true;
        } else if (action.contains("set_field")) {
          if (!headers.contains(action["set_field"])) return !deliver;
          headers[action["set_field"]] = action["to"];
        } else if (action.contains("vxlan_encap")) {
          if (headers.contains("vxlan_vni")) return !deliver;
          Headers outer;
          for (const auto& [field, value] : headers) {
            if (field == "in_port") {
              outer[field] = value;
            } else if (field != "vlan_id" && field != "vlan_present") {
              outer["inner_" + field] = value;
            }
          }
          const std::string options = action["options"];
          outer["ether_type"] = "0x0800";
          outer["ip_protocol"] = "17";
          outer["l4_dst_port"] = "4789";
          outer["ipv4_src"] = "10.9.9.9";
          outer["ipv4_dst"] = options.substr(options.find("dst=") + 4);
          outer["vxlan_vni"] = std::to_string(action["vxlan_encap"].get<int>());
          headers = outer;
        } else if (action.contains("vxlan_decap")) {
          if (!headers.contains("vxlan_vni")) return !deliver;
          Headers plain;
          for (const auto& [field, value] : headers) {
            if (field == "in_port") plain[field] = value;
            if (field.starts_with("inner_")) plain[field.substr(6)] = value;
          }
          headers = plain;
        } else if (action.contains("push_vlan")) {
          if (headers.contains("vlan_id")) return !deliver;
          headers["vlan_id"] = std::to_string(action["push_vlan"].get<int>());
          headers["vlan_present"] = "1";
        } else if (action.contains("pop_vlan")) {
          if (headers.erase("vlan_id") == 0) return !deliver;
          headers.erase("vlan_present");
        } else if (action.contains("forward")) {
          const std::string out = at + "." + action["forward"].get<std::string>();
          if (wires_.contains(out)) {
            port = wires_.at(out);
            entering = true;
            moved = true;
          } else if (at_.contains(out)) {
            if (headers.contains("vxlan_vni")) return !deliver;
            return deliver && at_.at(out) == flow["to"].get<std::string>();
          }
        }
      }
      if (!moved) return !deliver;
    }
  }

  bool some_match_is_misplaced(const Setting& setting) const {
    bool misplaced = false;
    for_each_rule([&](const std::string& at, const json& table, const json& rule) {
      const bool chosen = rule.value("optional", false) ||
                          (rule.contains("match_any_of") && rule["match_any_of"].size() > 1);
      if (!chosen || !there(at, rule, setting)) return;
      const auto visits = visits_.find(at + "|" + std::to_string(table["id"].get<int>()));
      if (visits == visits_.end()) return;
      bool some = false;
      for (const Headers& headers : visits->second) {
        bool all = true;
        const json match = match_of(at, rule, setting);
        for (const auto& [field, value] : match.items()) {
          all = all && (headers.contains(field) || field == "in_port");
        }
        some = some || all;
      }
      misplaced = misplaced || !some;
    });
    return misplaced;
  }

  const json& document_;
  std::map<std::string, json> switches_;
  std::map<std::string, std::string> wires_;
  std::map<std::string, std::string> place_;  ///< container: port
  std::map<std::string, std::string> at_;     ///< port: container
  std::map<std::string, std::string> address_;
  std::map<std::string, std::vector<Headers>> visits_;
};

}  // namespace greynic::testgen
