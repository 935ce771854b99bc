#include "traffic/own_file_table.h"

#include <linux/close_range.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace greynic::verbs {

void own_file_table(std::vector<int> keep) {
  keep.insert(keep.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  std::sort(keep.begin(), keep.end());
  // Makes the table and closes all behind the last to keep. Without a table of our own nothing may
  // be closed: it would be for the whole process.
  if (close_range(static_cast<unsigned>(keep.back()) + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) != 0) {
    return;
  }
  for (std::size_t i = 1; i < keep.size(); ++i) {
    const int first = keep[i - 1] + 1;
    const int last = keep[i] - 1;
    if (first <= last) {
      close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
    }
  }
}

}  // namespace greynic::verbs
