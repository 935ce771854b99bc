#pragma once

#include "greynic/loop/talk.h"
#include "greynic/target/counter_arena.h"

namespace greynic::loop {

/// Arenas of the monitor (probes/zero) for the counters of runs. When one cannot be made, `talk`
/// hears why and readings stay as they are.
[[nodiscard]] target::CounterArenas counter_arenas(const Talk& talk);

}  // namespace greynic::loop
