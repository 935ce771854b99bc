#pragma once

/// How a daemon lets go of what strangers handed to it. The last to close a descriptor waits for what
/// is behind it: for a socket that lingers, until its peer has read all; for a file of a file system
/// in user space, until that answers. A stranger decides how long that takes, and may hand over such
/// a descriptor beside any packet. So those are closed by threads of their own, at most 64; what
/// comes while all of them wait stays open until one is free.

namespace greynic::daemon {

/// Closes a descriptor that came with a packet; -1 is none. Memory (a memfd) is closed at once.
void close_apart(int descriptor);

/// Closes a local socket, and descriptors that came over it and that nobody has taken.
void hang_up(int socket);

}  // namespace greynic::daemon
