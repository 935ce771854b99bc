#include "preload/calls.h"

#include <cerrno>
#include <cstdio>

#include "preload/nic.h"

namespace greynic::lab {
namespace {

/// A call that is not offered, for a place in a table: says its name.
template <auto Name, typename Result, typename... Arguments>
Result refuse(Arguments...) {
  if constexpr (std::is_pointer_v<Result>) {
    not_offered(Name());
    return nullptr;
  } else {
    return static_cast<Result>(not_offered(Name()));
  }
}

template <auto Name, typename Result, typename... Arguments>
void refuse_at(Result (*&place)(Arguments...)) {
  place = refuse<Name, Result, Arguments...>;
}

}  // namespace

int not_offered(const char* call) {
  std::fprintf(stderr, "greynic lab: %s is not offered by the twin\n", call);
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

void fill_calls(verbs_context& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_srq_recv = post_srq_recv;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.sz = sizeof context;
  context.query_port = query_port;
  context.query_device_ex = query_device_ex;
  context.query_rt_values = query_rt_values;
  context.advise_mr = advise_mr;
  context.alloc_null_mr = alloc_null_mr;
  context.alloc_td = alloc_td;
  context.dealloc_td = dealloc_td;
  context.alloc_parent_domain = alloc_parent_domain;
  context.create_cq_ex = create_cq_ex;
  context.modify_cq = modify_cq;
  context.create_qp_ex = create_qp_ex;
  context.open_qp = open_qp;
  context.create_srq_ex = create_srq_ex;
  context.get_srq_num = get_srq_num;
  context.open_xrcd = open_xrcd;
  context.close_xrcd = close_xrcd;
#define GREYNIC_REFUSE(field, call) refuse_at<[] { return call; }>(context.field)
  GREYNIC_REFUSE(read_counters, "ibv_read_counters");
  GREYNIC_REFUSE(attach_counters_point_flow, "ibv_attach_counters_point_flow");
  GREYNIC_REFUSE(create_counters, "ibv_create_counters");
  GREYNIC_REFUSE(destroy_counters, "ibv_destroy_counters");
  GREYNIC_REFUSE(reg_dm_mr, "ibv_reg_dm_mr");
  GREYNIC_REFUSE(alloc_dm, "ibv_alloc_dm");
  GREYNIC_REFUSE(free_dm, "ibv_free_dm");
  GREYNIC_REFUSE(modify_flow_action_esp, "ibv_modify_flow_action_esp");
  GREYNIC_REFUSE(destroy_flow_action, "ibv_destroy_flow_action");
  GREYNIC_REFUSE(create_flow_action_esp, "ibv_create_flow_action_esp");
  GREYNIC_REFUSE(modify_qp_rate_limit, "ibv_modify_qp_rate_limit");
  GREYNIC_REFUSE(post_srq_ops, "ibv_post_srq_ops");
  GREYNIC_REFUSE(destroy_rwq_ind_table, "ibv_destroy_rwq_ind_table");
  GREYNIC_REFUSE(create_rwq_ind_table, "ibv_create_rwq_ind_table");
  GREYNIC_REFUSE(destroy_wq, "ibv_destroy_wq");
  GREYNIC_REFUSE(modify_wq, "ibv_modify_wq");
  GREYNIC_REFUSE(create_wq, "ibv_create_wq");
  GREYNIC_REFUSE(ibv_destroy_flow, "ibv_destroy_flow");
  GREYNIC_REFUSE(ibv_create_flow, "ibv_create_flow");
#undef GREYNIC_REFUSE
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
  return not_offered("ibv_attach_mcast");
}
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
  return not_offered("ibv_detach_mcast");
}
ibv_context* ibv_import_device(int) {
  not_offered("ibv_import_device");
  return nullptr;
}
ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
  not_offered("ibv_import_pd");
  return nullptr;
}
void ibv_unimport_pd(ibv_pd*) { not_offered("ibv_unimport_pd"); }
ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
  not_offered("ibv_import_mr");
  return nullptr;
}
void ibv_unimport_mr(ibv_mr*) { not_offered("ibv_unimport_mr"); }
ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
  not_offered("ibv_import_dm");
  return nullptr;
}
void ibv_unimport_dm(ibv_dm*) { not_offered("ibv_unimport_dm"); }
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  not_offered("ibv_reg_dmabuf_mr");
  return nullptr;
}
/// Connections have no enhancements: that is what both sides may agree on.
int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  return ece->options == 0 ? 0 : not_offered("ibv_set_ece with options");
}
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}

/// Memory stays where it is after a fork: the RNIC's thread reads what its process sees.
int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

}  // extern "C"
