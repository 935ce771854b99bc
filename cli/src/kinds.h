#pragma once

namespace greynic::cli {

/// Registers every kind of target that this build has; called once, before anything is opened.
void register_kinds();

}  // namespace greynic::cli
