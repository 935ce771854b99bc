#include "src/counted/walk.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "src/ternary.h"

namespace greynic::optimizer {
namespace {

constexpr int kJumpsFollowed = 64;  // as core's look_up

/// A table's rules in the order in which they are tried, with each one's matcher and jump.
struct WalkedTable {
  WalkedTable(const LayoutTable& table, const Columns& packed_columns)
      : columns(packed_columns), rows(packed_columns.words()) {
    for (std::size_t m = 0; m < table.matchers.size(); ++m) {
      for (const FlowRule& rule : table.matchers[m].rules) {
        for (const Match& part : without_ranges(rule.match)) {
          Word* const value = rows.value.add();
          Word* const mask = rows.mask.add();
          columns.pack(part, value, mask);
          matcher.push_back(m);
          rules.push_back(&rule);
        }
      }
    }
  }
  const Columns& columns;
  Ternaries rows;
  std::vector<std::size_t> matcher;
  std::vector<const FlowRule*> rules;
};

/// Where a rule jumps to; -1: it ends the walk.
std::int64_t jump_target(const FlowRule& rule) {
  const auto jump = std::find_if(rule.actions.begin(), rule.actions.end(),
                                 [](const Action& a) { return a.kind == ActionKind::kJump; });
  return jump == rule.actions.end() ? -1 : static_cast<std::int64_t>(jump->number);
}

Columns columns_of(const LayoutTable& table) {
  Mask all;
  for (const Matcher& matcher : table.matchers) {
    for (const FieldMask& entry : matcher.mask.fields()) all.add(entry.field, entry.bits);
    for (const MatchField field : matcher.mask.ranges()) all.add(field, full_mask(field));
    for (const FlowRule& rule : matcher.rules) {
      for (const FieldMatch& entry : rule.match.fields()) all.add(entry.field, entry.bits);
    }
  }
  return Columns(all);
}

}  // namespace

void walk(const Layout& layout, const Traffic& traffic,
          const std::function<void(const Step&)>& visit) {
  std::map<std::int64_t, const LayoutTable*> table_of;
  for (const LayoutTable& table : layout.tables) table_of.try_emplace(table.id, &table);
  std::unordered_map<std::uint32_t, Packet> tagged;  // flows whose headers a jump set
  const auto packet_of = [&](std::uint32_t flow) -> const Packet& {
    const auto changed = tagged.find(flow);
    return changed == tagged.end() ? traffic.flows[flow].packet : changed->second;
  };
  std::map<std::int64_t, std::vector<std::uint32_t>> at;  // flows by the table that they are at
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) at[traffic.flows[i].table].push_back(i);
  for (int jumps = 0; jumps <= kJumpsFollowed && !at.empty(); ++jumps) {
    std::map<std::int64_t, std::vector<std::uint32_t>> next;
    for (const auto& [id, flows] : at) {
      const auto found = table_of.find(id);
      if (found == table_of.end()) {
        for (const std::uint32_t flow : flows) visit({.flow = flow});
        continue;
      }
      const Columns columns = columns_of(*found->second);
      const WalkedTable table(*found->second, columns);
      Rows packets(columns.words());
      for (const std::uint32_t flow : flows) {
        columns.pack(packet_of(flow), packets.add());
      }
      const auto hits = first_matches(table.rows, packets);
      for (std::size_t i = 0; i < flows.size(); ++i) {
        Step step{.flow = flows[i], .table = found->second, .packet = &packet_of(flows[i])};
        if (hits[i] == kNoRow) {
          step.tried = found->second->matchers.size();
          visit(step);
          continue;
        }
        step.tried = table.matcher[hits[i]] + 1;
        step.rule = table.rules[hits[i]];
        const std::int64_t target = jump_target(*step.rule);
        step.last = target < 0;
        visit(step);
        if (step.last) continue;
        next[target].push_back(flows[i]);
        for (const Action& action : step.rule->actions) {
          if (action.kind != ActionKind::kSetField) continue;
          Packet packet = packet_of(flows[i]);
          const U128 kept = packet.value(action.field) & ~action.bits;
          packet.set(action.field, kept | (action.value & action.bits));
          tagged.insert_or_assign(flows[i], std::move(packet));
        }
      }
    }
    at = std::move(next);
  }
  for (const auto& [id, flows] : at) {
    for (const std::uint32_t flow : flows) visit({.flow = flow});
  }
}

}  // namespace greynic::optimizer
