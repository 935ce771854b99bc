#pragma once

/// A network of containers, eSwitches, fabric switches and wires, with the rules that join them
/// (docs/formats/topology.md). What may differ between configurations is a factor: whether an
/// optional rule is installed, which match of several it has, which actions of several it does, in
/// what order the groups of a table are tried. A configuration is valid when every flow of the
/// topology ends where it should, no packet ever loops, and no chosen rule matches a header that no
/// packet has at that point. This becomes clauses, so invalid configurations are never generated.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/language/constraint_language.h"
#include "greynic/language/cover_model.h"

namespace greynic::testgen {

struct TopologyRule {
  std::string name;                          ///< unique in its switch; factors are named after it
  std::vector<Match> matches;                ///< at least one; several: the factor NAME.match
  std::vector<std::vector<Action>> actions;  ///< at least one; several: the factor NAME.action
  bool optional = false;                     ///< the factor NAME.installed
  std::string when;                          ///< constraint over the campaign; empty: always
};

/// Rules that are tried together; the first that matches decides.
struct TopologyGroup {
  std::string name;
  std::vector<TopologyRule> rules;
};

struct TopologyTable {
  std::uint32_t id = 0;
  std::vector<TopologyGroup> groups;
  bool any_order = false;  ///< the order of the groups is the factor SWITCH.tID.order
};

/// An eSwitch of a host or a switch of the fabric. Packets enter at table 0; in_port is the port's
/// place in `ports`, from 1.
struct TopologySwitch {
  std::string name;
  std::vector<std::string> ports;
  std::vector<TopologyTable> tables;
};

struct PortRef {
  std::size_t at = 0;    ///< switch
  std::size_t port = 0;  ///< 0-based
  auto operator<=>(const PortRef&) const = default;
};

struct TopologyContainer {
  std::string name;
  std::string host;
  PortRef port;
  U128 ipv4 = 0;
};

/// Packets from one container to another. The packet is what leaves the container.
struct TopologyFlow {
  std::size_t from = 0;
  std::size_t to = 0;
  std::map<MatchField, U128> packet;
  bool delivered = true;  ///< false: the packet must be dropped
};

struct Topology {
  std::string name;
  std::string source;
  std::vector<TopologySwitch> switches;
  std::vector<TopologyContainer> containers;
  std::map<PortRef, PortRef> wires;  ///< both ways
  std::vector<TopologyFlow> flows;
};

[[nodiscard]] Result<Topology> read_topology(const std::string& path);
[[nodiscard]] Result<Topology> parse_topology(std::string_view text, const std::string& source);

/// Adds the topology's factors and its rule of validity to a model. `values` of the added levels
/// are their texts (Booleans are "false", "true"). kBadInput: a `when` that does not parse;
/// kTooBig: more packet states or loops than the stated limits.
[[nodiscard]] Result<void> add_topology(std::shared_ptr<const Topology> topology,
                                        language::CoverModel& model,
                                        const language::ConstantLookup& constants);

}  // namespace greynic::testgen
