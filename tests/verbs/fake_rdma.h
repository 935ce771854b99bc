#pragma once

/// An RDMA device in memory that has XRC, which neither Soft-RoCE nor any other device in software
/// has. fake_rdma.cc defines the functions of libibverbs that the verbs room calls; a program that
/// is linked with it knows this device only. It works each request through by the book (InfiniBand
/// specification volume 1, 14: annex A14, XRC; the kernel's qp_state_table) and writes down what
/// the book does not allow.

#include <cstdint>
#include <string>
#include <vector>

namespace greynic::verbs {

struct FakeRdma {
  bool xrc = true;
  bool extended = true;                 ///< offers ibv_wr_*
  std::vector<std::string> violations;  ///< of the book, by who called
  std::uint64_t posted_extended = 0;    ///< requests
  std::uint64_t posted_plain = 0;
  std::vector<std::string> moderated;  ///< "16 completions, 20 us" by each ibv_modify_cq
  std::uint64_t longest_list = 0;      ///< requests of one ibv_post_send or ibv_wr_complete
  std::size_t objects = 0;             ///< not yet destroyed, the device's context apart
};

inline constexpr const char* kFakeDevice = "fake0";

/// The one device; its fields may be set between runs.
[[nodiscard]] FakeRdma& fake_rdma();

}  // namespace greynic::verbs
