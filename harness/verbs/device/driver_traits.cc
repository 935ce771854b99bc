#include "greynic/verbs/verbs_target.h"

namespace greynic::verbs {
namespace {

constexpr Trait kTraits[] = {
    {"software", "transports", "no XRC and no DC", "rxe_check_qp_init, kernel 6.1"},
    {"software", "paging", "no on-demand paging", "ibv_devinfo -v, kernel 6.1"},
    {"software", "oversize UD send", "completes well and is dropped; refused here beforehand",
     "rxe_req.c, kernel 6.1"},
    {"software", "path MTU",
     "is not checked against the port's active MTU; refused here beforehand",
     "rxe_qp.c, kernel 6.1"},
    {"software", "full CQ", "further completions are dropped, with an asynchronous event",
     "rxe_cq.c, kernel 6.1"},
    {"software", "byte counters", "the port has none; packet counters only", "rxe_hw_counters.c"},
    {"software", "network namespaces", "works in the first one only", "rxe_net.c, kernel 6.1"},
    {"software", "loopback", "within one device packets never reach the interface",
     "rxe_net.c, kernel 6.1"},
    {"software", "ibv_wr_set_sge_list",
     "sends the first length times the number of SGEs; ibv_post_send is used for several SGEs",
     "observed with rdma-core 44: payload validation of 2 SGEs of unequal length"},
    {"software", "SEND with invalidate",
     "the completion carries the kernel's flag bit, which is IBV_WC_IP_CSUM_OK in verbs",
     "rxe_resp.c, kernel 6.1: wc_flags are copied as the kernel numbers them"},
    {"software", "bound memory windows",
     "destroying their QP waits up to 50 s for them; freed first here",
     "rxe_pool.c and rxe_mw.c, kernel 6.1"},
    {"software", "large READs on many QPs",
     "16 of 1 MiB end in IBV_WC_WR_FLUSH_ERR: more answers than the receive backlog holds",
     "observed, kernel 6.1: net/softnet_stat, send_rnr_err; perftest ends the same"},
    {"software", "large SENDs on many QPs",
     "16 of 1 MiB are sent again and again: a turn comes after the acknowledgement timeout",
     "observed, kernel 6.1: completer_retry_err, duplicate_request; perftest gave nothing in 60 s"},
    {"software", "modules", "needs crc32_generic and does not load it", "rxe.c, kernel 6.1"},
};

}  // namespace

std::span<const Trait> known_traits() { return kTraits; }

}  // namespace greynic::verbs
