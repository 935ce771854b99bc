#pragma once

/// What to look at: the rules of a file (docs/formats/trace_rules.md), and the plan that they become
/// on this host, with every device, container and hook that they name found.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/trace/topology.h"

namespace greynic::trace {

struct Prefix {
  Address address{};
  int bits = 0;  ///< of 128
};

/// First and last.
using Ports = std::pair<std::uint16_t, std::uint16_t>;
inline constexpr Ports kAllPorts = {0, 65535};

struct Match {
  std::optional<Prefix> source, destination;
  std::optional<Prefix> address;  ///< either of the two
  std::uint8_t protocol = 0;      ///< 0: any
  Ports source_port = kAllPorts, destination_port = kAllPorts;
  std::optional<Ports> port;  ///< either of the two
  std::string container;      ///< empty: any
  std::optional<std::uint32_t> vni, queue_pair;
};

struct PointPattern {
  std::string device;  ///< "place/device", "device" of this place; '*' stands for any text
  bool receive = true, queue = true;
};

enum class FlowDetail { kPorts, kHosts, kRule };

/// Out of band: packets are not touched. In band: they carry their times along the points of a rule.
enum class Engine { kOutOfBand, kInBand };

struct Rule {
  std::string name;
  Match match;
  std::vector<PointPattern> points;  ///< empty: everywhere
  bool timed = true;                 ///< delays, not counts alone
  bool loss = true;
  std::uint32_t sample = 0;  ///< every so many-th journey is kept as it is; 0: none
  FlowDetail flow = FlowDetail::kPorts;
  std::optional<std::uint32_t> most_bytes;  ///< in band: larger packets of IP are left as they are
  bool through_netfilter = false;           ///< in band: bridges may show packets to netfilter
};

/// When packets are followed, counted from when rules come in force.
struct Window {
  std::chrono::nanoseconds after{0};
  std::optional<std::chrono::nanoseconds> length;  ///< without: until other rules come

  [[nodiscard]] bool open(std::chrono::nanoseconds since) const {
    return since >= after && !over(since);
  }
  [[nodiscard]] bool over(std::chrono::nanoseconds since) const {
    return length && since >= after + *length;
  }
  /// The same window for rules that come in force later by so much.
  [[nodiscard]] Window later(std::chrono::nanoseconds by) const;
};

struct Rules {
  std::string source;  ///< the file, for messages
  Engine engine = Engine::kOutOfBand;
  std::vector<Rule> rules;
  std::optional<double> cpu_budget;              ///< share of all CPUs that tracing may take
  std::optional<std::chrono::nanoseconds> slow;  ///< keep journeys that take longer
  Window window;
};

/// kBadInput with file, place and remedy.
[[nodiscard]] Result<Rules> read_rules(const std::string& path);
[[nodiscard]] Result<Rules> parse_rules(std::string_view text, const std::string& source);

/// A rule as programs in the kernel take it: one way to fulfil a rule of the file.
struct KernelMatch {
  std::size_t rule = 0;  ///< index in the file
  Prefix source, destination;
  Ports source_port = kAllPorts, destination_port = kAllPorts;
  std::uint8_t protocol = 0;
  std::optional<std::uint32_t> vni, queue_pair;
};

struct Plan {
  std::vector<KernelMatch> matches;  ///< the first that fits wins
  /// For each device of the topology which rules look at it, as bits: received and queued packets.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> points;
};

/// kBadInput when a rule names a device or container that is not there, kTooBig when the rules
/// unfold into more than the kernel's table holds.
[[nodiscard]] Result<Plan> make_plan(const Rules& rules, const Topology& topology);

/// "10.1.0.0/16", "fd00::/8" or an address alone; empty when it is neither.
[[nodiscard]] std::optional<Prefix> parse_prefix(const std::string& text);
[[nodiscard]] std::string address_text(const Address& address);

}  // namespace greynic::trace
