#include "rte_driver.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <thread>

#include "field_needs.h"
#include "journal.h"
#include "rte_defects.h"
#include "rte_open.h"
#include "rte_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Starts DPDK without huge pages, without files that others see, and with this one device.
Result<void> start_dpdk(const std::string& device) {
  static bool started = false;
  if (started) {
    return fail(ErrorCode::kUnsupported, "DPDK can drive one device a process, and has one");
  }
  started = true;
  const bool virtual_device = device.starts_with("net_");
  std::vector<std::string> words = {"greynic",
                                    "--no-huge",
                                    "--no-shconf",
                                    "--no-telemetry",
                                    "-m",
                                    "64",
                                    "--log-level",
                                    "error",
                                    virtual_device ? "--vdev" : "-a",
                                    device};
  if (virtual_device) words.emplace_back("--no-pci");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int result = 0;
  int error = 0;
  // On a thread of its own, because DPDK pins the one that starts it to a CPU.
  std::thread([&] {
    result = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
    error = rte_errno;
  }).join();
  if (result >= 0) return {};
  return fail(ErrorCode::kMissing,
              fmt::format("DPDK does not start with {}: {}", device, rte_strerror(error)));
}

/// One queue each way is all that a port needs to take rules.
Result<void> start_port(std::uint16_t port) {
  constexpr unsigned kBuffers = 255;
  constexpr std::uint16_t kDepth = 64;
  const auto failed = [&](std::string_view what, int error) {
    return fail(ErrorCode::kMissing, fmt::format("the DPDK port cannot be {}: {}", what,
                                                 rte_strerror(error < 0 ? -error : error)));
  };
  rte_mempool* pool =
      rte_pktmbuf_pool_create("greynic", kBuffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == nullptr) return failed("given buffers", rte_errno);
  const rte_eth_conf configuration{};
  if (const int bad = rte_eth_dev_configure(port, 1, 1, &configuration); bad != 0) {
    return failed("configured", bad);
  }
  if (const int bad = rte_eth_rx_queue_setup(port, 0, kDepth, SOCKET_ID_ANY, nullptr, pool);
      bad != 0) {
    return failed("given a receive queue", bad);
  }
  if (const int bad = rte_eth_tx_queue_setup(port, 0, kDepth, SOCKET_ID_ANY, nullptr); bad != 0) {
    return failed("given a send queue", bad);
  }
  if (const int bad = rte_eth_dev_start(port); bad != 0) return failed("started", bad);
  return {};
}

std::string words_of(const rte_flow_error& error) {
  return error.message != nullptr ? error.message : rte_strerror(rte_errno);
}

/// The rule as the port is given it; refused where its driver would make another of it.
Result<RteRule> rule_for(std::uint16_t port, const FlowRule& rule) {
  rte_eth_dev_info about{};
  if (rte_eth_dev_info_get(port, &about) == 0 && about.driver_name != nullptr) {
    if (const auto defect = rte_defect(about.driver_name, rule.match)) {
      return fail(ErrorCode::kUnsupported, *defect);
    }
  }
  return rte_rule_of(rule);
}

Result<void> validated(std::uint16_t port, const FlowRule& rule) {
  auto made = rule_for(port, rule);
  if (!made) return pass_on(made);
  rte_flow_error error{};
  if (rte_flow_validate(port, &made->attributes, made->pattern.data(), made->actions.data(),
                        &error) == 0) {
    return {};
  }
  return fail(ErrorCode::kUnsupported, "the port refuses it: " + words_of(error));
}

/// Is the rule taken when it comes to it? Some ports validate more than they then create (net_tap
/// with port masks), so that a trial rule goes in and out.
bool accepted(std::uint16_t port, const FlowRule& rule) {
  if (!validated(port, rule)) return false;
  const auto made = rule_for(port, rule);
  rte_flow_error error{};
  rte_flow* const handle =
      rte_flow_create(port, &made->attributes, made->pattern.data(), made->actions.data(), &error);
  return handle != nullptr && rte_flow_destroy(port, handle, &error) == 0;
}

/// A match on one field as simple as it gets, exact or with one bit open.
Match example_of(MatchField field, bool masked) {
  U128 value = 1;
  if (field == F::kEtherType || field == F::kInnerEtherType) value = 0x0800;
  if (field == F::kIpProtocol || field == F::kInnerIpProtocol) value = 17;
  Match match;
  match.set(field, masked ? U128{0} : value,
            masked ? full_mask(field) & ~U128{1} : full_mask(field));
  if (field == F::kInnerIpv4Src || field == F::kInnerIpv4Dst || field == F::kInnerIpProtocol) {
    match.set(F::kInnerEtherType, 0x0800);
  }
  if (field == F::kInnerIpv6Src || field == F::kInnerIpv6Dst) match.set(F::kInnerEtherType, 0x86dd);
  if (field == F::kInnerL4SrcPort || field == F::kInnerL4DstPort) {
    match.set(F::kInnerEtherType, 0x0800);
    match.set(F::kInnerIpProtocol, 17);
  }
  const std::vector<Match> named = headers_named(match);
  if (!named.empty()) match = named.front();
  if (match.mask().bits(F::kSvlanPresent) != 0) match.set(F::kVlanPresent, 1);
  return match;
}

constexpr std::array kActionKinds = {
    ActionKind::kForward,    ActionKind::kDrop,       ActionKind::kJump,     ActionKind::kSetField,
    ActionKind::kVxlanEncap, ActionKind::kVxlanDecap, ActionKind::kPushVlan, ActionKind::kPopVlan,
    ActionKind::kCount,      ActionKind::kMeter};

Action example_of(ActionKind kind) {
  Action action{.kind = kind, .number = 1};
  if (kind == ActionKind::kForward) action.text = "queue:0";
  if (kind == ActionKind::kVxlanEncap) action.text = "src=10.0.0.1,dst=10.0.0.2";
  if (kind == ActionKind::kSetField) {
    action.field = F::kPacketMark;
    action.value = 1;
    action.bits = full_mask(F::kPacketMark);
  }
  return action;
}

/// The largest number, below `end`, that `taken` accepts; numbers are accepted up to some point.
std::uint32_t last_taken(std::uint32_t end, const std::function<bool(std::uint32_t)>& taken) {
  std::uint32_t low = 0;
  while (low + 1 < end) {
    const std::uint32_t middle = low + (end - low) / 2;
    (taken(middle) ? low : end) = middle;
  }
  return low;
}

}  // namespace

RteDriver::RteDriver(std::uint16_t port)
    : FlowDriver(std::make_unique<Journal>(Journal::in_memory())), port_(port) {}

RteDriver::~RteDriver() {
  rte_flow_error error{};
  rte_flow_flush(port_, &error);
  rte_eth_dev_stop(port_);
  rte_eth_dev_close(port_);
}

Result<std::unique_ptr<RteDriver>> RteDriver::open(const std::string& device) {
  if (auto started = start_dpdk(device); !started) return pass_on(started);
  const std::uint16_t port = static_cast<std::uint16_t>(rte_eth_find_next(0));
  if (port >= RTE_MAX_ETHPORTS) {
    return fail(ErrorCode::kMissing, fmt::format("DPDK drives no port of {}", device));
  }
  if (auto up = start_port(port); !up) return pass_on(up);
  return std::unique_ptr<RteDriver>(new RteDriver(port));
}

Result<std::unique_ptr<FlowDriver>> open_rte(const std::string& device) {
  auto driver = RteDriver::open(device);
  if (!driver) return pass_on(driver);
  return std::unique_ptr<FlowDriver>(std::move(*driver));
}

Result<Offer> RteDriver::probe() {
  Offer offer;
  const auto takes = [&](const Match& match, const Action& action) {
    FlowRule rule;
    rule.match = match;
    rule.actions = {action};
    return accepted(port_, rule);
  };
  for (const MatchFieldInfo& row : match_fields()) {
    if (!rte_takes(row.field) || !takes(example_of(row.field, false), Action::drop())) continue;
    const bool masked = row.width_bits > 1 && takes(example_of(row.field, true), Action::drop());
    offer.fields.push_back({row.field, masked});
  }
  Match any_ipv4;
  any_ipv4.set(F::kEtherType, 0x0800);
  for (const ActionKind kind : kActionKinds) {
    if (takes(any_ipv4, example_of(kind))) offer.actions.push_back(kind);
  }
  const auto placed = [&](std::uint32_t table, RulePriority priority) {
    FlowRule rule;
    rule.match = any_ipv4;
    rule.table = table;
    rule.priority = priority;
    return accepted(port_, rule);
  };
  constexpr std::uint32_t kFarEnough = 1U << 24;
  offer.last_table = last_taken(kFarEnough, [&](std::uint32_t table) { return placed(table, 0); });
  offer.last_priority =
      last_taken(kFarEnough, [&](std::uint32_t priority) { return placed(0, priority); });
  rte_flow_port_info port{};
  rte_flow_queue_info queue{};
  rte_flow_error error{};
  const bool templates = rte_flow_info_get(port_, &port, &queue, &error) == 0;
  offer.notes = {
      fmt::format(
          "The port {} templates and the asynchronous queues of rte_flow; rules go in one "
          "by one.",
          templates ? fmt::format("offers {} queues for", port.max_nb_queues) : "does not offer"),
      "The port belongs to this process: its rules go when it ends."};
  return offer;
}

Result<void> RteDriver::check(const RuleSet& rules) {
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (auto good = validated(port_, rules.rules[i]); !good) {
      return good.error().while_doing(
          fmt::format("checking rule {} ({})", i, to_string(rules.rules[i].match)));
    }
  }
  return check_unambiguous(rules);
}

Result<RuleSet> RteDriver::list() {
  RuleSet set;
  for (const Installed& installed : rules_) set.rules.push_back(installed.rule);
  return set;
}

Result<std::vector<RuleCount>> RteDriver::counters() {
  std::vector<RuleCount> counted;
  for (const Installed& installed : rules_) {
    RuleCount row{.rule = installed.rule};
    rte_flow_query_count numbers{};
    const rte_flow_action_count what{};
    const std::array<rte_flow_action, 2> actions = {
        {{RTE_FLOW_ACTION_TYPE_COUNT, &what}, {RTE_FLOW_ACTION_TYPE_END, nullptr}}};
    rte_flow_error error{};
    if (rte_flow_query(port_, installed.handle, actions.data(), &numbers, &error) == 0) {
      row.packets = numbers.hits_set != 0 ? numbers.hits : 0;
      row.bytes = numbers.bytes_set != 0 ? numbers.bytes : 0;
    }
    counted.push_back(std::move(row));
  }
  return counted;
}

Result<std::string> RteDriver::snapshot() {
  std::vector<FlowRule> rules;
  for (const Installed& installed : rules_) rules.push_back(installed.rule);
  remembered_.push_back(std::move(rules));
  return std::to_string(remembered_.size() - 1);
}

Result<void> RteDriver::restore(const std::string& text) {
  return install({remembered_.at(static_cast<std::size_t>(std::stoul(text))), ""});
}

Result<void> RteDriver::remove_all() {
  rte_flow_error error{};
  rules_.clear();
  if (rte_flow_flush(port_, &error) == 0) return {};
  return fail(ErrorCode::kRefused, "the port does not let its rules go: " + words_of(error));
}

Result<void> RteDriver::install(const RuleSet& rules) {
  if (auto gone = remove_all(); !gone) return gone;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    auto made = rule_for(port_, rules.rules[i]);
    if (!made) return pass_on(made);
    rte_flow_error error{};
    rte_flow* const handle = rte_flow_create(port_, &made->attributes, made->pattern.data(),
                                             made->actions.data(), &error);
    if (handle == nullptr) {
      return fail(ErrorCode::kRefused,
                  fmt::format("the port refuses rule {} ({}): {}", i,
                              to_string(rules.rules[i].match), words_of(error)));
    }
    FlowRule kept = rules.rules[i];
    kept.weight = 0;
    kept.from.clear();
    if (kept.actions.empty()) kept.actions = {Action::drop()};
    rules_.push_back({handle, std::move(kept)});
  }
  return {};
}

}  // namespace greynic::flows
