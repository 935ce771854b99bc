#include "run_desk.h"

#include <fmt/core.h>

#include <exception>

namespace greynic::agent {
namespace {

constexpr std::chrono::seconds kGoneFor{5};        // a caller may connect anew
constexpr std::chrono::seconds kLongestCall{120};  // thousands of QPs on a slow device
constexpr const char* kDropped =
    "the agent dropped this run: its lease ended, or the agent was started anew";

}  // namespace

RunDesk::RunDesk(std::unique_ptr<verbs::Peer> peer, std::chrono::seconds longest_lease, Tell tell)
    : peer_(std::move(peer)),
      tell_(std::move(tell)),
      leases_({.most = 1, .most_of_one = 1, .longest = longest_lease}) {}

template <typename Call>
auto RunDesk::work(Lock& lock, bool last, const Call& call) -> decltype(call()) {
  working_ = true;
  working_since_ = Clock::now();
  lock.unlock();
  decltype(call()) result = fail(ErrorCode::kTooBig, "more than the memory of this host");
  try {
    result = call();
  } catch (const std::exception& error) {
    result = fail(ErrorCode::kTooBig, fmt::format("not possible here: {}", error.what()));
  }
  lock.lock();
  if (result && dropped_) result = fail(ErrorCode::kIo, kDropped);
  if (!result || last) {
    end_run(lock);
  } else if (const auto* lease = leases_.find(session_)) {
    (void)leases_.renew(session_, std::string(lease->owner), Clock::now());
  }
  working_ = false;
  return result;
}

void RunDesk::end_run(Lock& lock) {
  working_ = true;
  lock.unlock();
  peer_->abandon();
  lock.lock();
  leases_.end(session_);
  session_ = 0;
  working_ = false;
  dropped_ = false;
}

void RunDesk::drop(Lock& lock, std::string_view why) {
  if (dropped_) return;
  if (tell_) tell_(fmt::format("the run of {} is dropped: {}", caller_, why));
  peer_->interrupt();
  if (working_) {
    dropped_ = true;
  } else {
    end_run(lock);
  }
}

Result<RunDesk::Opened> RunDesk::open(const Caller& caller, const verbs::TrafficPlan& plan,
                                      std::chrono::seconds lease) {
  Lock lock(mutex_);
  if (working_ || session_ != 0) return Opened{.busy = true};
  const auto granted = leases_.grant(caller.owner, lease, Clock::now());
  if (!granted) {
    return fail(granted.error().code,
                granted.error().message + "; `greynic agent --longest-run` raises that");
  }
  session_ = granted->value();
  caller_ = caller.name;
  connection_ = caller.connection;
  const std::uint64_t session = session_;
  auto made = work(lock, false, [&] { return peer_->open(plan, lease); });
  if (!made) return pass_on(made);
  if (tell_) tell_(fmt::format("a run of {} begins: {} QPs", caller.name, plan.qp_count));
  return Opened{.busy = false, .session = session, .endpoint = std::move(*made)};
}

Result<void> RunDesk::hold(const Caller& caller, std::uint64_t session) {
  const bool ours = session != 0 && session == session_ && !dropped_;
  if (!ours || leases_.renew(session, caller.owner, Clock::now()) == nullptr) {
    return fail(ErrorCode::kIo, kDropped);
  }
  if (working_) return fail(ErrorCode::kIo, "a call of this run is still under way");
  connection_ = caller.connection;
  return {};
}

Result<void> RunDesk::connect(const Caller& caller, std::uint64_t session,
                              const verbs::EndpointDescription& endpoint,
                              std::uint64_t duration_ns) {
  Lock lock(mutex_);
  if (auto held = hold(caller, session); !held) return held;
  const std::chrono::nanoseconds length = leases_.find(session)->length;
  return work(lock, false, [&]() -> Result<void> {
    if (duration_ns > static_cast<std::uint64_t>(length.count())) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("a run of {} ns is longer than its lease of {} ns", duration_ns,
                              length.count()));
    }
    return peer_->connect(endpoint, std::chrono::nanoseconds(duration_ns));
  });
}

Result<verbs::PeerReport> RunDesk::finish(const Caller& caller, std::uint64_t session,
                                          const verbs::RequestReport& requests) {
  Lock lock(mutex_);
  if (auto held = hold(caller, session); !held) return pass_on(held);
  return work(lock, true, [&] { return peer_->finish(requests); });
}

void RunDesk::abandon(const Caller& caller, std::uint64_t session) {
  Lock lock(mutex_);
  const auto* lease = leases_.find(session);
  if (session == session_ && lease != nullptr && lease->owner == caller.owner) {
    drop(lock, "its caller wants no more");
  }
}

void RunDesk::look(const std::function<bool(const std::string&)>& is_open,
                   const std::function<bool(const std::string&)>& is_revoked) {
  Lock lock(mutex_);
  const auto* lease = leases_.find(session_);
  if (session_ == 0 || lease == nullptr) return;
  const auto now = Clock::now();
  if (is_revoked(lease->owner)) return drop(lock, "its certificate was revoked");
  if (!is_open(connection_)) leases_.shorten(session_, now + kGoneFor);
  if (leases_.expired(now).empty()) return;
  // While the device works its caller has nothing to say.
  if (working_ && is_open(connection_) && now < working_since_ + lease->length + kLongestCall)
    return;
  drop(lock, is_open(connection_) ? "its lease is over" : "its caller has gone");
}

}  // namespace greynic::agent
