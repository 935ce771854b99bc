#pragma once

/// `greynic trace agent` and `greynic trace collect`.

#include "command.h"

namespace greynic::cli {

/// Adds both to `greynic trace`; nothing where tracing across hosts is not part of the build.
void add_trace_hosts(Command& trace);

}  // namespace greynic::cli
