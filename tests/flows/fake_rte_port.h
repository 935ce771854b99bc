#pragma once

/// A port in memory that is strict about the contract of rte_flow (rte_flow.h of DPDK 22.11): the
/// one-by-one half and the half with templates and an asynchronous queue. Whatever a caller does
/// that the contract does not allow is written down as a violation. It answers late, in pieces,
/// with refusals or not at all, as told.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpdk/rte_calls.h"

namespace greynic::flows {

/// One at a time, because rte_flow's functions know their port by number only.
class FakeRtePort {
 public:
  struct Traits {
    std::uint32_t queues = 1;  ///< 0: no templates at all
    std::uint32_t queue_size = 64;
    bool configures = true;
    std::optional<rte_flow_item_type> no_item;    ///< no template may have it
    std::uint32_t idle_pulls = 0;                 ///< pulls without a result before each with one
    std::uint16_t results_a_pull = 64;            ///< at most
    std::optional<std::uint64_t> refused_create;  ///< n-th creation (from 0) is not enqueued
    std::optional<std::uint64_t> failed_create;   ///< n-th creation is enqueued and fails
    bool silent = false;                          ///< no results
  };
  explicit FakeRtePort(Traits traits);
  ~FakeRtePort();
  FakeRtePort(const FakeRtePort&) = delete;
  FakeRtePort& operator=(const FakeRtePort&) = delete;

  [[nodiscard]] static const RteCalls& calls();

  /// What the port holds, one text a rule: group, priority, items with masks and masked values,
  /// actions with their settings. Both halves write the same text for the same rule.
  [[nodiscard]] std::multiset<std::string> rules() const;
  /// The part of such a text that is the pattern template's: kinds of items and their masks.
  [[nodiscard]] static std::string mask_of(const std::string& rule);
  /// The part that is the table's: group and priority.
  [[nodiscard]] static std::string place_of(const std::string& rule);

  Traits traits;
  std::vector<std::string> violations;
  std::size_t most_under_way = 0;
  std::size_t creations = 0;  ///< asked for, by both halves
  std::size_t destructions = 0;
  [[nodiscard]] std::size_t patterns() const { return patterns_.size(); }
  [[nodiscard]] std::size_t actions() const { return actions_.size(); }
  [[nodiscard]] std::size_t tables() const { return tables_.size(); }

 private:
  friend struct FakeCalls;
  struct Pattern {
    std::vector<rte_flow_item_type> types;
    std::vector<std::string> masks;
    int tables = 0;
  };
  struct Actions {
    std::vector<rte_flow_action_type> types;
    int tables = 0;
  };
  struct Table {
    std::string place;
    std::uint32_t room = 0;
    std::vector<Pattern*> patterns;
    std::vector<Actions*> actions;
    std::uint32_t rules = 0;
  };
  struct Rule {
    std::string text;
    Table* table = nullptr;
    bool in = false;     ///< the port has it
    bool dying = false;  ///< its destruction is under way
  };
  struct Operation {
    Rule* rule;
    bool create;
    bool fails;
    void* user_data;
  };
  void violated(std::string what) { violations.push_back(std::move(what)); }
  [[nodiscard]] bool room_in_queue();

  bool configured_ = false;
  std::uint32_t configured_size_ = 0;
  std::map<void*, std::unique_ptr<Pattern>> patterns_;
  std::map<void*, std::unique_ptr<Actions>> actions_;
  std::map<void*, std::unique_ptr<Table>> tables_;
  std::map<void*, std::unique_ptr<Rule>> rules_;
  std::deque<Operation> postponed_;  ///< until they are pushed
  std::deque<Operation> pushed_;     ///< until they are pulled
  std::uint32_t idle_ = 0;
};

}  // namespace greynic::flows
