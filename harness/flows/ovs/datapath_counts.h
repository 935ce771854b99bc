#pragma once

/// What the userspace datapath counts: the lookups of its packet threads and its megaflows.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::flows {

/// dpif-netdev/pmd-stats-show, summed over packet threads. Hits are packets.
struct PmdStats {
  double packets = 0;
  double recirculations = 0;  ///< passes beyond each packet's first, as of what left a tunnel
  double exact_match_hits = 0;
  double signature_match_hits = 0;
  double megaflow_hits = 0;
  double simple_match_hits = 0;  ///< flows so plain that no subtable has to be searched
  double misses = 0;             ///< went up to the OpenFlow tables
  double lookups_per_hit = 0;    ///< subtables searched for one megaflow hit
  double processing_cycles = 0;  ///< of the time stamp counter, waiting for the CPU included

  /// Subtables searched for one packet, whichever cache it hit.
  [[nodiscard]] double lookups_per_packet() const {
    return packets > 0 ? lookups_per_hit * megaflow_hits / packets : 0.0;
  }
};

/// kBadInput when the text is not what Open vSwitch 2.17 to 3.x prints.
[[nodiscard]] Result<PmdStats> parse_pmd_stats(std::string_view text);

/// upcall/show: the threads that look after megaflows.
struct RevalidatorStats {
  double flows = 0;
  double flow_limit = 0;
  double dump_ms = 0;  ///< to look at every megaflow once
};

/// kBadInput when the text is not what Open vSwitch prints.
[[nodiscard]] Result<RevalidatorStats> parse_revalidators(std::string_view text);

struct MegaflowCount {
  std::size_t flows = 0;
  std::size_t masks = 0;  ///< distinct masks among them: the subtables of the classifier
};

/// Counts flows and distinct masks in what dpctl/dump-flows prints.
[[nodiscard]] MegaflowCount count_megaflows(std::string_view text);

/// The mask of one dumped flow as canonical text: every value gone, every mask kept.
[[nodiscard]] std::string megaflow_mask(std::string_view line);

}  // namespace greynic::flows
