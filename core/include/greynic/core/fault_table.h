#pragma once

/// Negative tests: one wrong request at a time, and the completion status that the InfiniBand
/// specification (vol. 1, 9.9, 11.4.1 and 11.6.2) or the verbs manual asks for. The factor `fault`
/// names what is done wrong. The table is the book; what a device answers is for its target to find
/// out.

#include <cstdint>
#include <span>
#include <string_view>

namespace greynic {

enum class Fault : std::uint8_t {
  kNone,
  kRemoteKey,        ///< a WRITE, READ or FADD names a key that does not exist
  kRemoteBounds,     ///< it reaches beyond the end of the region
  kRemoteAccess,     ///< the region does not allow what is asked of it
  kLocalKey,         ///< the own SGE names a key that does not exist
  kLocalLength,      ///< the own SGE reaches beyond the end of the region
  kReceiveLength,    ///< a SEND is longer than the posted receive
  kReceiveMissing,   ///< a SEND finds no receive, and retries are limited
  kPeerSilent,       ///< the other QP answers nothing
  kFlush,            ///< requests are queued when the QP goes to the error state
  kCqOverrun,        ///< more completions than the CQ has room for
  kRemoteDisabled,   ///< the other QP was not enabled for what is asked of it
  kRemoteDomain,     ///< the remote region is of another protection domain than the QP
  kRemoteAlignment,  ///< an atomic that is not aligned to its eight bytes
  kLocalDomain,      ///< the own region is of another protection domain than the QP
  kSendState,        ///< a request is posted to a QP that is not ready to send
  kSendElements,     ///< it has more SGEs than the send queue takes
  kReceiveElements,  ///< a receive has more SGEs than the receive queue takes
  kHandleDomain,     ///< a datagram's address handle is of another protection domain than the QP
};

struct FaultRow {
  Fault fault;
  std::string_view name;       ///< level of the factor `fault`
  std::string_view operation;  ///< "WRITE", "READ", "SEND", "FADD"
  std::string_view expected;   ///< verbs name of the requester's status, or what happens
  std::string_view meaning;
  std::string_view transport = "RC";
};

/// What a CQ without room leads to: no status, but lost completions.
inline constexpr std::string_view kCompletionsLost = "completions lost or CQ in error";

/// An immediate error of the specification: the call that posts says so, and nothing completes. The
/// error number is the convention of libibverbs.
inline constexpr std::string_view kNotPosted = "not posted: EINVAL";

/// One row for each fault and operation that it is defined for, on one transport.
[[nodiscard]] std::span<const FaultRow> fault_table();
/// Null when the fault is not defined for the operation.
[[nodiscard]] const FaultRow* find_fault(std::string_view fault, std::string_view operation);

}  // namespace greynic
