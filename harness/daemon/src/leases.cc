#include "greynic/daemon/leases.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>

#include "greynic/core/check.h"

namespace greynic::daemon {

std::uint64_t unguessable_id() {
  std::uint64_t id = 0;
  while (id == 0) GREYNIC_CHECK(getrandom(&id, sizeof id, 0) == ssize_t{sizeof id});
  return id;
}

Result<std::optional<std::uint64_t>> Leases::grant(const std::string& owner,
                                                   std::chrono::seconds length,
                                                   Clock::time_point now) {
  if (length < std::chrono::seconds(1) || length > limits_.longest) {
    return fail(ErrorCode::kTooBig,
                fmt::format("a lease of {} s was asked for; from 1 to {} s are given",
                            length.count(), limits_.longest.count()));
  }
  const auto held = static_cast<std::size_t>(
      std::count_if(leases_.begin(), leases_.end(),
                    [&](const auto& lease) { return lease.second.owner == owner; }));
  if (leases_.size() >= limits_.most) return std::optional<std::uint64_t>();
  if (held >= limits_.most_of_one) {
    return fail(ErrorCode::kTooBig,
                fmt::format("{} leases are held by one owner already, and no more are given",
                            limits_.most_of_one));
  }
  std::uint64_t id = unguessable_id();
  while (leases_.contains(id)) id = unguessable_id();
  leases_[id] = {owner, length, now + length};
  return std::optional(id);
}

const Leases::Lease* Leases::renew(std::uint64_t id, const std::string& owner,
                                   Clock::time_point now) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.owner != owner) return nullptr;
  found->second.end = now + found->second.length;
  return &found->second;
}

void Leases::shorten(std::uint64_t id, Clock::time_point end) {
  if (const auto found = leases_.find(id); found != leases_.end()) {
    found->second.end = std::min(found->second.end, end);
  }
}

std::vector<std::uint64_t> Leases::expired(Clock::time_point now) const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, lease] : leases_) {
    if (now > lease.end) ids.push_back(id);
  }
  return ids;
}

const Leases::Lease* Leases::find(std::uint64_t id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

}  // namespace greynic::daemon
