#pragma once

/// `greynic trace collect`: the hosts of a file as one trace. Counts and delays within a host are the
/// agents' own. Between hosts a hop leads from the last device of one to the first of the next:
///
/// - lost packets are those that left one and did not enter the other, by counting;
/// - delays are those of packets that rules keep, known on both sides by what their headers say (IP's
///   identification, TCP's or RoCE's number). A packet that looks like another one of the same second is
///   left out;
/// - clocks: hosts that run on one kernel have one clock. All others are compared by round trips
///   (trace/clock.h), and every delay says how far it may be off.
///
/// A host that is away is asked again each turn; its agent keeps what it sees meanwhile.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace_hosts {

struct HostSpec {
  std::string name;
  std::string agent;  ///< "10.0.0.7:18700"
};

struct Hosts {
  std::string certificates;  ///< directory; empty: none
  std::vector<HostSpec> hosts;
};

/// docs/formats/trace_hosts.md. kBadInput with file and place.
[[nodiscard]] Result<Hosts> read_hosts(const std::string& path);

class Collector {
 public:
  using OnEvent = std::function<void(const trace::JourneyEvent&)>;
  /// `rules` is the text of the file `source`. Each host gets those that fit it; a rule that fits none
  /// is kBadInput, a host that is not reached at the start kIo. Events come with times of our clock.
  [[nodiscard]] static Result<std::unique_ptr<Collector>> start(
      const Hosts& hosts, const std::string& rules, const std::string& source,
      std::function<void(std::string_view)> tell, OnEvent on_event = {});
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Asks every host; to be called once a second or so.
  void turn();
  /// All hosts as one: places are called HOST:PLACE/DEVICE.
  [[nodiscard]] trace::Report report() const;

 private:
  struct State;
  explicit Collector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::trace_hosts
