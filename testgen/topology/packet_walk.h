#pragma once

/// One step of a packet through a topology: what an action list does to its headers and where it
/// goes.

#include <map>
#include <optional>
#include <string>

#include "greynic/testgen/topology.h"

namespace greynic::testgen {

/// The headers that a packet has now, with their values. Fields that are not there have no value.
struct Headers {
  std::map<MatchField, U128> fields;
  bool tunnelled = false;
  auto operator<=>(const Headers&) const = default;
};

/// A packet about to be looked up in a table.
struct WalkState {
  std::size_t at = 0;     ///< switch
  std::size_t table = 0;  ///< place in its list of tables
  Headers headers;
  auto operator<=>(const WalkState&) const = default;
};

/// Where an action list takes a packet.
struct WalkStep {
  std::optional<WalkState> next;         ///< looked up again
  std::optional<std::size_t> container;  ///< or handed to a container,
  std::string lost;                      ///< or neither, and why
};

/// The state in which a flow's packet enters its first table.
[[nodiscard]] WalkState start_of(const Topology& topology, const TopologyFlow& flow);

/// Every header that the match reads is there and has the value. Ports, registers and connection
/// state are always there, zero until they are set.
[[nodiscard]] bool matches(const Match& match, const Headers& headers);

/// Every field that the match reads is there, whatever its value.
[[nodiscard]] bool has_headers(const Match& match, const Headers& headers);

[[nodiscard]] WalkStep apply(const Topology& topology, const WalkState& state,
                             const std::vector<Action>& actions);

/// Why an action list cannot be used in a topology; empty: it can.
[[nodiscard]] std::string unusable(const TopologySwitch& at, const std::vector<Action>& actions);

}  // namespace greynic::testgen
