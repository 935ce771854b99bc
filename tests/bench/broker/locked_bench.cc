// Threads that share QPs under a lock, on two ConnectX-3 of the twin: random READs of 600 connections over one or
// two QPs, each served by one, three and six threads. The lock is held while posting, or from posting to the
// completion. Virtual time; nothing is asserted.

#include <fmt/core.h>

#include <array>
#include <cstdint>

#include "validation/shared_qps.h"

int main() {
  using namespace greynic::twin;
  struct Kind {
    const char* held;
    std::uint32_t qps, depth, bytes;
  };
  const std::array<Kind, 7> kinds = {{{"posting", 2, 0, 65536},
                                      {"posting", 2, 0, 4096},
                                      {"posting", 2, 0, 64},
                                      {"posting", 16, 0, 64},
                                      {"to completion", 2, 1, 65536},
                                      {"to completion", 1, 1, 65536},
                                      {"to completion", 1, 1, 4096}}};
  fmt::print("lock held while  QPs   bytes  threads  Gbit/s     M/s\n");
  for (const Kind& kind : kinds) {
    for (const std::uint32_t threads : {1U, 3U, 6U}) {
      SharedQps load{.connection_count = 600,
                     .qp_count = kind.qps,
                     .threads_per_qp = threads,
                     .message_bytes = kind.bytes};
      if (kind.depth > 0) load.send_depth = kind.depth;
      const auto rate = rate_of(load, "cx3", 1);
      fmt::print("{:15}  {:3}  {:6}  {:7}  {:6.2f}  {:6.2f}\n", kind.held, kind.qps, kind.bytes,
                 threads, rate.gbps, rate.messages_per_second * 1e-6);
    }
  }
}
