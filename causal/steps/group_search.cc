#include "group_search.h"

#include <algorithm>
#include <cmath>

#include "greynic/statistics/random.h"
#include "needed_sets.h"
#include "part_choice.h"
#include "witness_search.h"

namespace greynic::causal {
namespace {

constexpr int kLeastBatch = 4;  // with fewer, a term after the other is as quick
constexpr std::size_t kLargestGroup = 48;
constexpr double kSure = 0.985;  // of what is needed: healing checks each term again
constexpr double kLikely = 0.5;
constexpr double kWorthProving = 0.3;  // chance that a batch proves the answer, whichever it is
constexpr double kAlmostSure = 0.9;    // of one answer: its terms alone are tested twice
constexpr double kContradicted = 5.0;  // log odds of tests against the likeliest answer
constexpr double kLeastWorthProving = 0.02;  // of one answer
constexpr std::size_t kMostAnswers = 8;
constexpr double kProven = 1.0;           // log odds that terms alone are a wall
constexpr int kLeastBesideCheck = 6;      // a batch so large has room for groups beside the check
constexpr std::size_t kTestsOfCheck = 2;  // tests of it
constexpr double kLeastGain = 0.04;       // bits; a test that tells less is not made
constexpr int kMostRounds = 8;
constexpr double kSurelyWall = 6.2;     // log odds of the terms alone that need no further test,
constexpr double kSurelyHealed = -4.8;  // and of a healed wall
constexpr std::size_t kMostAtOnce = 4;  // tests of one configuration

/// Tests of baseline and wall in the batch that heals the first groups; none where it is small.
std::size_t beside_check(int batch) { return batch < kLeastBesideCheck ? 0 : kTestsOfCheck; }

class GroupSearch {
 public:
  GroupSearch(Session& session, Settings& settings, const Set& wall)
      : session_(session), settings_(settings), wall_(wall), random_(0x67726f757073), sets_(wall) {}

  /// Each group healed.
  std::vector<Id> first_batch() {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      if (wall_.test(i)) members.push_back(i);
    }
    const bool whole = wall_ == settings_.all();
    const auto batch = static_cast<std::size_t>(session_.options().batch) -
                       (whole ? beside_check(session_.options().batch) : 0);
    const std::size_t least = (members.size() + kLargestGroup - 1) / kLargestGroup;
    std::vector<Set> groups(std::min(members.size(), std::max(batch, least)));
    for (std::size_t i = 0; i < members.size(); ++i) {
      groups[i * groups.size() / members.size()].set(members[i]);
    }
    std::vector<Id> ids;
    for (const Set& group : groups) {
      if (const auto test = healed(group)) add(*test, ids);
    }
    return ids;
  }

  Result<Needed> needed() {
    std::vector<Id> batch = first_batch();
    std::erase_if(batch, [&](Id id) { return session_.tests_of(id) > 0; });
    for (int round = 0; round < kMostRounds; ++round) {
      if (auto done = ask(batch); !done) return pass_on(done);
      if (session_.is_noisy(session_.id_of(settings_.wall()))) return Needed();
      learn();
      if (sets_.likely().empty()) return Needed();
      // No one set explains the tests: the wall has several causes, and these settings are of all of them.
      if (sets_.against() > kContradicted) return Needed{.settings = likely_terms(kSure)};
      const Needed found = proven();
      if (found.settings.any()) {
        batch = doubtful(found.settings);
        if (batch.empty() || asked_again_) return found;
        asked_again_ = true;
        continue;
      }
      batch = next_batch();
      if (batch.empty()) break;
    }
    const Set terms = likely_terms(kSure);
    batch = unconfirmed(terms);
    if (!batch.empty()) fill(batch, parts(terms));
    if (auto done = ask(batch); !done) return pass_on(done);
    return Needed{.settings = terms};
  }

 private:
  struct Asked {
    Set healed;
    Id id = 0;
  };

  /// The wall without these settings, and without what must be healed with them; nothing where that is all or
  /// forbidden.
  std::optional<Asked> healed(const Set& part) {
    const Set kept = settings_.without(~wall_ | part);
    const auto id = kept.any() ? settings_.id_of(kept) : std::nullopt;
    if (!id) return std::nullopt;
    return Asked{wall_ & ~kept, *id};
  }

  void add(const Asked& test, std::vector<Id>& batch) {
    if (std::ranges::find(asked_, test.id, &Asked::id) == asked_.end()) asked_.push_back(test);
    if (std::ranges::find(batch, test.id) == batch.end()) batch.push_back(test.id);
  }

  Result<void> ask(const std::vector<Id>& batch) {
    const auto most = static_cast<std::size_t>(session_.options().batch);
    for (std::size_t begin = 0; begin < batch.size(); begin += most) {
      const std::span<const Id> some(batch.data() + begin, std::min(most, batch.size() - begin));
      if (auto done = session_.measure(some, "healing groups of settings"); !done) return done;
    }
    return {};
  }

  void learn() {
    std::vector<HealedTest> tests;
    for (const Asked& one : asked_) {
      if (session_.tests_of(one.id) > 0) tests.push_back({one.healed, session_.evidence(one.id)});
    }
    sets_.learn(tests, random_);
  }

  [[nodiscard]] bool is_settled() const { return sets_.likely().front().chance >= kSure; }

  /// Settings that are needed with this chance.
  [[nodiscard]] Set likely_terms(double least) const {
    std::vector<double> chances(settings_.size(), 0.0);
    for (const NeededSet& one : sets_.likely()) {
      for (std::size_t i = 0; i < one.count; ++i) chances[one.members[i]] += one.chance;
    }
    Set terms;
    for (std::size_t i = 0; i < chances.size(); ++i) terms.set(i, chances[i] >= least);
    return terms;
  }

  /// The parts whose answers tell most, each beside those that were chosen before it.
  std::vector<Id> next_batch() {
    std::vector<Id> batch;
    if (is_settled()) return batch;
    PartChoice choice(sets_.likely(), random_);
    for (const Id id : proofs()) batch.push_back(id);
    for (const Asked& one : asked_) {
      if (std::ranges::find(batch, one.id) != batch.end()) choice.add(one.healed);
    }
    while (std::ssize(batch) < session_.options().batch) {
      const auto test = healed(choice.best());
      if (!test || choice.bits_of(test->healed) < kLeastGain) break;
      if (std::ranges::find(batch, test->id) != batch.end()) break;
      choice.add(test->healed);
      session_.believe(test->id, choice.chance_of_wall(test->healed));
      add(*test, batch);
    }
    if (batch.empty()) return batch;
    // What room is left asks for what is likely to be asked last.
    const Set likely = likely_terms(kLikely);
    fill(batch, unconfirmed(likely));
    fill(batch, parts(likely));
    return batch;
  }

  /// A likely answer whose terms alone are a wall, and none of them can be healed without clearing it: then
  /// no other setting matters, however little is known of it.
  [[nodiscard]] Needed proven() {
    const std::vector<NeededSet>& likely = sets_.likely();
    for (std::size_t i = 0; i < std::min(likely.size(), kMostAnswers); ++i) {
      const Set terms = likely[i].settings();
      if (terms.none() || !unconfirmed(terms).empty()) continue;
      const auto test = alone(terms);
      if (test && session_.evidence(test->id) > kProven && each_is_needed(terms))
        return {.settings = terms, .confidence = likely[i].chance};
    }
    return {};
  }

  /// What the search would ask again after this one, in one batch: each several times, as far as there is room.
  std::vector<Id> doubtful(const Set& terms) {
    std::vector<Id> batch;
    const auto test = alone(terms);
    if (test && session_.evidence(test->id) < kSurelyWall) batch.push_back(test->id);
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const auto healed_one = terms.test(i) ? healed(Set().set(i)) : std::nullopt;
      if (healed_one && session_.evidence(healed_one->id) > kSurelyHealed)
        batch.push_back(healed_one->id);
    }
    const std::vector<Id> open = parts(terms);
    const std::size_t asked_last = terms.count() <= kFewTerms ? kFewTerms : 2;
    if (batch.empty()) return batch;
    batch.insert(batch.end(), open.begin(),
                 open.begin() + static_cast<std::ptrdiff_t>(std::min(open.size(), asked_last)));
    const std::size_t once = batch.size();
    const auto room = static_cast<std::size_t>(session_.options().batch);
    for (std::size_t i = 0; batch.size() < std::min(room, kMostAtOnce * once); ++i)
      batch.push_back(batch[i]);
    return batch;
  }

  [[nodiscard]] bool each_is_needed(const Set& terms) {
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const auto test = terms.test(i) ? healed(Set().set(i)) : std::nullopt;
      if (test && session_.evidence(test->id) > 0.0) return false;
    }
    return true;
  }

  /// Where few answers are left, the tests that prove each of them if it is right also part them, and
  /// save a batch. Nothing where they do not fit, or where too much else is likely.
  std::vector<Id> proofs() {
    std::vector<Id> batch;
    double chance = 0.0;
    const std::vector<NeededSet>& likely = sets_.likely();
    for (std::size_t i = 0; i < std::min(likely.size(), kMostAnswers); ++i) {
      if (likely[i].chance < kLeastWorthProving) break;
      const Set terms = likely[i].settings();
      std::vector<Id> wanted = unconfirmed(terms);
      std::vector<Id> asked_last = parts(terms);
      asked_last.resize(std::min(asked_last.size(), terms.count() <= kFewTerms ? kFewTerms : 2));
      wanted.insert(wanted.end(), asked_last.begin(), asked_last.end());
      std::vector<Id> longer = batch;
      for (const Id id : wanted) {
        if (std::ranges::find(longer, id) == longer.end()) longer.push_back(id);
      }
      if (std::ssize(longer) > session_.options().batch) continue;
      batch = std::move(longer);
      chance += likely[i].chance;
      const bool twice = i == 0 && likely[i].chance > kAlmostSure && !batch.empty();
      // One test of a wall may have stalled, so two say more.
      if (twice && std::ssize(batch) < session_.options().batch) batch.push_back(batch.front());
    }
    return chance < kWorthProving ? std::vector<Id>() : batch;
  }

  /// Nothing but these, and what they need.
  [[nodiscard]] std::optional<Asked> alone(const Set& terms) {
    const Set kept = settings_.closure(terms, wall_, settings_.grow({}, wall_));
    const auto id = settings_.id_of(kept);
    return id ? std::optional(Asked{wall_ & ~kept, *id}) : std::nullopt;
  }

  /// The terms alone, and the wall without each, where that was not tested yet.
  std::vector<Id> unconfirmed(const Set& terms) {
    std::vector<Id> batch;
    if (terms.none()) return batch;
    const auto all_terms = alone(terms);
    if (all_terms && session_.tests_of(all_terms->id) == 0) add(*all_terms, batch);
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const auto test = terms.test(i) ? healed(Set().set(i)) : std::nullopt;
      if (test && session_.tests_of(test->id) == 0) add(*test, batch);
    }
    return batch;
  }

  /// The terms without each one, all else as in the baseline: these are asked in the end, too, the first
  /// and the last of them in any case.
  std::vector<Id> parts(const Set& terms) {
    std::vector<Id> batch;
    for (std::size_t i = 0; i < settings_.size() && terms.count() > 1; ++i) {
      if (!terms.test(i)) continue;
      const auto id = settings_.id_of(Set(terms).reset(i));
      if (id && session_.tests_of(*id) == 0) batch.push_back(*id);
    }
    if (batch.size() > 1) std::swap(batch[1], batch.back());
    return batch;
  }

  /// What is not there yet, as far as there is room.
  void fill(std::vector<Id>& batch, const std::vector<Id>& more) const {
    for (const Id id : more) {
      const bool known = std::ranges::find(batch, id) != batch.end();
      if (!known && std::ssize(batch) < session_.options().batch) batch.push_back(id);
    }
  }

  Session& session_;
  Settings& settings_;
  const Set& wall_;
  statistics::Random random_;
  NeededSets sets_;
  std::vector<Asked> asked_;
  bool asked_again_ = false;
};

}  // namespace

std::vector<Id> first_groups(Session& session, Settings& settings) {
  const int batch = session.options().batch;
  if (beside_check(batch) == 0 || settings.size() < 2) return {};
  const Set all = settings.all();
  std::vector<Id> groups = GroupSearch(session, settings, all).first_batch();
  const std::size_t room = static_cast<std::size_t>(batch) - beside_check(batch);
  if (groups.size() > room) groups.resize(room);
  return groups;
}

Result<Needed> needed_settings(Session& session, Settings& settings, const Set& wall) {
  if (session.options().batch < kLeastBatch || session.waits() || wall.count() < 2) return Needed();
  return GroupSearch(session, settings, wall).needed();
}

}  // namespace greynic::causal
