#pragma once

/// The virtual switch of a host and the driver below it, as processes in virtual time.
///
/// A flow that hardware does not know goes to software: an upcall, a megaflow, a rule that the
/// driver inserts. A revalidator sweeps over the flows and removes those that look idle, by
/// counters that the driver reads from the chip now and then. VFs come and go, and encapsulation
/// contexts with them. All of it takes time that grows with what is there. A fault is a shortcut
/// that one of these processes takes; its symptom then follows from the load and is written down
/// nowhere. Without faults the processes cost the measured traffic nothing.
///
/// Times are milliseconds to hours, so packets are not looked at: the report says which share of
/// them meets which trouble, and the engine does the rest. Live flows are served in numbers, not
/// one by one, so a run costs what its events cost, whatever the number of flows.
/// docs/twin/defects.md: faults, causes and what they lead to.

#include <string>

#include "greynic/core/observation.h"
#include "parameters/parameters.h"
#include "switch/switch_parameters.h"

namespace greynic::twin {

/// What is wrong with switch, driver or firmware.
struct SwitchFaults {
  bool late_counters = false;       ///< S1: idleness is judged by the counters last read
  bool stalls_on_timeout = false;   ///< S2: who waits for the driver holds the kernel's lock
  bool crashes_on_failure = false;  ///< S3: a failed creation frees what others still use
  bool slow_deletion = false;       ///< S4: removal searches a large group from its start
  bool stale_is_slow = false;       ///< S5: a counter that was not read counts as no traffic
  bool racy_unbind = false;         ///< S7: a VF's port is freed after a fixed time
  bool unchecked_contexts = false;  ///< S8: contexts are created beyond the buffer
  bool offload_stays_off = false;   ///< S9: after an overload nobody turns it on again
  [[nodiscard]] bool any() const {
    return late_counters || stalls_on_timeout || crashes_on_failure || slow_deletion ||
           stale_is_slow || racy_unbind || unchecked_contexts || offload_stays_off;
  }
};

/// What goes on around the measured traffic; names and units are those of the factors.
struct SwitchLoad {
  double flow_count = 1;  ///< live: packets come all the time
  double flow_setup_rate = 0;
  double counter_poll_ms = 0;
  double flow_idle_ms = 0;
  double rules_per_mask = 1;
  double container_count = 1;
  double vf_unbind_rate = 0;
  double vxlan_contexts = 0;
  double lone_rule_share = 0;   ///< of rules that have a group of their own
  bool offload_is_off = false;  ///< since an earlier load
};

/// What comes of it. Counters are events a second of virtual time.
struct SwitchReport {
  double software_share = 0;  ///< of the packets of live flows
  double frozen_share = 0;    ///< of the time, in which nothing is sent
  double rule_insert_us = 0;
  double rule_delete_us = 0;
  Outcome outcome = Outcome::kMeasured;  ///< or what ended it
  std::string reason;
  double upcalls = 0;
  double deletions = 0;
  double driver_timeouts = 0;
  double kernel_stalls = 0;     ///< who waited for the driver held the kernel's lock
  double device_resets = 0;     ///< the device went down and was probed anew
  double flows_lost = 0;        ///< rules and contexts that were in it
  double outage_ms = 0;         ///< how long it was down each time, at most
  bool offload_is_off = false;  ///< from now on, until the device is reset
};

[[nodiscard]] SwitchReport run_switch(const Parameters& rnic, const SwitchParameters& s,
                                      const SwitchLoad& load, const SwitchFaults& faults);

}  // namespace greynic::twin
