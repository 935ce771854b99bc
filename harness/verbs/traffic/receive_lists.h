#pragma once

/// Collects used receives by queue (a QP's own or a shared one) and reposts plan.receive_batch of
/// them with one call. Belongs to one thread.

#include <infiniband/verbs.h>

#include <vector>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

class ReceiveLists {
 public:
  explicit ReceiveLists(Endpoint& endpoint)
      : endpoint_(endpoint), length_(endpoint.plan().receive_batch) {}

  /// 0 or an errno, perhaps of receives that were collected before.
  [[nodiscard]] int post(std::uint32_t lane, std::uint32_t slot) {
    return length_ == 1 ? endpoint_.post_receive(lane, slot) : gather(lane, slot);
  }
  /// Reposts what is collected, however little.
  [[nodiscard]] int flush();

 private:
  struct List {
    std::vector<ibv_recv_wr> requests;
    std::vector<ibv_sge> sges;
    std::size_t filled = 0;
  };

  int gather(std::uint32_t lane, std::uint32_t slot);
  int hand_over(std::uint32_t queue);

  Endpoint& endpoint_;
  std::size_t length_;
  std::vector<List> lists_;  ///< by queue; of those that this thread has nothing to do with, empty
};

}  // namespace greynic::verbs
