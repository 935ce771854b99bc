#pragma once

/// What a driver must remember to put a device back: on disk, written before anything is changed.

#include <optional>
#include <string>

#include "greynic/core/result.h"

namespace greynic::flows {

struct JournalEntry {
  bool finished = false;  ///< the last change went through
  std::string original;   ///< rules before the first change
  std::string before;     ///< rules before the last change
};

class Journal {
 public:
  /// One journal for each device, named by it. `folder` empty: the standard one, which is
  /// $GREYNIC_STATE_DIR, /var/lib/greynic for root, or ~/.local/state/greynic.
  [[nodiscard]] static Journal on_disk(const std::string& device, std::string folder = "");
  /// For a device that is gone when its owner is: kept in memory only.
  [[nodiscard]] static Journal in_memory();

  [[nodiscard]] Result<std::optional<JournalEntry>> read() const;
  /// Durable when it returns.
  [[nodiscard]] Result<void> write(const JournalEntry& entry);
  [[nodiscard]] Result<void> clear();

 private:
  Journal() = default;
  std::string path_;  ///< empty: in memory
  std::optional<JournalEntry> kept_;
};

}  // namespace greynic::flows
