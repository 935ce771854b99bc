#pragma once

/// What planted defects and the virtual switch do to packets, as the engine sees it: plain numbers,
/// all of them neutral by default. defects.cc and virtual_switch.cc fill them in; the engine does
/// not know which defect asked for what.

#include <cstdint>

namespace greynic::twin {

struct Effects {
  bool masks_in_sequence = true;  ///< S6: groups are walked one by one; false: one lookup for all
  double receive_stall_ns = 0;    ///< per packet received: the receive path starves; pauses follow
  double receive_message_ns = 0;  ///< per message received
  double send_stall_ns = 0;       ///< per packet sent: slow without pauses
  double dma_latency_ns = 0;      ///< added to each PCIe read
  bool loopback_unlimited = false;  ///< C13: loopback traffic is not held back for wire traffic
  double slow_path_share = 0;       ///< of messages that take the software path, 0..1
  double frozen_share = 0;          ///< of the time in which the device does nothing, 0..1
};

}  // namespace greynic::twin
