#pragma once

/// How threads meet at doorbell registers. A driver hands QPs its registers in order: the first
/// few have one of their own, the others share the rest in turn (mlx5: 16 registers, 4 of them
/// exclusive). Where two threads post to QPs of one register, each post waits for the others.

#include <span>

namespace greynic::model {

/// Threads that are alike in what they wait for.
struct PostingClass {
  double threads = 0.0;
  double users = 1.0;  ///< threads that share the register which holds this one up
  double load = 0.0;   ///< posts of all of them there for one post of this thread; 0: not shared
};

/// Classes of `threads` threads that post to `qps` QPs in turn, QP i by thread i mod threads. Valid
/// until the next call of the same thread; numbers are rounded up to whole ones.
[[nodiscard]] std::span<const PostingClass> posting_classes(double threads, double qps,
                                                            bool dedicated);

}  // namespace greynic::model
