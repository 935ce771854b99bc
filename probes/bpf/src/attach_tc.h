#pragma once

/// tc programs on a device: a TCX link where the kernel has it, else a filter of clsact.

#include "greynic/bpf/link.h"
#include "greynic/bpf/object.h"
#include "greynic/core/result.h"

namespace greynic::bpf {

/// Debian's libbpf has no call for these links yet, so this asks the kernel itself. kUnsupported
/// from a kernel without them.
[[nodiscard]] Result<Link> attach_tcx(int program, int interface_number, Direction direction);

/// No descriptor holds such a filter, so a child of ours waits for our end and removes it.
[[nodiscard]] Result<Link> attach_clsact(int program, int interface_number, Direction direction);

}  // namespace greynic::bpf
