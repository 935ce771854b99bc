#pragma once

/// What a watch over queues found, and how it is written: JSON (configs/schema/burst.schema.json),
/// and lines for people. It is the same wherever the packets came from.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "greynic/burst/analyser.h"
#include "greynic/burst/tally.h"
#include "greynic/burst/threshold.h"

namespace greynic::burst {

struct QueueName {
  std::string name;  ///< "capture", "switch 0 port 3", "eth0"
  std::uint64_t bits_per_second = 0;
  std::uint64_t threshold_bytes = 0;
};

struct Findings {
  Allowance allowance;  ///< its rate: of the first queue
  Mode mode = Mode::kArmedAtEnqueue;
  std::vector<QueueName> queues;
  std::uint64_t packets_seen = 0, packets_marked = 0, records_lost = 0;
  std::uint64_t left_unseen = 0;     ///< packets whose departure a kernel did not tell of
  std::uint64_t clock_ran_back = 0;  ///< times that lay before the one before
  std::uint64_t duration_ns = 0;     ///< from the first packet to the last
  std::int64_t origin_unix_ns = 0;   ///< of time 0; 0: virtual time
  std::string incomplete;            ///< why the source ended too early; empty: it did not
  Tally tally;                       ///< of all bursts
  /// In the order in which they ended. Empty where the source told each to somebody as it ended.
  std::vector<Burst> bursts;
};

/// Without bursts: "bursts" is an empty list.
[[nodiscard]] nlohmann::json to_json(const Findings& findings);
[[nodiscard]] nlohmann::json to_json(const Findings& findings, const Burst& burst);
/// Its numbers, and the deepest bursts.
[[nodiscard]] std::string to_text(const Findings& findings);

}  // namespace greynic::burst
