#include "greynic/loop/kinds.h"

#include "counter_arena.h"
#include "far_counters.h"
#include "greynic/target/target.h"
#ifdef GREYNIC_WITH_TWIN
#include "watched_twin.h"
#endif
#ifdef GREYNIC_WITH_AGENT
#include "greynic/agent/agent.h"
#endif
#ifdef GREYNIC_WITH_VERBS
#include "greynic/verbs/verbs_target.h"
#endif
#ifdef GREYNIC_WITH_EXEC
#include "greynic/exec/exec_target.h"
#endif
#ifdef GREYNIC_WITH_FLOWS
#include "greynic/flows/kinds.h"
#endif

namespace greynic::loop {

void register_kinds([[maybe_unused]] const Talk& talk) {
#ifdef GREYNIC_WITH_TWIN
  target::register_kind(watched_twin_kind(talk));
#endif
#ifdef GREYNIC_WITH_EXEC
  target::register_kind(exec::kind());
#endif
#ifdef GREYNIC_WITH_FLOWS
  target::register_kind(flows::ovs_kind());
  target::register_kind(flows::flows_kind());
#endif
#ifdef GREYNIC_WITH_VERBS
#if defined(GREYNIC_WITH_REMOTE)
  target::register_kind(
      verbs::verbs_kind(agent::remote_peer, counter_arenas(talk), open_far_counters));
#elif defined(GREYNIC_WITH_AGENT)
  target::register_kind(verbs::verbs_kind(agent::remote_peer, counter_arenas(talk)));
#else
  target::register_kind(verbs::verbs_kind(nullptr, counter_arenas(talk)));
#endif
#endif
}

}  // namespace greynic::loop
