#pragma once

/// What the kernel says of another process.

#include <chrono>
#include <cstdint>

namespace greynic::lab {

/// Processor time of all its threads; 0 when there is no such process.
std::chrono::nanoseconds cpu_time(std::uint32_t pid);
bool is_alive(std::uint32_t pid);
/// It waits in the kernel, for something other than a processor.
bool is_asleep(std::uint32_t pid);

}  // namespace greynic::lab
