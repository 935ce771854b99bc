#include "src/bits/questions.h"

#include <algorithm>
#include <tuple>

namespace greynic::verify {
namespace {

constexpr std::size_t kFewMasks = 8;  // with more, some are prefixes

}  // namespace

/// Fields that many rules look at come first, as what few look at would stand between them for all. Of those that are
/// looked at about as often, what is compared exactly tells packets apart before what has prefixes, so that prefixes
/// stand behind few nodes.
Questions::Questions(const TablesOfSet& rules, const Layout& layout) {
  std::size_t count = 0;
  for (const auto& entry : rules) {
    for (const FlowRule* rule : entry.second) note(*rule, true);
    count += entry.second.size();
  }
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) note(rule, false);
    }
  }
  std::vector<MatchField> order;
  for (const auto& entry : fields_) order.push_back(entry.first);
  std::stable_sort(order.begin(), order.end(), [&](MatchField a, MatchField b) {
    const auto worth = [&](const Field& field) {
      const int rarity = std::bit_width(count / std::max<std::size_t>(1, field.rules));
      return std::tuple(rarity, field.masks.size() > kFewMasks, count - field.rules);
    };
    return worth(fields_[a]) < worth(fields_[b]);
  });
  for (const MatchField field : order) ask(field, fields_[field]);
}

void Questions::note(const FlowRule& rule, bool of_set) {
  for (const FieldMatch& part : rule.match.fields()) {
    Field& field = fields_[part.field];
    field.masks.insert(part.bits);
    field.rules += of_set ? 1 : 0;
    field.ones |= part.value & part.bits;
    field.zeros |= ~part.value & part.bits;
  }
  for (const Action& action : rule.actions) {
    if (action.kind == ActionKind::kSetField) fields_[action.field].masks.insert(action.bits);
  }
}

/// From the highest bit down.
void Questions::ask(MatchField field, const Field& looked_at) {
  std::map<std::vector<bool>, std::uint32_t> together;  // by the masks that have the bits
  std::vector<std::uint32_t>& all = of_field_[field];
  for (U128 bit = U128{1} << 127; bit != 0; bit >>= 1) {
    const bool zero = (looked_at.zeros & bit) != 0;
    const bool one = (looked_at.ones & bit) != 0;
    if (!zero && !one) continue;
    const auto fresh = static_cast<std::uint32_t>(questions_.size());
    std::uint32_t number = fresh;
    if (zero != one) {
      std::vector<bool> held;
      for (const U128 mask : looked_at.masks) held.push_back((mask & bit) != 0);
      number = together.try_emplace(std::move(held), fresh).first->second;
    }
    if (number == fresh) {
      all.push_back(fresh);
      questions_.push_back({field, 0, 0});
    }
    questions_[number].bits |= bit;
    if (one) questions_[number].wanted |= bit;
  }
}

template <typename Visit>
void Questions::for_each(MatchField field, U128 value, U128 bits, const Visit& visit) const {
  const auto found = of_field_.find(field);
  if (found == of_field_.end()) return;
  for (const std::uint32_t number : found->second) {
    const Question& question = questions_[number];
    if ((bits & question.bits) == 0) continue;  // a mask has all bits of a question, or none
    visit(number, (value & question.bits) == question.wanted);
  }
}

FirstMatch::Asked Questions::asked(const Match& match) const {
  FirstMatch::Asked all;
  for (const FieldMatch& part : match.fields()) {
    for_each(part.field, part.value, part.bits,
             [&](std::uint32_t number, bool yes) { all.emplace_back(number, yes); });
  }
  std::sort(all.begin(), all.end());
  return all;
}

Questions::Known Questions::written(const Actions& actions) const {
  Known known;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kSetField) continue;
    for_each(action.field, action.value, action.bits,
             [&](std::uint32_t number, bool yes) { known[number] = yes; });
  }
  return known;
}

Packet Questions::packet(const std::vector<std::uint32_t>& yes) const {
  std::vector<bool> answers(questions_.size(), false);
  for (const std::uint32_t number : yes) answers[number] = true;
  Packet packet;
  for (std::size_t number = 0; number < questions_.size(); ++number) {
    const Question& question = questions_[number];
    const U128 lowest = question.bits & (~question.bits + 1);
    const U128 value = answers[number] ? question.wanted : question.wanted ^ lowest;
    if (value != 0) packet.set(question.field, packet.value(question.field) | value);
  }
  return packet;
}

}  // namespace greynic::verify
