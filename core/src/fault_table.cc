#include "greynic/core/fault_table.h"

namespace greynic {
namespace {

constexpr FaultRow kRows[] = {
    {Fault::kRemoteKey, "remote_key", "WRITE", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteKey, "remote_key", "READ", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteKey, "remote_key", "FADD", "IBV_WC_REM_ACCESS_ERR", "unknown remote key"},
    {Fault::kRemoteBounds, "remote_bounds", "WRITE", "IBV_WC_REM_ACCESS_ERR",
     "beyond the end of the remote region"},
    {Fault::kRemoteBounds, "remote_bounds", "READ", "IBV_WC_REM_ACCESS_ERR",
     "beyond the end of the remote region"},
    {Fault::kRemoteBounds, "remote_bounds", "FADD", "IBV_WC_REM_ACCESS_ERR",
     "beyond the end of the remote region"},
    {Fault::kRemoteAccess, "remote_access", "WRITE", "IBV_WC_REM_ACCESS_ERR",
     "the remote region may not be written"},
    {Fault::kRemoteAccess, "remote_access", "READ", "IBV_WC_REM_ACCESS_ERR",
     "the remote region may not be read"},
    {Fault::kRemoteAccess, "remote_access", "FADD", "IBV_WC_REM_ACCESS_ERR",
     "the remote region takes no atomics"},
    {Fault::kRemoteDisabled, "remote_disabled", "WRITE", "IBV_WC_REM_INV_REQ_ERR",
     "the remote QP is not enabled for WRITE"},
    {Fault::kRemoteDisabled, "remote_disabled", "READ", "IBV_WC_REM_INV_REQ_ERR",
     "the remote QP is not enabled for READ"},
    {Fault::kRemoteDisabled, "remote_disabled", "FADD", "IBV_WC_REM_INV_REQ_ERR",
     "the remote QP is not enabled for atomics"},
    {Fault::kRemoteDomain, "remote_domain", "WRITE", "IBV_WC_REM_ACCESS_ERR",
     "the remote region is of another protection domain"},
    {Fault::kRemoteDomain, "remote_domain", "READ", "IBV_WC_REM_ACCESS_ERR",
     "the remote region is of another protection domain"},
    {Fault::kRemoteAlignment, "remote_alignment", "FADD", "IBV_WC_REM_INV_REQ_ERR",
     "an atomic that is not aligned"},
    {Fault::kLocalKey, "local_key", "SEND", "IBV_WC_LOC_PROT_ERR", "unknown local key"},
    {Fault::kLocalKey, "local_key", "WRITE", "IBV_WC_LOC_PROT_ERR", "unknown local key"},
    {Fault::kLocalKey, "local_key", "READ", "IBV_WC_LOC_PROT_ERR", "unknown local key"},
    {Fault::kLocalDomain, "local_domain", "SEND", "IBV_WC_LOC_PROT_ERR",
     "the local region is of another protection domain"},
    {Fault::kLocalDomain, "local_domain", "WRITE", "IBV_WC_LOC_PROT_ERR",
     "the local region is of another protection domain"},
    {Fault::kLocalDomain, "local_domain", "READ", "IBV_WC_LOC_PROT_ERR",
     "the local region is of another protection domain"},
    {Fault::kLocalLength, "local_length", "SEND", "IBV_WC_LOC_PROT_ERR",
     "beyond the end of the local region"},
    {Fault::kReceiveLength, "receive_length", "SEND", "IBV_WC_REM_INV_REQ_ERR",
     "the receive buffer is too small"},
    {Fault::kReceiveMissing, "receive_missing", "SEND", "IBV_WC_RNR_RETRY_EXC_ERR",
     "no receive is posted"},
    {Fault::kPeerSilent, "peer_silent", "SEND", "IBV_WC_RETRY_EXC_ERR", "nobody acknowledges"},
    {Fault::kPeerSilent, "peer_silent", "WRITE", "IBV_WC_RETRY_EXC_ERR", "nobody acknowledges"},
    {Fault::kFlush, "flush", "SEND", "IBV_WC_WR_FLUSH_ERR", "queued when the QP fails"},
    {Fault::kCqOverrun, "cq_overrun", "WRITE", kCompletionsLost, "more completions than room"},
    {Fault::kSendState, "send_state", "SEND", kNotPosted, "the QP is not ready to send"},
    {Fault::kSendState, "send_state", "WRITE", kNotPosted, "the QP is not ready to send"},
    {Fault::kSendElements, "send_elements", "SEND", kNotPosted,
     "more SGEs than a request may have"},
    {Fault::kSendElements, "send_elements", "WRITE", kNotPosted,
     "more SGEs than a request may have"},
    {Fault::kReceiveElements, "receive_elements", "SEND", kNotPosted,
     "more SGEs than a receive may have"},
    // Or an immediate error, as the channel adapter likes; libibverbs documents the status.
    {Fault::kHandleDomain, "handle_domain", "SEND", "IBV_WC_LOC_QP_OP_ERR",
     "the address handle is of another protection domain", "UD"},
};

}  // namespace

std::span<const FaultRow> fault_table() { return kRows; }

const FaultRow* find_fault(std::string_view fault, std::string_view operation) {
  for (const FaultRow& row : kRows) {
    if (row.name == fault && row.operation == operation) return &row;
  }
  return nullptr;
}

}  // namespace greynic
