#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/testgen/topology.h"
#include "topology/packet_walk.h"

namespace greynic::testgen {

namespace {

using nlohmann::json;
using enum MatchField;

constexpr std::size_t kMostOrderedGroups = 5;  // 120 orders

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& source) { out_.source = source; }

  Result<Topology> read(const json& document) {
    out_.name = document.value("name", "");
    for (std::size_t i = 0; i < document["hosts"].size(); ++i) {
      if (auto done = host(document["hosts"][i], fmt::format("/hosts/{}", i)); !done) {
        return pass_on(done);
      }
    }
    for (std::size_t i = 0; document.contains("switches") && i < document["switches"].size(); ++i) {
      const json& entry = document["switches"][i];
      if (auto done =
              add_switch(entry["name"].get<std::string>(), entry, fmt::format("/switches/{}", i));
          !done) {
        return pass_on(done);
      }
    }
    if (auto done = check_actions(); !done) return pass_on(done);
    if (auto done = wires(document); !done) return pass_on(done);
    if (auto done = flows(document["flows"]); !done) return pass_on(done);
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> bad(const std::string& path, const std::string& reason) const {
    return files::bad_value(out_.source, path, reason);
  }

  Result<void> host(const json& entry, const std::string& path) {
    const std::string name = entry["name"].get<std::string>();
    if (auto done = add_switch(name, entry["eswitch"], path + "/eswitch"); !done) return done;
    const std::size_t at = out_.switches.size() - 1;
    for (std::size_t i = 0; i < entry["containers"].size(); ++i) {
      const json& item = entry["containers"][i];
      const std::string place = fmt::format("{}/containers/{}", path, i);
      TopologyContainer container;
      container.host = name;
      container.name = fmt::format("{}.{}", name, item["name"].get<std::string>());
      const auto port = port_named(at, item["port"].get<std::string>());
      if (!port) return bad(place, "its port is not a port of the eSwitch");
      container.port = {at, *port};
      const auto address = field_value_from_string(kIpv4Dst, item["ipv4"].get<std::string>());
      if (!address) return bad(place + "/ipv4", "not an IPv4 address");
      container.ipv4 = *address;
      if (!container_at_.emplace(container.name, out_.containers.size()).second) {
        return bad(place, "a second container of this name");
      }
      if (!container_ports_.insert(container.port).second) {
        return bad(place, "a second container at this port");
      }
      out_.containers.push_back(std::move(container));
    }
    return {};
  }

  Result<void> add_switch(const std::string& name, const json& entry, const std::string& path) {
    for (const TopologySwitch& other : out_.switches) {
      if (other.name == name) return bad(path, fmt::format("a second '{}'", name));
    }
    TopologySwitch made;
    made.name = name;
    made.ports = entry["ports"].get<std::vector<std::string>>();
    if (std::set(made.ports.begin(), made.ports.end()).size() < made.ports.size()) {
      return bad(path + "/ports", "a port stands there twice");
    }
    std::set<std::uint32_t> ids;
    std::set<std::string> rule_names;
    for (std::size_t t = 0; t < entry["tables"].size(); ++t) {
      const std::string place = fmt::format("{}/tables/{}", path, t);
      auto table = read_table(made, entry["tables"][t], place);
      if (!table) return pass_on(table);
      if (!ids.insert(table->id).second) return bad(place, "a second table of this id");
      for (const TopologyGroup& group : table->groups) {
        for (const TopologyRule& rule : group.rules) {
          if (!rule_names.insert(rule.name).second) {
            return bad(place, fmt::format("a second rule '{}' in {}", rule.name, name));
          }
        }
      }
      made.tables.push_back(std::move(*table));
    }
    if (!ids.contains(0))
      return bad(path + "/tables", "packets enter at table 0, which is missing");
    out_.switches.push_back(std::move(made));
    places_.push_back(path);
    return {};
  }

  Result<TopologyTable> read_table(const TopologySwitch& at, const json& entry,
                                   const std::string& path) {
    TopologyTable table;
    table.id = entry["id"].get<std::uint32_t>();
    table.any_order = entry.value("any_order", false);
    if (entry.contains("rules")) {
      auto group = read_group(at, table.id, "all", entry["rules"], path + "/rules");
      if (!group) return pass_on(group);
      table.groups.push_back(std::move(*group));
    }
    for (std::size_t g = 0; entry.contains("groups") && g < entry["groups"].size(); ++g) {
      const json& item = entry["groups"][g];
      const std::string place = fmt::format("{}/groups/{}", path, g);
      auto group = read_group(at, table.id, item["name"].get<std::string>(), item["rules"],
                              place + "/rules");
      if (!group) return pass_on(group);
      table.groups.push_back(std::move(*group));
    }
    if (table.any_order && table.groups.size() > kMostOrderedGroups) {
      return bad(path, fmt::format("any_order takes at most {} groups", kMostOrderedGroups));
    }
    return table;
  }

  Result<TopologyGroup> read_group(const TopologySwitch& at, std::uint32_t table,
                                   const std::string& name, const json& list,
                                   const std::string& path) {
    TopologyGroup group;
    group.name = name;
    for (std::size_t r = 0; r < list.size(); ++r) {
      const json& entry = list[r];
      const std::string place = fmt::format("{}/{}", path, r);
      TopologyRule rule;
      rule.name = entry.value("name", fmt::format("t{}.{}.{}", table, name, r));
      rule.optional = entry.value("optional", false);
      rule.when = entry.value("when", "");
      std::optional<std::size_t> in_port;
      if (entry.contains("in_port")) {
        const std::string port = entry["in_port"].get<std::string>();
        const auto found = std::find(at.ports.begin(), at.ports.end(), port);
        if (found == at.ports.end()) return bad(place, fmt::format("no port '{}'", port));
        in_port = static_cast<std::size_t>(found - at.ports.begin());
      }
      const json matches = entry.contains("match_any_of")
                               ? entry["match_any_of"]
                               : json::array({entry.value("match", json::object())});
      for (const json& item : matches) {
        auto match = files::match_from_json(item, out_.source, place + "/match");
        if (!match) return pass_on(match);
        if (in_port) match->set(kInPort, *in_port + 1);
        rule.matches.push_back(std::move(*match));
      }
      const json actions = entry.contains("actions_any_of")
                               ? entry["actions_any_of"]
                               : json::array({entry.value("actions", json::array())});
      for (const json& list_of_actions : actions) {
        auto& made = rule.actions.emplace_back();
        for (const json& item : list_of_actions) {
          auto action = files::action_from_json(item, out_.source, place + "/actions");
          if (!action) return pass_on(action);
          made.push_back(std::move(*action));
        }
      }
      group.rules.push_back(std::move(rule));
    }
    return group;
  }

  /// Jumps may go to tables that come later, so actions are judged when all tables are read.
  Result<void> check_actions() const {
    for (std::size_t s = 0; s < out_.switches.size(); ++s) {
      for (const TopologyTable& table : out_.switches[s].tables) {
        for (const TopologyGroup& group : table.groups) {
          for (const TopologyRule& rule : group.rules) {
            for (const std::vector<Action>& actions : rule.actions) {
              const std::string why = unusable(out_.switches[s], actions);
              if (!why.empty()) {
                return bad(places_[s], fmt::format("rule '{}': {}", rule.name, why));
              }
            }
          }
        }
      }
    }
    return {};
  }

  std::optional<std::size_t> port_named(std::size_t at, std::string_view name) const {
    const std::vector<std::string>& ports = out_.switches[at].ports;
    const auto found = std::find(ports.begin(), ports.end(), name);
    if (found == ports.end()) return std::nullopt;
    return static_cast<std::size_t>(found - ports.begin());
  }

  /// "leaf0.p3"
  std::optional<PortRef> port_ref(std::string_view text) const {
    for (std::size_t s = 0; s < out_.switches.size(); ++s) {
      const std::string& name = out_.switches[s].name;
      if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '.')
        continue;
      if (const auto port = port_named(s, text.substr(name.size() + 1))) return PortRef{s, *port};
    }
    return std::nullopt;
  }

  Result<void> wires(const json& document) {
    std::set<PortRef> taken = container_ports_;
    for (std::size_t i = 0; document.contains("wires") && i < document["wires"].size(); ++i) {
      std::vector<PortRef> ends;
      for (const json& end : document["wires"][i]) {
        const std::string path = fmt::format("/wires/{}", i);
        const auto port = port_ref(end.get<std::string>());
        if (!port) return bad(path, fmt::format("no port '{}'", end.get<std::string>()));
        if (!taken.insert(*port).second) {
          return bad(path, fmt::format("something is at '{}' already", end.get<std::string>()));
        }
        ends.push_back(*port);
      }
      out_.wires[ends[0]] = ends[1];
      out_.wires[ends[1]] = ends[0];
    }
    return {};
  }

  std::optional<std::size_t> container_named(const std::string& name) const {
    const auto found = container_at_.find(name);
    if (found == container_at_.end()) return std::nullopt;
    return found->second;
  }

  Result<void> flows(const json& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json& entry = list[i];
      const std::string path = fmt::format("/flows/{}", i);
      const auto from = container_named(entry["from"].get<std::string>());
      const auto to = container_named(entry["to"].get<std::string>());
      if (!from || !to) return bad(path, "'from' and 'to' must name containers, as HOST.NAME");
      TopologyFlow flow;
      flow.from = *from;
      flow.to = *to;
      flow.delivered = entry.value("expect", "delivered") == "delivered";
      // A RoCEv2 packet, unless the file says otherwise.
      flow.packet = {{kEtherType, 0x0800},
                     {kIpv4Src, out_.containers[*from].ipv4},
                     {kIpv4Dst, out_.containers[*to].ipv4},
                     {kIpProtocol, 17},
                     {kL4DstPort, 4791}};
      if (entry.contains("packet")) {
        for (const auto& [name, value] : entry["packet"].items()) {
          const auto field = match_field_named(name);
          const auto number = field && value.is_string()
                                  ? field_value_from_string(*field, value.get<std::string>())
                                  : std::nullopt;
          if (!number) return bad(path + "/packet/" + name, "no such field, or not a value of it");
          flow.packet[*field] = *number;
        }
      }
      out_.flows.push_back(std::move(flow));
    }
    return {};
  }

  Topology out_;
  std::map<std::string, std::size_t> container_at_;
  std::set<PortRef> container_ports_;
  std::vector<std::string> places_;  ///< of each switch in the file
};

}  // namespace

Result<Topology> parse_topology(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (auto checked = files::check_schema(*document, "topology", source); !checked) {
    return pass_on(checked);
  }
  return TopologyReader(source).read(*document);
}

Result<Topology> read_topology(const std::string& path) {
  const auto text = files::read_text(path);
  if (!text) return pass_on(text);
  return parse_topology(*text, path);
}

}  // namespace greynic::testgen
