#pragma once

/// The target kind `exec:COMMAND`: your own command measures. It is started once by /bin/sh, reads
/// one JSON object a line and answers with one JSON object a line (docs/formats/exec.md):
///
///     {"id":1,"configuration":{"qp_count":64},"repeat":0,"seconds":1,"seed":7}
///     {"id":1,"bandwidth_gbps":91.2,"latency_us_p50":3.1,"counters":{"rx_bytes":17}}
///     {"id":2,"outcome":"refused","reason":"the driver has no such mode"}
///
/// All requests of one measure() are sent ahead as fast as the command reads them, so it may work
/// on several and answer in any order. Whatever the command does wrong becomes an outcome of the
/// requests it concerns: an answer that cannot be understood, its silence, its exit. What it prints
/// on stderr goes to ours.

#include "greynic/target/target.h"

namespace greynic::exec {

/// A command that neither answers what it owes nor exits for this long is ended, and what it owes
/// has timed out; whatever else it prints does not count. To it come ten times the duration of the
/// longest request. `exec:timeout=30s COMMAND` replaces both.
inline constexpr std::chrono::seconds kSilenceLimit{120};

/// To be registered with target::register_kind.
[[nodiscard]] target::Kind kind();

}  // namespace greynic::exec
