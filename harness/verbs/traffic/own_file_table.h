#pragma once

/// A table of open files for one thread alone.
///
/// While several threads share a table, each system call on a file counts a reference in and out
/// again. Drivers that post by a system call (Soft-RoCE, siw) pay that for every message: 1 to 2 us
/// of a round trip on Soft-RoCE, only because some other thread sleeps nearby.

#include <vector>

namespace greynic::verbs {

/// Gives the calling thread, which is not its process's first, a table of its own, with the
/// standard streams and the descriptors of `keep`, for as long as the thread lives. All else is
/// closed in it, so that what the process closes is closed and not held open from here; the process
/// keeps what it has. What is opened later, here or elsewhere, the other does not see. Where the
/// kernel cannot (before Linux 5.9), the table stays shared and calls cost what they did.
void own_file_table(std::vector<int> keep);

}  // namespace greynic::verbs
