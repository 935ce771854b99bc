#include "greynic/bpf/link.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <utility>

namespace greynic::bpf {

Link::Link(int descriptor) : descriptor_(descriptor) {}

Link::Link(int descriptor, std::function<void()> release)
    : descriptor_(descriptor), release_(std::move(release)) {}

Link::Link(Link&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      release_(std::exchange(other.release_, nullptr)) {}

Link& Link::operator=(Link&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(release_, other.release_);
  return *this;
}

Link::~Link() {
  if (release_) {
    release_();
  } else if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Link count_run_time() { return Link(bpf_enable_stats(BPF_STATS_RUN_TIME)); }

}  // namespace greynic::bpf
