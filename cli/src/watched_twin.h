#pragma once

#include "greynic/target/target.h"

namespace greynic::cli {

/// The kind "twin" with one option more: counters=PATH publishes the twin's counters to a metrics
/// region at PATH while traffic runs, every counter_poll_ms of virtual time, where `greynic watch`
/// and any other one-sided reader finds them.
[[nodiscard]] target::Kind watched_twin_kind();

}  // namespace greynic::cli
