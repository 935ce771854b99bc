#include "greynic/testgen/rdma_rules.h"

namespace greynic::testgen {

namespace {

constexpr RdmaRule kRules[] = {
    {"transport == \"UC\" -> operation not in {\"READ\", \"ATOMIC\", \"CAS\", \"FADD\", "
     "\"SEND_WITH_INV\"}",
     "unreliable connections have no READ, no atomics and no invalidation (IBTA vol. 1, 9.8)"},
    {"transport == \"UD\" -> operation in {\"SEND\", \"SEND_WITH_IMM\"}",
     "datagrams have no one-sided operations (IBTA vol. 1, 9.8)"},
    {"transport == \"UD\" -> message_bytes <= mtu_bytes",
     "a datagram is one packet (IBTA vol. 1, 9.8.3)"},
    {"operation == \"ATOMIC\" -> message_bytes == 8", "atomics work on 64 bits"},
    {"operation in {\"READ\", \"ATOMIC\", \"CAS\", \"FADD\"} -> inline_bytes == 0",
     "only data that is sent can be inlined; ibv_post_send(3) refuses the rest"},
    {"transport == \"XRC\" && operation in {\"SEND\", \"SEND_WITH_IMM\", "
     "\"WRITE_WITH_IMM\"} -> shared_receive_queue",
     "an XRC target QP takes its receives from an XRC SRQ"},
    {"operation in {\"SEND\", \"SEND_WITH_IMM\", \"SEND_WITH_INV\", \"WRITE_WITH_IMM\"} -> "
     "receive_queue_depth >= 1",
     "a SEND, as an immediate value, consumes a receive; without any it ends in RNR retries"},
    {"qps_per_cq <= qp_count", "a CQ cannot serve more QPs than there are"},
    {"signal_every <= send_queue_depth",
     "a send queue full of unsignalled WQEs never becomes free again"},
    {"post_batch <= send_queue_depth",
     "one doorbell cannot hand over more WQEs than the queue holds"},
    {"doorbell_sharing != \"shared_qp\" -> thread_count <= qp_count",
     "a thread without a QP of its own has nothing to post to"},
    {"message_bytes <= mr_bytes * sge_count",
     "each scatter-gather element lies in one memory region"},
};

}  // namespace

std::span<const RdmaRule> rdma_rules() { return kRules; }

}  // namespace greynic::testgen
