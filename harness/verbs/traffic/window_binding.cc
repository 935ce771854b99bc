#include "traffic/window_binding.h"

#include <infiniband/verbs.h>

#include <cstring>

#include "greynic/core/completion_status.h"
#include "traffic/quick_clock.h"

namespace greynic::verbs {

std::optional<std::string> bind_window(Endpoint& endpoint, std::uint32_t lane,
                                       std::uint32_t index) {
  const std::string binding = "binding a memory window: ";
  const TrafficPlan& plan = endpoint.plan();
  const MemoryRegion& region = endpoint.target(endpoint.slots(lane).front());
  ibv_mw* const window = endpoint.window(lane, index).handle();
  ibv_send_wr request{};
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = MemoryWindow::next_key(window->rkey);
  request.bind_mw.bind_info = {region.handle(), reinterpret_cast<std::uintptr_t>(region.address()),
                               region.bytes().size(), IBV_ACCESS_REMOTE_WRITE};
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(endpoint.qp(lane).handle(), &request, &bad)) {
    return binding + std::strerror(error);
  }
  ibv_cq* const cq = endpoint.groups()[lane / plan.qps_per_cq].send_cq.handle();
  const std::int64_t end = now_ns() + plan.stall_limit.count() * 1'000'000;
  ibv_wc completion{};
  int count = 0;
  while (count == 0 && now_ns() < end) count = ibv_poll_cq(cq, 1, &completion);
  if (count != 1) return binding + "no completion";
  if (completion.status != IBV_WC_SUCCESS) {
    return binding + std::string(completion_status_name(completion.status));
  }
  // The next bind of this window is looked up by the key that it has now.
  window->rkey = request.bind_mw.rkey;
  return {};
}

}  // namespace greynic::verbs
