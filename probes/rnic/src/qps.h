#pragma once

/// Queue pairs of a device, and the counters that are bound to them: rows that come and go.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "greynic/rnic/selection.h"
#include "row.h"

namespace greynic::rnic {

class QpRows {
 public:
  QpRows(std::string device, const Selection& selection);
  /// Asks the kernel; publishes what is there and ends what has gone.
  void sample();
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  /// A packet sequence number counts 24 bits of packets; here it goes on.
  struct Psn {
    std::uint32_t last = 0;
    std::uint64_t total = 0;
    void follow(std::uint32_t now);
  };
  struct Qp {
    PublishedRow row;
    Psn sent, received;
    bool seen = false;
  };
  struct Bound {
    PublishedRow row;
    bool seen = false;
  };
  void sample_qps();
  void sample_counters();
  /// Labels of the process whose thread made a queue pair.
  [[nodiscard]] std::string owner_of(std::uint32_t thread) const;

  std::string device_;
  const Selection& selection_;
  RowSchema qp_schema_;
  std::map<std::string, std::unique_ptr<RowSchema>> bound_schemas_;  ///< by their counters' names
  std::map<std::string, Qp> qps_;                                    ///< by number and process
  std::map<std::string, Bound> bound_;
  std::map<std::uint32_t, std::uint32_t> pid_of_;  ///< the thread, by queue pair
};

}  // namespace greynic::rnic
