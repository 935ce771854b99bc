#pragma once

/// Negative tests: one wrong request at a time, and the completion status that the InfiniBand
/// specification (vol. 1, 10.10 and 11.6) or the verbs manual asks for. They run as campaigns: the
/// factor `fault` names what is done wrong, the measure `status_as_expected_share` is 1 where the
/// device answered as it should, so a deviation is a wall like any other.

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/verbs/traffic.h"

namespace greynic::verbs {

enum class Fault : std::uint8_t {
  kRemoteKey,       ///< a WRITE or READ names a key that does not exist
  kRemoteBounds,    ///< it reaches beyond the end of the region
  kRemoteAccess,    ///< the region does not allow remote writing or reading
  kLocalKey,        ///< the own SGE names a key that does not exist
  kLocalLength,     ///< the own SGE reaches beyond the end of the region
  kReceiveLength,   ///< a SEND is longer than the posted receive
  kReceiveMissing,  ///< a SEND finds no receive, and retries are limited
  kPeerSilent,      ///< the other QP is gone
  kFlush,           ///< requests are queued when the QP goes to the error state
  kCqOverrun,       ///< more completions than the CQ has room for
};

struct FaultRow {
  Fault fault;
  std::string_view name;       ///< level of the factor `fault`
  std::string_view operation;  ///< "WRITE", "READ", "SEND"
  std::string_view expected;   ///< the book: verbs name of the requester's status, or what happens
  std::string_view meaning;
  std::string_view soft_roce = {};  ///< what Soft-RoCE is known to answer instead; empty: the book
};

/// One row for each fault and operation that it is defined for, all on RC.
[[nodiscard]] std::span<const FaultRow> fault_table();
[[nodiscard]] const FaultRow* find_fault(std::string_view fault, std::string_view operation);

struct FaultResult {
  std::string observed;  ///< verbs name of the status that came, or "no completion"
  std::string expected;  ///< of this driver
  bool as_expected = false;
};

/// Provokes it on a fresh pair of QPs, `here` to `there`. Errors: kRefused when the pair cannot be
/// set up. Every wait is limited by `patience`.
[[nodiscard]] Result<FaultResult> provoke(const Device& here, const Device& there,
                                          const FaultRow& row, std::string_view gid_rule_here,
                                          std::string_view gid_rule_there,
                                          std::chrono::milliseconds patience);

}  // namespace greynic::verbs
