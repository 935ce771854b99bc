#include "tc/tc_trial.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tc/tc_place.h"
#include "tc/tc_snapshot.h"

namespace greynic::flows {
namespace {

constexpr std::uint32_t kTrialChains = 0x8000;  // the rest is for what probing tries

using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // chain, info, handle

Place place_in(std::uint32_t chain, const os::NetlinkAnswer& filter) {
  const tcmsg header = header_of(filter.payload);
  return {chain, header.tcm_info, header.tcm_handle};
}

/// Adds the filters in the trial chains that are given for theirs, and compares what is there then.
Result<void> add_and_compare(os::NetlinkSocket& socket, int interface_number,
                             const std::vector<os::NetlinkAnswer>& filters,
                             const std::map<std::uint32_t, std::uint32_t>& trial_of) {
  std::vector<os::NetlinkMessage> messages;
  messages.reserve(filters.size());
  for (const os::NetlinkAnswer& filter : filters) {
    messages.push_back(
        filter_again(filter.payload, interface_number, trial_of.at(chain_of(filter))));
  }
  std::size_t refused = 0;
  if (auto sent = socket.send(messages, &refused); !sent) {
    // Without the right to add filters nothing can be said about this one.
    if (sent.error().code == ErrorCode::kMissing) return sent;
    return cannot_return(filters[refused], sent.error().message);
  }
  const auto there = socket.dump(os::NetlinkMessage(RTM_GETTFILTER, 0, at(interface_number)));
  if (!there) return pass_on(there);
  std::map<Place, const os::NetlinkAnswer*> copies;
  for (const os::NetlinkAnswer& answer : *there) {
    if (is_filter(answer)) copies[place_in(chain_of(answer), answer)] = &answer;
  }
  for (const os::NetlinkAnswer& filter : filters) {
    const std::uint32_t chain = trial_of.at(chain_of(filter));
    const auto copy = copies.find(place_in(chain, filter));
    const auto text = [&](const os::NetlinkAnswer& answer) {
      return filter_again(answer.payload, interface_number, chain);
    };
    if (copy == copies.end() ||
        !std::ranges::equal(text(filter).bytes(), text(*copy->second).bytes())) {
      return cannot_return(filter,
                           "the kernel shows it in a form from which it makes a different filter");
    }
  }
  return {};
}

}  // namespace

bool is_trial(const os::NetlinkAnswer& filter) { return chain_of(filter) >= kFirstTrialChain; }

Result<void> clear_trials(os::NetlinkSocket& socket, int interface_number) {
  const auto there = socket.dump(os::NetlinkMessage(RTM_GETTFILTER, 0, at(interface_number)));
  if (!there) return pass_on(there);
  std::set<std::uint32_t> chains;
  for (const os::NetlinkAnswer& answer : *there) {
    if (is_filter(answer) && is_trial(answer)) chains.insert(chain_of(answer));
  }
  return flush_chains(socket, interface_number, {chains.begin(), chains.end()});
}

Result<void> try_filters(os::NetlinkSocket& socket, int interface_number,
                         const std::vector<os::NetlinkAnswer>& filters) {
  std::map<std::uint32_t, std::uint32_t> trial_of;
  for (const os::NetlinkAnswer& filter : filters) {
    trial_of.emplace(chain_of(filter),
                     kFirstTrialChain + static_cast<std::uint32_t>(trial_of.size()));
  }
  if (trial_of.size() > kTrialChains) {
    return fail(ErrorCode::kTooBig, fmt::format("the interface has filters in {} chains, and {} "
                                                "can be looked after",
                                                trial_of.size(), kTrialChains));
  }
  auto compared = add_and_compare(socket, interface_number, filters, trial_of);
  std::vector<std::uint32_t> chains;
  for (const auto& [chain, trial] : trial_of) chains.push_back(trial);
  auto flushed = flush_chains(socket, interface_number, chains);
  return compared ? flushed : compared;
}

Result<void> check_templates(os::NetlinkSocket& socket, int interface_number) {
  const auto chains = socket.dump(os::NetlinkMessage(RTM_GETCHAIN, 0, at(interface_number)));
  if (!chains) return pass_on(chains);
  for (const os::NetlinkAnswer& chain : *chains) {
    if (chain.type != RTM_NEWCHAIN || chain.payload.size() < sizeof(tcmsg)) continue;
    bool with_template = false;
    os::each_attribute(attributes_of(chain), [&](std::uint16_t type, os::ByteView) {
      with_template = with_template || type == TCA_OPTIONS;
    });
    if (!with_template) continue;
    return fail(ErrorCode::kUnsupported,
                fmt::format("chain {} has a template, which could not be put back; remove the "
                            "chain first (tc chain del)",
                            chain_of(chain)));
  }
  return {};
}

Result<void> flush_chains(os::NetlinkSocket& socket, int interface_number,
                          const std::vector<std::uint32_t>& chains) {
  std::vector<os::NetlinkMessage> flushes;
  for (const std::uint32_t chain : chains) {
    flushes.emplace_back(RTM_DELTFILTER, 0, at(interface_number));
    flushes.back().put_value(TCA_CHAIN, chain);
  }
  return socket.send(flushes);
}

}  // namespace greynic::flows
