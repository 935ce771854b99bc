#pragma once

/// Which counters of an RNIC are published: most have hundreds, of which a monitor wants a few.
/// docs/formats/rnic_counters.md.

#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::rnic {

class Selection {
 public:
  /// What tells of traffic, congestion and errors, and no ring of a driver.
  [[nodiscard]] static Selection usual();
  /// One pattern of the shell a line, such as "hw.*" or "!net.rx_queue_*"; what follows a # is a
  /// remark. The last one that fits a name decides. kBadInput names file and line.
  [[nodiscard]] static Result<Selection> read(const std::string& path);

  /// By names such as "port.port_xmit_data", "hw.out_of_sequence", "net.rx_prio3_pause", "qp",
  /// "counter.rx_write_requests".
  [[nodiscard]] bool takes(std::string_view name) const;

 private:
  struct Rule {
    std::string pattern;
    bool leaves_out = false;
  };
  std::vector<Rule> rules_;
};

/// Two labels that mlx5's pages give each counter of ethtool: what counts, and what for.
struct NetGroup {
  std::string_view component;  ///< priority, physical_port, vport, ring, global_pause or interface
  std::string_view kind;       ///< error, congestion, acceleration or traffic
};
[[nodiscard]] NetGroup group_of(std::string_view ethtool_name);

}  // namespace greynic::rnic
