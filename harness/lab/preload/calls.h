#pragma once

/// Calls that programs reach through the tables of a context, an extended CQ or an extended QP:
/// inline functions of verbs.h find them there.

#include "preload/objects.h"

namespace greynic::lab {

/// Fills the tables of a context.
void fill_calls(verbs_context& context);
void fill_poll(ibv_cq_ex& cq);
void fill_builder(ibv_qp_ex& qp);

// verbs_device.cc
int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* port, std::size_t bytes);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t bytes);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

// verbs_memory.cc
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* window);
int bind_mw(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* request);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* elements,
              std::uint32_t count);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes);
int dealloc_td(ibv_td* domain);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes);

// verbs_cq.cc
int poll_cq(ibv_cq* cq, int most, ibv_wc* out);
int req_notify_cq(ibv_cq* cq, int solicited_only);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);

// verbs_srq.cc
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes);
int close_xrcd(ibv_xrcd* domain);

// verbs_qp.cc, verbs_post.cc
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
/// Plain attributes as extended ones; `pd` may be null.
ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& asked, ibv_pd* pd);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes);
int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad);
/// A receive as it is kept; false when it has too many elements.
bool to_work(const ibv_recv_wr& request, std::uint32_t most_elements, ReceiveWork& work);

}  // namespace greynic::lab
