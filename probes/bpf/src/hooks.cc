#include "greynic/bpf/hooks.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "attach_tc.h"
#include "greynic/os/network_namespace.h"
#include "words.h"

namespace greynic::bpf {
namespace {

struct FreeTypes {
  void operator()(btf* types) const { btf__free(types); }
};

btf* kernel_types() {
  static const std::unique_ptr<btf, FreeTypes> types = [] {
    std::unique_ptr<btf, FreeTypes> loaded;
    (void)warnings_of([&] { loaded.reset(btf__load_vmlinux_btf()); });
    return loaded;
  }();
  return types.get();
}

std::string no_types() {
  return "no type information (/sys/kernel/btf/vmlinux); the kernel needs CONFIG_DEBUG_INFO_BTF";
}

/// Return 0; a licence that tracing programs may have.
Link smallest_program(bpf_prog_type type, const bpf_prog_load_opts& options) {
  const std::array<bpf_insn, 2> instructions = {
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  return Link(bpf_prog_load(type, "greynic_probe", "GPL", instructions.data(), instructions.size(),
                            &options));
}

std::string refusal(std::string_view what, int error) {
  std::string text = fmt::format("{} refused: {}", what, std::strerror(error));
  if (error != EPERM && error != EACCES) return text;
  return text + (geteuid() == 0 ? " (for root too: a policy of this host, or its kernel lacks it)"
                                : "; run as root or with CAP_BPF and CAP_PERFMON");
}

/// By type information: tp_btf and fentry.
std::string try_typed(bpf_attach_type attach, const std::string& type_name, std::uint32_t kind) {
  if (kernel_types() == nullptr) return no_types();
  const int id = btf__find_by_name_kind(kernel_types(), type_name.c_str(), kind);
  if (id < 0) return "this kernel has no such place";
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach,
              .attach_btf_id = static_cast<std::uint32_t>(id));
  const Link program = smallest_program(BPF_PROG_TYPE_TRACING, options);
  if (program.descriptor() < 0) return refusal("load", errno);
  const Link link(bpf_raw_tracepoint_open(nullptr, program.descriptor()));
  return link.descriptor() < 0 ? refusal("attach", errno) : "";
}

std::string try_raw(const std::string& place) {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  const Link program = smallest_program(BPF_PROG_TYPE_RAW_TRACEPOINT, options);
  if (program.descriptor() < 0) return refusal("load", errno);
  const Link link(bpf_raw_tracepoint_open(place.c_str(), program.descriptor()));
  return link.descriptor() < 0 ? refusal("attach", errno) : "";
}

/// kprobes and uprobes are kinds of perf events; where a kernel has them it says so here.
std::string try_perf_kind(const std::string& kind) {
  if (access(("/sys/bus/event_source/devices/" + kind + "/type").c_str(), R_OK) == 0) return "";
  return fmt::format("the kernel is built without {}s", kind);
}

std::string try_tc(HookKind kind) {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  const Link program = smallest_program(BPF_PROG_TYPE_SCHED_CLS, options);
  if (program.descriptor() < 0) return refusal("load", errno);
  const auto place = os::NetworkNamespace::create();
  if (!place) return place.error().message;
  std::string why_not;
  const auto entered = place->inside([&] {
    constexpr int kLoopback = 1;
    const auto link = kind == HookKind::kTcx
                          ? attach_tcx(program.descriptor(), kLoopback, Direction::kIngress)
                          : attach_clsact(program.descriptor(), kLoopback, Direction::kIngress);
    if (!link) why_not = link.error().message;
  });
  return entered ? why_not : entered.error().message;
}

}  // namespace

std::string_view name_of(HookKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"tp_btf", "raw_tp", "fentry", "kprobe",
                                                      "tcx",    "clsact", "uprobe"};
  return kNames[static_cast<std::size_t>(kind)];
}

Hook probe_hook(HookKind kind, std::string_view place) {
  Hook hook{.kind = kind, .place = std::string(place)};
  switch (kind) {
    case HookKind::kTypedTracepoint:
      hook.why_not = try_typed(BPF_TRACE_RAW_TP, "btf_trace_" + hook.place, BTF_KIND_TYPEDEF);
      break;
    case HookKind::kRawTracepoint:
      hook.why_not = try_raw(hook.place);
      break;
    case HookKind::kFunctionEntry:
      hook.why_not = try_typed(BPF_TRACE_FENTRY, hook.place, BTF_KIND_FUNC);
      break;
    case HookKind::kKprobe:
      hook.why_not = try_perf_kind("kprobe");
      break;
    case HookKind::kUprobe:
      hook.why_not = try_perf_kind("uprobe");
      break;
    case HookKind::kTcx:
    case HookKind::kClsact:
      hook.why_not = try_tc(kind);
      break;
  }
  hook.available = hook.why_not.empty();
  return hook;
}

Result<std::vector<std::string>> enum_names(const std::string& enumeration) {
  if (kernel_types() == nullptr) return fail(ErrorCode::kMissing, no_types());
  const int id = btf__find_by_name_kind(kernel_types(), enumeration.c_str(), BTF_KIND_ENUM);
  if (id < 0) return fail(ErrorCode::kUnsupported, "this kernel has no enum " + enumeration);
  const btf_type* const type = btf__type_by_id(kernel_types(), static_cast<std::uint32_t>(id));
  std::vector<std::string> names;
  for (int i = 0; i < btf_vlen(type); ++i) {
    const struct btf_enum& row = btf_enum(type)[i];
    constexpr int kMostNames = 1 << 16;  // some enums end with a marker of their width
    if (row.val < 0 || row.val >= kMostNames) continue;
    if (names.size() <= static_cast<std::size_t>(row.val)) names.resize(row.val + 1);
    names[row.val] = btf__name_by_offset(kernel_types(), row.name_off);
  }
  return names;
}

}  // namespace greynic::bpf
