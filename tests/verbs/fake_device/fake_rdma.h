#pragma once

/// An RDMA device in memory that writes down how it was used: lists of requests, pieces, moderation,
/// thread domains, and what the book does not allow (InfiniBand specification volume 1, 14: annex
/// A14, XRC; the kernel's qp_state_table). The virtual RNICs of `greynic lab-run` carry the same
/// programs, but show only what comes of them. fake_rdma.cc defines the functions of libibverbs
/// that the verbs room calls; a program that is linked with it (and fake_requests.cc) knows this
/// device only.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace greynic::verbs {

struct FakeRdma {
  bool xrc = true;
  bool extended = true;                 ///< offers ibv_wr_*
  bool thread_domains = true;           ///< offers ibv_alloc_td
  std::vector<std::string> violations;  ///< of the book, by who called
  std::uint64_t posted_extended = 0;    ///< requests
  std::uint64_t posted_plain = 0;
  std::vector<std::string> moderated;  ///< "16 completions, 20 us" by each ibv_modify_cq
  std::uint64_t longest_list = 0;      ///< requests of one ibv_post_send or ibv_wr_complete
  std::map<std::uint64_t, std::uint64_t> receive_lists;  ///< calls, by how many receives they bring
  std::set<std::vector<std::uint32_t>> pieces;           ///< lengths in the SG lists of requests
  std::map<std::uint32_t, std::size_t> senders;  ///< QPs made, by thread domain; 0: the device's
  std::size_t objects = 0;                       ///< not yet destroyed, the device's context apart
};

inline constexpr const char* kFakeDevice = "fake0";

/// The one device; its fields may be set between runs.
[[nodiscard]] FakeRdma& fake_rdma();

}  // namespace greynic::verbs
