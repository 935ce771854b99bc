#pragma once

/// The two ways in which rules get into a port: one by one with rte_flow_create, or, where the port
/// offers it, through template tables with an asynchronous queue, which takes many at a time and
/// is the only one that some ports work at speed with. The port decides, once, before it is
/// started.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpdk/rte_calls.h"
#include "dpdk/rte_rules.h"
#include "greynic/core/result.h"

namespace greynic::flows {

class RtePath {
 public:
  virtual ~RtePath() = default;
  RtePath(const RtePath&) = delete;
  RtePath& operator=(const RtePath&) = delete;

  /// Would the port take these rules, as far as it says so without holding one? kUnsupported names
  /// the first that it would not take, with the port's words.
  [[nodiscard]] virtual Result<void> check(std::span<const RteRule> rules) = 0;
  /// Does the port take this rule when it comes to it? Some validate more than they then create
  /// (net_tap with port masks), so the rule goes in and out again.
  [[nodiscard]] virtual bool takes(const RteRule& rule) = 0;
  /// Puts these rules in the place of all that went in before and gives their handles, in their
  /// order. After an error the port may hold none, or those of before.
  [[nodiscard]] virtual Result<std::vector<rte_flow*>> replace(std::span<const RteRule> rules) = 0;
  /// One sentence for people: which way it is, and why.
  [[nodiscard]] virtual std::string about() const = 0;

 protected:
  RtePath() = default;
};

/// How long a port may take for an operation of its queue before it is given up: hardware answers
/// in microseconds.
inline constexpr std::chrono::milliseconds kRtePatience{5000};

/// The way that the port offers. Must be called when the port is configured and not yet started,
/// because it configures the queue where there is one.
[[nodiscard]] std::unique_ptr<RtePath> choose_path(
    const RteCalls& calls, std::uint16_t port, std::chrono::nanoseconds patience = kRtePatience);

}  // namespace greynic::flows
