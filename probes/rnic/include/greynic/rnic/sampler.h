#pragma once

/// `greynic zero rnic`: counters of RDMA devices as metrics in an arena of this process, class
/// system. Ports and their network interfaces are one whole structure each, so all values of one are
/// of one moment; a queue pair has a row of its own for as long as it lives, with its process and
/// container.
///
/// Files of sysfs stay open between two samples, and names of ethtool are asked for once.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/rnic/selection.h"

namespace greynic::rnic {

struct SamplerOptions {
  std::string device = "*";  ///< a pattern of the shell
  Selection selection = Selection::usual();
  std::string sysfs = "/sys";
  bool ask_kernel = true;  ///< ethtool and rdma netlink too; not of a copy of sysfs
};

class Sampler {
 public:
  /// kMissing: no RDMA device fits, or none of its counters was selected.
  [[nodiscard]] static Result<Sampler> open(const SamplerOptions& options);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();  ///< ends its rows

  /// Reads and publishes the ports.
  void sample_ports();
  /// Looks which queue pairs and counters of queue pairs there are, and publishes them.
  void sample_qps();

  /// Names that are published now: "mlx5_0/1 hw.out_of_sequence".
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The container in the text of a /proc/PID/cgroup: the first 12 digits of its id; empty when there
/// is none.
[[nodiscard]] std::string container_in(std::string_view cgroup);

}  // namespace greynic::rnic
