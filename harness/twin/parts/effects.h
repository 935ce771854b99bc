#pragma once

/// What planted defects do to packets, as the engine sees it: plain numbers, all neutral by
/// default. defects.cc and the virtual switch fill them in; the engine does not know who asked for
/// what.

namespace greynic::twin {

struct Effects {
  bool masks_in_sequence = true;  ///< groups are walked one by one; false: one lookup for all
  double receive_stall_ns = 0;    ///< per packet received: the receive path starves, pauses follow
  double transmit_stall_ns = 0;   ///< per packet sent: slow, without pauses
  bool loopback_unlimited = false;  ///< loopback traffic is not held back for wire traffic
  double slow_path_share = 0;       ///< of packets that take the software path, 0..1
  double frozen_share = 0;          ///< of the time in which nothing is sent, 0..1
};

}  // namespace greynic::twin
