#pragma once

/// Journeys as programs in the kernel write them down, point by point: each CPU into memory of its own
/// that both sides see. Handed over in the order of their times.

#include <cstdint>
#include <functional>
#include <vector>

#include "greynic/bpf/object.h"
#include "kernel/hops.h"

namespace greynic::trace {

class Records {
 public:
  using Take = std::function<void(const greynic_record&)>;

  /// Before the object is loaded.
  [[nodiscard]] static Result<void> make_room(bpf::Object& object);
  [[nodiscard]] static Result<Records> open(const bpf::Object& object, Take take);
  /// Hands over what was written a moment before `now_ns` and earlier: until then another CPU may still
  /// write something older.
  void hand_over(std::uint64_t now_ns);

 private:
  Records(bpf::MappedArray<greynic_record_ring> rings, bpf::MappedArray<greynic_record> records,
          Take take)
      : rings_(std::move(rings)), records_(std::move(records)), take_(std::move(take)) {}

  bpf::MappedArray<greynic_record_ring> rings_;
  bpf::MappedArray<greynic_record> records_;
  Take take_;
  std::vector<greynic_record> waiting_;
};

}  // namespace greynic::trace
