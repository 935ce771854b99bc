#pragma once

/// An asynchronous queue of a port: many operations under way, as many as it holds, pushed and
/// pulled by batches. A port that stops answering ends in a message, not in a hang.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dpdk/rte_calls.h"
#include "dpdk/rte_rules.h"
#include "dpdk/rte_templates.h"
#include "greynic/core/result.h"

namespace greynic::flows {

class RteQueue {
 public:
  /// Queue 0 of the port, which must be configured to hold `size` operations.
  RteQueue(const RteCalls& calls, std::uint16_t port, std::uint32_t size,
           std::chrono::nanoseconds patience);

  /// All of these rules or, with the error of the first that the port refuses, none.
  [[nodiscard]] Result<std::vector<rte_flow*>> create(std::span<const RteRule> rules,
                                                      const RteTemplates& templates);
  /// Goes on after a refusal; the first one is the error.
  [[nodiscard]] Result<void> destroy(std::span<rte_flow* const> rules);
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  struct Operation {
    bool done = false;
    std::string refusal;  ///< empty: none
  };
  /// Enqueues one operation, whose result will come with this user data; false when refused.
  using Enqueue = std::function<bool(std::size_t, void* user_data, rte_flow_error*)>;

  /// Operations 0 to count - 1, in order. After a refusal no further one begins, unless `go_on`;
  /// those under way are waited for. An error only if the port does not answer.
  [[nodiscard]] Result<std::vector<Operation>> run(std::size_t count, const Enqueue& enqueue,
                                                   bool go_on);
  struct Pulled {
    std::size_t count = 0;
    bool refused = false;  ///< at least one of them
  };
  /// Waits until at least one of the `open` operations is done.
  [[nodiscard]] Result<Pulled> pull(std::size_t open);

  const RteCalls& calls_;
  std::uint16_t port_;
  std::uint32_t size_;
  std::chrono::nanoseconds patience_;
  bool silent_ = false;  ///< once true, results of lost operations may come at any time
};

}  // namespace greynic::flows
