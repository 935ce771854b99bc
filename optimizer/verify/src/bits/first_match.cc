#include "src/bits/first_match.h"

#include <algorithm>

namespace greynic::verify {
namespace {

constexpr std::size_t kMostTails = 16'000'000;  // of rules; of lists that are kept, twice as many

}  // namespace

std::uint32_t FirstMatch::tail(const Tail& made) {
  const std::uint64_t hash = mixed(mixed(mixed(made.bit, made.one ? 1 : 0), made.next), made.value);
  const auto fresh = static_cast<std::uint32_t>(tails_.size());
  const std::uint32_t number =
      numbers_.find_or_add(hash, fresh, [&](std::uint32_t other) { return tails_[other] == made; });
  if (number == fresh) {
    tails_.push_back(made);
    seen_.push_back(0);
  }
  return number;
}

void FirstMatch::add(const Asked& asked, std::uint32_t value) {
  if (tails_.size() > kMostTails) diagrams_.give_up();
  if (diagrams_.ran_out()) return;
  std::uint32_t at = tail({kEnd, false, 0, value});
  for (auto bit = asked.rbegin(); bit != asked.rend(); ++bit) {
    at = tail({bit->first, bit->second, at, value});
  }
  rules_.push_back(at);
}

FunctionId FirstMatch::take(std::uint32_t missed) {
  missed_ = missed;
  const FunctionId made = split(std::move(rules_));
  rules_.clear();
  tails_.clear();
  numbers_.clear();
  seen_.clear();
  now_ = 0;
  done_.clear();
  kept_ = 0;
  return made;
}

/// Leaves out what decides nothing, and gives rules whose order is nothing one order.
void FirstMatch::tidy(List& list) {
  ++now_;
  std::size_t kept = 0;
  bool all = false;
  for (std::size_t i = 0; i < list.size() && !all; ++i) {
    const std::uint32_t at = list[i];
    if (seen_[at] == now_) continue;
    seen_[at] = now_;
    list[kept++] = at;
    all = tails_[at].bit == kEnd;
  }
  list.resize(kept);
  while (all && list.size() > 1 &&
         tails_[list[list.size() - 2]].value == tails_[list.back()].value) {
    list.erase(list.end() - 2);
  }
  const auto end = list.end() - (all ? 1 : 0);
  for (auto begin = list.begin(); begin != end;) {
    const auto other = std::find_if(
        begin, end, [&](std::uint32_t at) { return tails_[at].value != tails_[*begin].value; });
    std::sort(begin, other);
    begin = other;
  }
}

FunctionId FirstMatch::split(List list) {
  tidy(list);
  if (list.empty()) return diagrams_.leaf(missed_);
  if (tails_[list.front()].bit == kEnd) return diagrams_.leaf(tails_[list.front()].value);
  if (const auto known = done_.find(list); known != done_.end()) return known->second;
  diagrams_.count_steps(list.size());
  kept_ += list.size();
  if (kept_ > 2 * kMostTails) diagrams_.give_up();
  if (diagrams_.ran_out()) return BitDiagrams::kNone;
  const FunctionId made = split_at_first_bit(list);
  done_.emplace(std::move(list), made);
  return made;
}

FunctionId FirstMatch::split_at_first_bit(const List& list) {
  std::uint32_t bit = kEnd;   // the first that any of them asks for
  std::uint32_t next = kEnd;  // the first that another asks for
  std::size_t asker = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::uint32_t here = tails_[list[i]].bit;
    if (here < bit) {
      next = bit;
      bit = here;
      asker = i;
    } else {
      next = std::min(next, here);
    }
  }
  if (next > bit) return split_at_run(list, asker, next);
  FunctionId sides[2];
  for (const bool one : {false, true}) {
    List there;
    there.reserve(list.size());
    for (const std::uint32_t at : list) {
      const Tail& asks = tails_[at];
      if (asks.bit != bit) {
        there.push_back(at);
      } else if (asks.one == one) {
        there.push_back(asks.next);
      }
    }
    sides[one ? 1 : 0] = split(std::move(there));
  }
  return diagrams_.ask(bit, sides[0], sides[1]);
}

/// One rule asks for several bits before any other asks: packets that miss one of them meet the others.
FunctionId FirstMatch::split_at_run(const List& list, std::size_t asker, std::uint32_t end) {
  List others = list;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(asker));
  List there = list;
  std::vector<std::pair<std::uint32_t, bool>> run;
  std::uint32_t& at = there[asker];
  for (; tails_[at].bit < end; at = tails_[at].next) {
    run.emplace_back(tails_[at].bit, tails_[at].one);
  }
  const FunctionId missed = split(std::move(others));
  FunctionId made = split(std::move(there));
  for (auto asked = run.rbegin(); asked != run.rend(); ++asked) {
    const auto [bit, one] = *asked;
    made = one ? diagrams_.ask(bit, missed, made) : diagrams_.ask(bit, made, missed);
  }
  return made;
}

}  // namespace greynic::verify
