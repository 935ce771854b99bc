/// The resources of XRC, the reliable transport whose receive queues belong to processes and not to
/// connections.

#include <fcntl.h>
#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <cerrno>

#include "device/verbs_errors.h"
#include "greynic/verbs/resources.h"

namespace greynic::verbs {

Result<XrcDomain> XrcDomain::create(const Device& device) {
  ibv_xrcd_init_attr attributes{};
  attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attributes.fd = -1;
  attributes.oflags = O_CREAT;
  errno = 0;
  ibv_xrcd* domain = ibv_open_xrcd(device.handle(), &attributes);
  if (domain == nullptr) return refused("ibv_open_xrcd", errno);
  XrcDomain made;
  made.domain_ = std::shared_ptr<ibv_xrcd>(domain, [context = device.share()](ibv_xrcd* d) {
    if (const int error = ibv_close_xrcd(d)) log_destruction("ibv_close_xrcd", error);
  });
  return made;
}

Result<SharedReceiveQueue> SharedReceiveQueue::create_xrc(const Device& device,
                                                          const ProtectionDomain& pd,
                                                          const XrcDomain& domain,
                                                          const CompletionQueue& cq,
                                                          std::uint32_t depth) {
  ibv_srq_init_attr_ex attributes{};
  attributes.attr.max_wr = depth;
  attributes.attr.max_sge = 1;
  attributes.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attributes.srq_type = IBV_SRQT_XRC;
  attributes.pd = pd.handle();
  attributes.xrcd = domain.handle();
  attributes.cq = cq.handle();
  errno = 0;
  ibv_srq* srq = ibv_create_srq_ex(device.handle(), &attributes);
  if (srq == nullptr)
    return refused(fmt::format("ibv_create_srq_ex of {} XRC slots", depth), errno);
  SharedReceiveQueue made;
  made.depth_granted_ = attributes.attr.max_wr;
  made.srq_ = std::shared_ptr<ibv_srq>(
      srq, [pd = pd.share(), domain = domain.share(), cq = cq.share()](ibv_srq* s) {
        if (const int error = ibv_destroy_srq(s)) log_destruction("ibv_destroy_srq", error);
      });
  return made;
}

Result<std::uint32_t> SharedReceiveQueue::number() const {
  std::uint32_t number = 0;
  if (const int error = ibv_get_srq_num(handle(), &number)) {
    return refused("ibv_get_srq_num", error);
  }
  return number;
}

Result<QueuePair> QueuePair::create_xrc_target(const Device& device, const XrcDomain& domain) {
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_type = IBV_QPT_XRC_RECV;
  attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attributes.xrcd = domain.handle();
  errno = 0;
  ibv_qp* qp = ibv_create_qp_ex(device.handle(), &attributes);
  if (qp == nullptr) return refused("ibv_create_qp_ex of an XRC target", errno);
  QueuePair made;
  made.qp_ = std::shared_ptr<ibv_qp>(qp, [domain = domain.share()](ibv_qp* q) {
    if (const int error = ibv_destroy_qp(q)) log_destruction("ibv_destroy_qp", error);
  });
  made.transport_ = Transport::kXRC;
  made.target_ = true;
  made.port_ = device.port();
  made.reads_as_responder_ = device.limits().reads_as_responder;
  return made;
}

}  // namespace greynic::verbs
