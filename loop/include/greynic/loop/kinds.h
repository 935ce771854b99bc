#pragma once

#include "greynic/loop/talk.h"

namespace greynic::loop {

/// Registers every kind of target that this build has; called once, before anything is opened.
/// `talk` hears the warnings of targets while they run.
void register_kinds(const Talk& talk);

}  // namespace greynic::loop
