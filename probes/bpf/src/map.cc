#include "greynic/bpf/map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <cerrno>

#include "words.h"

namespace greynic::bpf {

std::size_t possible_cpus() {
  static const int count = libbpf_num_possible_cpus();
  return count > 0 ? static_cast<std::size_t>(count) : 1;
}

bool RawMap::look_up(const void* key, void* value) const {
  return bpf_map_lookup_elem(descriptor_, key, value) == 0;
}

Result<void> RawMap::put(const void* key, const void* value, bool only_new) const {
  const auto flags = only_new ? BPF_NOEXIST : BPF_ANY;
  if (bpf_map_update_elem(descriptor_, key, value, flags) == 0) return {};
  return kernel_said_no("writing into a map of the kernel", errno);
}

bool RawMap::remove(const void* key) const { return bpf_map_delete_elem(descriptor_, key) == 0; }

bool RawMap::next_key(const void* key, void* next) const {
  return bpf_map_get_next_key(descriptor_, key, next) == 0;
}

Result<std::shared_ptr<void>> map_memory(int descriptor, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return kernel_said_no("mapping the memory of a map", errno);
  return std::shared_ptr<void>(memory, [bytes](void* mapped) { munmap(mapped, bytes); });
}

void RingBuffer::Free::operator()(ring_buffer* ring) const { ring_buffer__free(ring); }

Result<RingBuffer> RingBuffer::create(int map_descriptor,
                                      std::function<void(std::span<const std::byte>)> take) {
  RingBuffer made;
  made.take_ = std::make_unique<std::function<void(std::span<const std::byte>)>>(std::move(take));
  const auto call = [](void* context, void* record, std::size_t bytes) {
    (*static_cast<std::function<void(std::span<const std::byte>)>*>(context))(
        {static_cast<const std::byte*>(record), bytes});
    return 0;
  };
  int error = 0;
  const std::string warnings = warnings_of([&] {
    made.ring_.reset(ring_buffer__new(map_descriptor, call, made.take_.get(), nullptr));
    error = errno;
  });
  if (!made.ring_) return kernel_said_no("opening a ring of records", error, warnings);
  return made;
}

RingBuffer::RingBuffer(RingBuffer&& other) noexcept = default;
RingBuffer& RingBuffer::operator=(RingBuffer&& other) noexcept = default;
RingBuffer::~RingBuffer() = default;

Result<std::size_t> RingBuffer::poll(int timeout_ms) {
  // What the kernel committed before a wake-up was due is there too: consume first.
  int taken = ring_buffer__consume(ring_.get());
  if (taken == 0 && timeout_ms > 0) taken = ring_buffer__poll(ring_.get(), timeout_ms);
  if (taken == -EINTR) taken = 0;
  if (taken < 0) return kernel_said_no("reading a ring of records", -taken);
  return static_cast<std::size_t>(taken);
}

}  // namespace greynic::bpf
