#pragma once

/// The kinds of target that hold rules, for greynic::target's registry.
///
/// "ovs:BRIDGE" starts an Open vSwitch of greynic's own with one bridge and measures on it;
/// "ovs:BRIDGE?rundir=/run/openvswitch" changes the rules of one that runs already.
/// "flows:tc" measures tc flower on a veth pair of greynic's own, "flows:tc:INTERFACE" changes the
/// filters of an interface.
/// docs/flows.md lists every option.

#include "greynic/target/target.h"

namespace greynic::flows {

[[nodiscard]] target::Kind ovs_kind();
[[nodiscard]] target::Kind flows_kind();

}  // namespace greynic::flows
