#pragma once

#include "greynic/loop/talk.h"
#include "greynic/target/target.h"

namespace greynic::loop {

/// The kind "twin" with one option more: counters=PATH publishes the twin's counters to a metrics
/// region at PATH while traffic runs, every counter_poll_ms of virtual time, where `greynic watch`
/// and any other one-sided reader finds them. `talk` hears when that cannot be done.
[[nodiscard]] target::Kind watched_twin_kind(const Talk& talk);

}  // namespace greynic::loop
