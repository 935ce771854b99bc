#pragma once

namespace greynic::lab::turns {

/// From now on the clocks of this process show virtual time.
void start_clock();

}  // namespace greynic::lab::turns
