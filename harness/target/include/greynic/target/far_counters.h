#pragma once

/// Counters of the other end of a run, where that is on another host. A target knows no monitor: who
/// builds the program brings one.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "greynic/core/result.h"
#include "greynic/target/counter_arena.h"

namespace greynic::target {

/// Counters that another host publishes about an RDMA device of its own, as a monitor READs them.
class FarCounters {
 public:
  virtual ~FarCounters() = default;
  /// What stands there now, under the names of docs/formats/rnic_counters.md: "hw.sent_pkts"; nothing
  /// where it is what the last look has found. kIo: the host is not read at the moment.
  [[nodiscard]] virtual Result<CounterReading> look() = 0;
};

/// `where` is HOST:PORT of a monitor's agent, or HOST:PORT/DEVICE; `options` are those of the target.
/// kMissing: nobody publishes counters there.
using FarCountersOpener = std::function<Result<std::unique_ptr<FarCounters>>(
    const std::string& where, const std::map<std::string, std::string>& options)>;

}  // namespace greynic::target
