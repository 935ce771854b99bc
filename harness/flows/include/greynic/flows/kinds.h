#pragma once

/// The kinds of target that hold rules, for greynic::target's registry.
///
/// "ovs:BRIDGE" starts an Open vSwitch of greynic's own with one bridge and measures on it;
/// "ovs:BRIDGE?rundir=/run/openvswitch" changes the rules of one that runs already.
/// docs/flows.md lists every option.

#include "greynic/target/target.h"

namespace greynic::flows {

[[nodiscard]] target::Kind ovs_kind();

}  // namespace greynic::flows
