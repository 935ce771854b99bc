#pragma once

/// A layout that leads Open vSwitch to few megaflow masks.
///
/// The datapath of Open vSwitch makes the mask of a megaflow from the bits that the rules looked at
/// on a packet's way. Packets that leave a filter list at different rules leave it with different
/// masks: 1,000 rules easily make 250 subtables, each of which costs every later packet. Fewer
/// matchers alone do not help, because prefixes are looked at only as far as they decide.
///
/// few_masks puts a table in front that copies whole header fields into registers that no rule
/// uses. Reading a field is looking at all of it, so that afterwards packets of one protocol all
/// have the same mask, whichever rules they met. The price: a megaflow for each distinct
/// combination of those fields in the traffic, instead of one for many. It pays as long as the
/// flows fit the flow table (200,000 by default) and live longer than a few packets; docs/flows.md
/// has figures.

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// The same layout behind a reading table 0, whose own rules move to the first free table. Only
/// fields that some matcher looks at are read: Ethernet and IPv4 addresses, ports, TCP flags, ICMP
/// type and code. kUnsupported when the rules leave too few registers free or no table.
[[nodiscard]] Result<Layout> few_masks(const Layout& layout);

/// Whether the layout came from few_masks: table 0 does nothing but read fields and go on.
[[nodiscard]] bool has_reading_table(const Layout& layout);

}  // namespace greynic::flows
