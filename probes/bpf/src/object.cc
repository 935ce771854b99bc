#include "greynic/bpf/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "words.h"

namespace greynic::bpf {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

/// A link of libbpf as one of ours.
Link owned(bpf_link* link) {
  return {bpf_link__fd(link), [link] { bpf_link__destroy(link); }};
}

/// Where a variable of .rodata lies in that map, and how long it is; empty when there is none.
std::optional<std::pair<std::size_t, std::size_t>> constant_place(const btf* types,
                                                                  const std::string& variable) {
  const int section = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  if (section < 0) return std::nullopt;
  const btf_type* const type = btf__type_by_id(types, static_cast<std::uint32_t>(section));
  const btf_var_secinfo* const rows = btf_var_secinfos(type);
  for (int i = 0; i < btf_vlen(type); ++i) {
    const btf_type* const row = btf__type_by_id(types, rows[i].type);
    if (variable == btf__name_by_offset(types, row->name_off)) {
      return std::pair<std::size_t, std::size_t>(rows[i].offset, rows[i].size);
    }
  }
  return std::nullopt;
}

}  // namespace

void Object::Close::operator()(bpf_object* object) const { bpf_object__close(object); }

Object::Object(Object&& other) noexcept = default;
Object& Object::operator=(Object&& other) noexcept = default;
Object::~Object() = default;

Result<Object> Object::open(const EmbeddedFile& file) {
  Object made;
  made.name_ = std::string(file.name.substr(0, file.name.find('.')));
  // Readers of ELF want it aligned.
  std::vector<std::uint64_t> bytes(file.text.size() / 8 + 1);
  std::memcpy(bytes.data(), file.text.data(), file.text.size());
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = made.name_.c_str());
  int error = 0;
  const std::string warnings = warnings_of([&] {
    made.object_.reset(bpf_object__open_mem(bytes.data(), file.text.size(), &options));
    error = errno;
  });
  if (!made.object_) return kernel_said_no("opening the programs " + made.name_, error, warnings);
  return made;
}

Result<void> Object::choose(const std::vector<std::string>& programs) {
  std::size_t found = 0;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) {
    const bool wanted =
        std::find(programs.begin(), programs.end(), bpf_program__name(program)) != programs.end();
    found += wanted ? 1 : 0;
    bpf_program__set_autoload(program, wanted);
  }
  if (found == programs.size()) return {};
  return fail(ErrorCode::kInternal,
              fmt::format("{} has not all of the programs {}", name_, fmt::join(programs, ", ")));
}

Result<void> Object::resize(std::string_view map, std::uint32_t entries) {
  bpf_map* const found = bpf_object__find_map_by_name(object_.get(), std::string(map).c_str());
  if (found != nullptr && bpf_map__set_max_entries(found, entries) == 0) return {};
  return fail(ErrorCode::kInternal, name_ + " cannot resize the map " + quoted(map));
}

Result<void> Object::set_bytes(std::string_view variable, const void* value, std::size_t bytes) {
  const auto place = constant_place(bpf_object__btf(object_.get()), std::string(variable));
  if (!place || place->second != bytes) {
    return fail(ErrorCode::kInternal,
                fmt::format("{} has no constant {} of {} bytes", name_, quoted(variable), bytes));
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_.get()) {
    const std::string_view name = bpf_map__name(map);
    if (!bpf_map__is_internal(map) || !name.ends_with(".rodata")) continue;
    std::size_t size = 0;
    const auto* const memory = static_cast<const char*>(bpf_map__initial_value(map, &size));
    if (memory == nullptr || place->first + bytes > size) break;
    std::string changed(memory, size);
    std::memcpy(changed.data() + place->first, value, bytes);
    if (bpf_map__set_initial_value(map, changed.data(), size) != 0) break;
    return {};
  }
  return fail(ErrorCode::kInternal, name_ + " has no constants");
}

Result<void> Object::load() {
  int error = 0;
  const std::string warnings = warnings_of([&] { error = -bpf_object__load(object_.get()); });
  if (error == 0) return {};
  return kernel_said_no("loading the programs " + name_, error, warnings);
}

Result<bpf_program*> Object::program(std::string_view name) const {
  bpf_program* const found =
      bpf_object__find_program_by_name(object_.get(), std::string(name).c_str());
  if (found != nullptr && bpf_program__fd(found) >= 0) return found;
  return fail(ErrorCode::kInternal, name_ + " has not loaded a program " + quoted(name));
}

Result<Link> Object::attach(std::string_view program_name) const {
  const auto found = program(program_name);
  if (!found) return pass_on(found);
  bpf_link* link = nullptr;
  int error = 0;
  const std::string warnings = warnings_of([&] {
    link = bpf_program__attach(*found);
    error = errno;
  });
  if (link != nullptr) return owned(link);
  return kernel_said_no(
      fmt::format("attaching {} to {}", quoted(program_name), bpf_program__section_name(*found)),
      error, warnings);
}

Result<Link> Object::attach_uprobe(std::string_view program_name, const UserFunction& place) const {
  const auto found = program(program_name);
  if (!found) return pass_on(found);
  LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = place.on_return,
              .func_name = place.function.empty() ? nullptr : place.function.c_str());
  bpf_link* link = nullptr;
  int error = 0;
  const std::string warnings = warnings_of([&] {
    link = bpf_program__attach_uprobe_opts(*found, place.process, place.binary.c_str(),
                                           place.offset, &options);
    error = errno;
  });
  if (link != nullptr) return owned(link);
  return kernel_said_no(
      fmt::format("attaching {} to {} of {}", quoted(program_name),
                  place.function.empty() ? fmt::format("{:#x}", place.offset) : place.function,
                  place.binary),
      error, warnings);
}

Result<RunStatistics> Object::statistics(std::string_view program_name) const {
  const auto found = program(program_name);
  if (!found) return pass_on(found);
  bpf_prog_info info{};
  std::uint32_t bytes = sizeof info;
  if (bpf_obj_get_info_by_fd(bpf_program__fd(*found), &info, &bytes) != 0) {
    return kernel_said_no("asking about the program " + quoted(program_name), errno);
  }
  return RunStatistics{
      .runs = info.run_cnt, .run_time_ns = info.run_time_ns, .missed = info.recursion_misses};
}

Result<int> Object::checked(std::string_view name, std::size_t key_bytes,
                            std::size_t value_bytes) const {
  bpf_map* const map = bpf_object__find_map_by_name(object_.get(), std::string(name).c_str());
  if (map == nullptr || bpf_map__fd(map) < 0) {
    return fail(ErrorCode::kInternal, name_ + " has not loaded a map " + quoted(name));
  }
  if (bpf_map__key_size(map) != key_bytes || bpf_map__value_size(map) != value_bytes) {
    return fail(ErrorCode::kInternal,
                fmt::format("{}: the map {} has keys of {} and values of {} bytes, not {} and {}",
                            name_, quoted(name), bpf_map__key_size(map), bpf_map__value_size(map),
                            key_bytes, value_bytes));
  }
  return bpf_map__fd(map);
}

Result<RingBuffer> Object::ring(std::string_view name,
                                std::function<void(std::span<const std::byte>)> take) const {
  const auto descriptor = checked(name, 0, 0);
  if (!descriptor) return pass_on(descriptor);
  return RingBuffer::create(*descriptor, std::move(take));
}

}  // namespace greynic::bpf
