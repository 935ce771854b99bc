#pragma once

/// The target kind "verbs": real traffic on an RDMA device of this machine.
///
///   verbs:rxe0                     both ends on rxe0, in this process
///   verbs:rxe0?peer_device=rxe1    the other end on another device of this machine
///   verbs:mlx5_0?peer=HOST:PORT    the other end behind `greynic agent`
///   ...&peer_counters=HOST:PORT    and its counters READ by a monitor there while traffic runs
///
/// Several peers, of either kind, are named with commas between. The options are those of
/// docs/verbs.md; target_options.cc reads them.

#include <string_view>
#include <vector>

#include "greynic/target/counter_arena.h"
#include "greynic/target/far_counters.h"
#include "greynic/target/target.h"
#include "greynic/verbs/peer.h"

namespace greynic::verbs {

/// `connect` reaches peers; without it peer= is refused with the reason. While traffic runs, counters
/// are published into an arena and READ from there; without `arenas` they are kept as they are. `far`
/// reaches the monitors of peers; without it peer_counters= is refused.
[[nodiscard]] target::Kind verbs_kind(PeerConnector connect, target::CounterArenas arenas = {},
                                      target::FarCountersOpener far = {});

/// What a driver is known to do differently from the book. Facts, not surprises.
struct Trait {
  std::string_view driver;  ///< prefix of Device::driver(), or "rxe"
  std::string_view subject;
  std::string_view fact;
  std::string_view source;
};
[[nodiscard]] std::span<const Trait> known_traits();

}  // namespace greynic::verbs
