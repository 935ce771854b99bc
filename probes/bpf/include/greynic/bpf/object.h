#pragma once

/// A BPF object that was compiled by greynic_bpf(...) and is part of this program: opened, trimmed
/// to the programs that are wanted, loaded, attached.
///
///     auto object = Object::open(programs()[0]);
///     object->choose({"on_queue"});            // the others are not even verified
///     object->set("threshold_ns", 5'000ull);   // const volatile in the C file
///     object->load();
///     auto link = object->attach("on_queue");  // where its SEC("tp_btf/...") says
///     auto counts = object->map<std::uint32_t, std::uint64_t>("counts");
///
/// Errors: kMissing with the remedy for want of a right, of BTF or of the hook; kRefused with the
/// last words of the verifier or the kernel's reason.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/bpf/link.h"
#include "greynic/bpf/map.h"
#include "greynic/core/embedded.h"
#include "greynic/core/result.h"

struct bpf_object;
struct bpf_program;

namespace greynic::bpf {

enum class Direction { kIngress, kEgress };

/// Where a uprobe sits.
struct UserFunction {
  std::string binary;    ///< program or shared library
  std::string function;  ///< empty: `offset` counts from the start of the file
  std::size_t offset = 0;
  int process = -1;  ///< -1: of all processes
  bool on_return = false;
};

class Object {
 public:
  [[nodiscard]] static Result<Object> open(const EmbeddedFile& file);
  Object(Object&& other) noexcept;
  Object& operator=(Object&& other) noexcept;
  ~Object();

  // Before load().
  /// Only these programs are loaded.
  [[nodiscard]] Result<void> choose(const std::vector<std::string>& programs);
  [[nodiscard]] Result<void> resize(std::string_view map, std::uint32_t entries);
  /// A `const volatile` variable of the C file.
  template <typename T>
  [[nodiscard]] Result<void> set(std::string_view variable, const T& value) {
    return set_bytes(variable, &value, sizeof value);
  }
  /// Only once.
  [[nodiscard]] Result<void> load();

  // After load().
  /// To the hook that its section names: tp_btf/NAME, raw_tp/NAME, tp/GROUP/NAME.
  [[nodiscard]] Result<Link> attach(std::string_view program) const;
  /// To a device in the network namespace of the calling thread: by a TCX link, which needs a kernel
  /// of 6.6 or newer, else as a filter of a clsact queueing discipline. A keeper process removes the
  /// filter when we are killed.
  [[nodiscard]] Result<Link> attach_tc(std::string_view program, int interface_number,
                                       Direction direction) const;
  [[nodiscard]] Result<Link> attach_uprobe(std::string_view program,
                                           const UserFunction& place) const;
  [[nodiscard]] Result<RunStatistics> statistics(std::string_view program) const;

  /// A map by its name; kInternal when keys or values have other sizes in the C file.
  template <typename Key, typename Value>
  [[nodiscard]] Result<Map<Key, Value>> map(std::string_view name) const {
    return checked(name, sizeof(Key), sizeof(Value)).map([](int descriptor) {
      return Map<Key, Value>(descriptor);
    });
  }
  template <typename Value>
  [[nodiscard]] Result<PerCpuArray<Value>> per_cpu_array(std::string_view name) const {
    return checked(name, sizeof(std::uint32_t), sizeof(Value)).map([](int descriptor) {
      return PerCpuArray<Value>(descriptor);
    });
  }
  template <typename Value>
  [[nodiscard]] Result<MappedArray<Value>> mapped_array(std::string_view name,
                                                        std::size_t entries) const {
    return checked(name, sizeof(std::uint32_t), sizeof(Value)).and_then([entries](int descriptor) {
      return MappedArray<Value>::create(descriptor, entries);
    });
  }
  [[nodiscard]] Result<RingBuffer> ring(std::string_view name,
                                        std::function<void(std::span<const std::byte>)> take) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const;
  };
  Object() = default;
  [[nodiscard]] Result<void> set_bytes(std::string_view variable, const void* value,
                                       std::size_t bytes);
  [[nodiscard]] Result<int> checked(std::string_view name, std::size_t key_bytes,
                                    std::size_t value_bytes) const;
  [[nodiscard]] Result<bpf_program*> program(std::string_view name) const;

  std::string name_;
  std::unique_ptr<bpf_object, Close> object_;
};

}  // namespace greynic::bpf
