#include "target/faults.h"

#include <fmt/core.h>

#include <deque>
#include <optional>
#include <vector>

namespace greynic::twin {
namespace {

constexpr std::uint64_t kRegionBytes = 4096;
constexpr std::uint64_t kMessageBytes = 64;
constexpr int kRetries = 7;
constexpr std::size_t kCqDepth = 16;
constexpr std::size_t kMostElements = 4;

struct Region {
  std::uint32_t key = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  bool remote_access = true;
  int domain = 0;  ///< of protection

  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t length) const {
    return address >= begin && length <= bytes && address - begin <= bytes - length;
  }
};

/// Room for completions; nobody polls while a test posts.
struct Completions {
  std::size_t depth = kCqDepth;
  std::vector<std::string_view> entries;
  bool overrun = false;

  void add(std::string_view status) {
    if (entries.size() == depth) {
      overrun = true;
    } else {
      entries.push_back(status);
    }
  }
};

struct End {
  std::vector<Region> regions;
  std::deque<std::uint64_t> receives;  ///< bytes of each posted receive
  Completions completions;
  bool connected = true;
  bool one_sided = true;  ///< enabled for WRITE, READ and atomics of the other end
  int domain = 0;
  bool ready_to_send = true;
  bool in_error = false;

  /// What a key stands for in the QP's own domain.
  [[nodiscard]] const Region* find(std::uint32_t key) const {
    for (const Region& region : regions) {
      if (region.key == key && region.domain == domain) return &region;
    }
    return nullptr;
  }
};

struct Request {
  std::size_t elements = 1;
  int handle_domain = 0;  ///< of the address handle of a datagram
  bool send = false;
  bool atomic = false;
  std::uint64_t bytes = kMessageBytes;
  std::uint64_t local_address = 0;
  std::uint32_t local_key = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
};

enum class Answer { kAck, kSilence, kReceiverNotReady, kInvalidRequest, kRemoteAccess };

/// The responder, in the order of 9.7.4.1: QP state, operation, resources, length, then the remote
/// key; an atomic must lie on a multiple of its eight bytes.
Answer respond(End& end, const Request& request) {
  if (!end.connected || end.in_error) return Answer::kSilence;
  if (request.send) {
    if (end.receives.empty()) return Answer::kReceiverNotReady;
    const std::uint64_t room = end.receives.front();
    end.receives.pop_front();
    return request.bytes > room ? Answer::kInvalidRequest : Answer::kAck;
  }
  if (!end.one_sided) return Answer::kInvalidRequest;
  if (request.atomic && request.remote_address % sizeof(std::uint64_t) != 0) {
    return Answer::kInvalidRequest;
  }
  const Region* region = end.find(request.remote_key);
  const bool allowed = region != nullptr && region->remote_access &&
                       region->holds(request.remote_address, request.bytes);
  return allowed ? Answer::kAck : Answer::kRemoteAccess;
}

/// The requester (9.9.2): local checks, then retries of what is not answered or not ready.
std::string_view carry_out(End& mine, End& peer, const Request& request) {
  if (mine.in_error) return "IBV_WC_WR_FLUSH_ERR";
  if (request.handle_domain != mine.domain) return "IBV_WC_LOC_QP_OP_ERR";
  const Region* region = mine.find(request.local_key);
  if (region == nullptr || !region->holds(request.local_address, request.bytes)) {
    return "IBV_WC_LOC_PROT_ERR";
  }
  int silences = 0;
  int not_ready = 0;
  while (true) {
    switch (respond(peer, request)) {
      case Answer::kAck:
        return "IBV_WC_SUCCESS";
      case Answer::kSilence:
        if (silences++ == kRetries) return "IBV_WC_RETRY_EXC_ERR";
        break;
      case Answer::kReceiverNotReady:
        if (not_ready++ == kRetries) return "IBV_WC_RNR_RETRY_EXC_ERR";
        break;
      case Answer::kInvalidRequest:
        return "IBV_WC_REM_INV_REQ_ERR";
      case Answer::kRemoteAccess:
        return "IBV_WC_REM_ACCESS_ERR";
    }
  }
}

/// False for an immediate error (11.4.1.1): state and length of the list are looked at by the call.
bool post(End& mine, End& peer, const Request& request) {
  if (!mine.ready_to_send || request.elements > kMostElements) return false;
  const std::string_view status = carry_out(mine, peer, request);
  mine.completions.add(status);
  if (status != "IBV_WC_SUCCESS") mine.in_error = true;
  return true;
}

bool post_receive(End& mine, std::uint64_t bytes, std::size_t elements) {
  if (elements > kMostElements) return false;
  mine.receives.push_back(bytes);
  return true;
}

}  // namespace

std::string provoke(Fault fault, std::string_view operation) {
  const Region here{.key = 0x100, .begin = 0x10000, .bytes = kRegionBytes};
  const Region there{.key = 0x200, .begin = 0x20000, .bytes = kRegionBytes};
  End mine{.regions = {here}};
  End peer{.regions = {there}, .receives = {kMessageBytes}};
  Request request{.send = operation == "SEND",
                  .atomic = operation == "FADD",
                  .bytes = operation == "FADD" ? sizeof(std::uint64_t) : kMessageBytes,
                  .local_address = here.begin,
                  .local_key = here.key,
                  .remote_address = there.begin,
                  .remote_key = there.key};
  std::size_t times = 1;
  std::size_t receive_elements = 1;
  switch (fault) {
    case Fault::kNone:
      break;
    case Fault::kRemoteKey:
      request.remote_key += 0x5a00;
      break;
    case Fault::kRemoteBounds:
      request.remote_address += kRegionBytes - (request.atomic ? 0 : request.bytes / 2);
      break;
    case Fault::kRemoteAccess:
      peer.regions[0].remote_access = false;
      break;
    case Fault::kLocalKey:
      request.local_key += 0x5a00;
      break;
    case Fault::kLocalLength:
      request.bytes = kRegionBytes + kMessageBytes;
      break;
    case Fault::kReceiveLength:
      peer.receives = {kMessageBytes / 4};
      break;
    case Fault::kReceiveMissing:
      peer.receives.clear();
      break;
    case Fault::kPeerSilent:
      peer.connected = false;
      break;
    case Fault::kFlush:
      mine.in_error = true;
      break;
    case Fault::kCqOverrun:
      times = 2 * kCqDepth;
      break;
    case Fault::kRemoteDisabled:
      peer.one_sided = false;
      break;
    case Fault::kRemoteDomain:
      peer.regions[0].domain = 1;
      break;
    case Fault::kRemoteAlignment:
      request.remote_address += sizeof(std::uint64_t) / 2;
      break;
    case Fault::kLocalDomain:
      mine.regions[0].domain = 1;
      break;
    case Fault::kSendState:
      mine.ready_to_send = false;
      break;
    case Fault::kSendElements:
      request.elements = kMostElements + 1;
      break;
    case Fault::kReceiveElements:
      receive_elements = kMostElements + 1;
      break;
    case Fault::kHandleDomain:
      request.handle_domain = 1;
      break;
  }
  bool posted = post_receive(mine, kMessageBytes, receive_elements);
  for (std::size_t i = 0; i < times && posted; ++i) posted = post(mine, peer, request);
  if (!posted) return std::string(kNotPosted);
  return std::string(mine.completions.overrun ? kCompletionsLost
                                              : mine.completions.entries.front());
}

Observation observe_fault(const Configuration& configuration) {
  Observation observation;
  const std::string fault = configuration.text("fault");
  const std::string operation = configuration.text("operation");
  const std::string transport = configuration.text("transport");
  const FaultRow* row = find_fault(fault, operation);
  if (row == nullptr || transport != row->transport) {
    observation.outcome = Outcome::kRefused;
    observation.reason =
        fmt::format("fault {} is not defined for {} on {}", fault, operation, transport);
    return observation;
  }
  const std::string observed = provoke(row->fault, operation);
  const double share = observed == row->expected ? 1.0 : 0.0;
  observation.outcome = Outcome::kMeasured;
  observation.measures["status_as_expected_share"] = {share, {}};
  observation.measures["status_by_the_book_share"] = {share, {}};
  observation.environment["expected_status"] = row->expected;
  observation.environment["book_status"] = row->expected;
  observation.environment["observed_status"] = observed;
  return observation;
}

}  // namespace greynic::twin
