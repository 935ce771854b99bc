#pragma once

/// Which hooks the kernel that runs here offers: each is tried with a program of two instructions,
/// because lists and versions do not tell what a distribution built in or a host forbids.

#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::bpf {

enum class HookKind {
  kTypedTracepoint,
  kRawTracepoint,
  kFunctionEntry,
  kKprobe,
  kTcx,
  kClsact,
  kUprobe
};

/// "tp_btf", "raw_tp", "fentry", "kprobe", "tcx", "clsact", "uprobe".
[[nodiscard]] std::string_view name_of(HookKind kind);

struct Hook {
  HookKind kind = HookKind::kTypedTracepoint;
  std::string place;  ///< tracepoint or function; empty where the kind says all
  bool available = false;
  std::string why_not;  ///< with the remedy where there is one
};

/// Tries one hook. tc hooks are tried on the loopback device of a network namespace of our own.
[[nodiscard]] Hook probe_hook(HookKind kind, std::string_view place);

/// Names of the values of an enum in the kernel's type information, e.g. "skb_drop_reason", by
/// value; empty strings where there is none.
[[nodiscard]] Result<std::vector<std::string>> enum_names(const std::string& enumeration);

/// The kernel's functions by address.
class KernelSymbols {
 public:
  /// Without the right to see addresses there are none, and every address is its own name.
  [[nodiscard]] static KernelSymbols read();
  /// "ip_rcv_core+0x1f3".
  [[nodiscard]] std::string name_of(std::uint64_t address) const;

 private:
  std::vector<std::pair<std::uint64_t, std::string>> symbols_;  ///< ascending
};

}  // namespace greynic::bpf
