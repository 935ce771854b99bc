#include "group_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "greynic/statistics/random.h"
#include "witness_search.h"

namespace greynic::causal {
namespace {

constexpr int kLeastBatch = 4;  // with fewer, a term after the other is as quick
constexpr std::size_t kLargestGroup = 48;
constexpr std::size_t kMostOfGroup = 3;  // of one group
constexpr double kTermsOfCause = 2.5;    // of a cause, before any test
constexpr double kSureOfGroup = 0.985;   // healing checks each term again
constexpr double kLikelyOfGroup = 0.5;
constexpr double kWorthProving = 0.5;  // chance that a batch proves the answer, whichever it is
constexpr double kLeastWorthProving = 0.02;  // of one answer
constexpr std::size_t kMostAnswers = 8;
constexpr double kLeastBetter = 1e-3;     // bits
constexpr double kProven = 1.0;           // log odds that terms alone are a wall
constexpr int kLeastBesideCheck = 6;      // a batch so large has room for groups beside the check
constexpr std::size_t kTestsOfCheck = 3;  // tests of it
constexpr double kUnlikely = 1e-7;        // beside the likeliest of its group
constexpr double kLeastGain = 0.04;       // bits; a test that tells less is not made
constexpr int kMostRounds = 8;
constexpr int kCandidates = 64;
constexpr std::size_t kNoCell = static_cast<std::size_t>(-1);
constexpr double kHealed[] = {0.5, 0.35, 0.2};  // share of a group's settings in a test

/// Tests of baseline and wall in the batch that heals the first groups; none where it is small.
std::size_t beside_check(int batch) { return batch < kLeastBesideCheck ? 0 : kTestsOfCheck; }

/// Settings of a group, by their places in it.
using Part = std::uint64_t;

struct Candidates {
  struct Possible {
    Part terms = 0;
    double before = 1.0;   ///< odds without any test
    double weight = 1.0;   ///< chance by all tests
    std::size_t cell = 0;  ///< those with one number answer the next batch alike, as it stands
  };
  struct Asked {
    Part healed = 0;
    Id id = 0;
  };
  std::vector<std::size_t> settings;
  std::vector<Possible> possible;
  std::vector<Asked> asked;
  std::size_t cells = 1;
};

class GroupSearch {
 public:
  GroupSearch(Session& session, Settings& settings, const Set& wall)
      : session_(session), settings_(settings), wall_(wall), random_(0x67726f757073) {}

  /// Each group healed.
  std::vector<Id> first_batch() {
    make_groups();
    std::vector<Id> batch;
    for (Candidates& group : groups_) {
      const Part whole = ~Part{0} >> (64 - group.settings.size());
      if (const auto id = healed(group, whole)) {
        group.asked.push_back({whole, *id});
        batch.push_back(*id);
      }
    }
    std::erase_if(groups_, [](const Candidates& group) { return group.asked.empty(); });
    return batch;
  }

  Result<Set> needed() {
    std::vector<Id> batch = first_batch();
    std::erase_if(batch, [&](Id id) { return session_.tests_of(id) > 0; });
    for (int round = 0; round < kMostRounds; ++round) {
      if (auto done = ask(batch); !done) return pass_on(done);
      if (session_.is_noisy(session_.id_of(settings_.wall()))) return Set();
      for (Candidates& group : groups_) learn(group);
      if (const Set terms = proven(); terms.any()) return terms;
      batch = next_batch();
      if (batch.empty()) break;
    }
    const Set terms = likely_terms(kSureOfGroup);
    batch = unconfirmed(terms);
    if (!batch.empty()) fill(batch, parts(terms));
    if (auto done = ask(batch); !done) return pass_on(done);
    return terms;
  }

 private:
  void make_groups() {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      if (wall_.test(i)) members.push_back(i);
    }
    const bool whole = wall_ == settings_.all();
    const auto batch = static_cast<std::size_t>(session_.options().batch) -
                       (whole ? beside_check(session_.options().batch) : 0);
    const std::size_t least = (members.size() + kLargestGroup - 1) / kLargestGroup;
    groups_.resize(std::min(members.size(), std::max(batch, least)));
    for (std::size_t i = 0; i < members.size(); ++i) {
      groups_[i * groups_.size() / members.size()].settings.push_back(members[i]);
    }
    const double one =
        kTermsOfCause / static_cast<double>(std::max<std::size_t>(members.size(), 5));
    for (Candidates& group : groups_) add_possible(group, 0, 0, 0, 1.0, one / (1.0 - one));
  }

  static void add_possible(Candidates& group, Part terms, std::size_t count, std::size_t from,
                           double weight, double odds) {
    group.possible.push_back({terms, weight, weight, 0});
    if (count == kMostOfGroup) return;
    for (std::size_t i = from; i < group.settings.size(); ++i) {
      add_possible(group, terms | Part{1} << i, count + 1, i + 1, weight * odds, odds);
    }
  }

  /// The wall without this part; nothing where that is forbidden.
  std::optional<Id> healed(const Candidates& group, Part part) {
    Set kept = wall_;
    for (std::size_t i = 0; i < group.settings.size(); ++i) {
      if (part >> i & 1) kept.reset(group.settings[i]);
    }
    return settings_.id_of(kept);
  }

  Result<void> ask(const std::vector<Id>& batch) {
    const auto most = static_cast<std::size_t>(session_.options().batch);
    for (std::size_t begin = 0; begin < batch.size(); begin += most) {
      const std::span<const Id> some(batch.data() + begin, std::min(most, batch.size() - begin));
      if (auto done = session_.measure(some, "healing groups of settings"); !done) return done;
    }
    return {};
  }

  /// A part that holds a term heals the wall, one that holds none does not.
  void learn(Candidates& group) const {
    double best = -1e300;
    for (Candidates::Possible& one : group.possible) {
      one.weight = std::log(one.before);
      for (const Candidates::Asked& asked : group.asked) {
        if ((asked.healed & one.terms) == 0) one.weight += session_.evidence(asked.id);
      }
      best = std::max(best, one.weight);
    }
    double all = 0.0;
    for (Candidates::Possible& one : group.possible)
      all += one.weight = std::exp(one.weight - best);
    for (Candidates::Possible& one : group.possible) one.weight /= all;
    std::erase_if(group.possible, [](const auto& one) { return one.weight < kUnlikely; });
    std::ranges::sort(group.possible, std::greater(), &Candidates::Possible::weight);
  }

  static bool is_settled(const Candidates& group) {
    return group.possible.front().weight >= kSureOfGroup;
  }

  /// The likeliest of each group that is at least so likely.
  [[nodiscard]] Set likely_terms(double least) const {
    Set terms;
    for (const Candidates& group : groups_) {
      if (group.possible.front().weight < least) continue;
      for (std::size_t i = 0; i < group.settings.size(); ++i) {
        if (group.possible.front().terms >> i & 1) terms.set(group.settings[i]);
      }
    }
    return terms;
  }

  /// The parts whose answers tell most, each beside those that were chosen before it.
  std::vector<Id> next_batch() {
    std::vector<Id> batch;
    for (Candidates& group : groups_) {
      group.cells = 1;
      for (Candidates::Possible& one : group.possible) one.cell = 0;
    }
    for (const Id id : proofs()) batch.push_back(id);
    while (std::ssize(batch) < session_.options().batch) {
      Candidates* best_group = nullptr;
      Candidates::Asked best;
      double most = kLeastGain;
      for (Candidates& group : groups_) {
        if (is_settled(group)) continue;
        for (int tries = 0; tries < kCandidates; ++tries) {
          const Part part = candidate(group, tries);
          const double gain = part == 0 ? 0.0 : bits_of(group, part);
          if (gain <= most) continue;
          const auto id = healed(group, part);
          if (!id || std::ranges::find(batch, *id) != batch.end()) continue;
          best_group = &group;
          best = {part, *id};
          most = gain;
        }
      }
      if (best_group == nullptr) break;
      improve(*best_group, best, most, batch);
      part_cells(*best_group, best.healed);
      best_group->asked.push_back(best);
      session_.believe(best.id, chance_of_wall(*best_group, best.healed));
      batch.push_back(best.id);
    }
    if (batch.empty()) return batch;
    // What room is left asks for what is likely to be asked last.
    const Set likely = likely_terms(kLikelyOfGroup);
    fill(batch, unconfirmed(likely));
    fill(batch, parts(likely));
    return batch;
  }

  /// All terms as one answer or the other has them, the likeliest first.
  struct Answer {
    double chance = 1.0;
    std::vector<Part> terms;  ///< of each group
  };
  [[nodiscard]] std::vector<Answer> likely_answers() const {
    std::vector<Answer> answers = {{}};
    for (const Candidates& group : groups_) {
      std::vector<Answer> longer;
      for (const Answer& answer : answers) {
        for (std::size_t i = 0; i < std::min(group.possible.size(), kMostAnswers); ++i) {
          longer.push_back(answer);
          longer.back().chance *= group.possible[i].weight;
          longer.back().terms.push_back(group.possible[i].terms);
        }
      }
      std::ranges::stable_sort(longer, std::greater(), &Answer::chance);
      if (longer.size() > kMostAnswers) longer.resize(kMostAnswers);
      answers = std::move(longer);
    }
    return answers;
  }

  [[nodiscard]] Set terms_of(const Answer& answer) const {
    Set terms;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t i = 0; i < groups_[g].settings.size(); ++i) {
        if (answer.terms[g] >> i & 1) terms.set(groups_[g].settings[i]);
      }
    }
    return terms;
  }

  /// A likely answer whose terms alone are a wall, and none of them can be healed without clearing it: then
  /// no other setting matters, however little is known of its group.
  [[nodiscard]] Set proven() {
    for (const Answer& answer : likely_answers()) {
      const Set terms = terms_of(answer);
      if (terms.none() || !unconfirmed(terms).empty()) continue;
      const auto id = alone(terms);
      if (id && session_.evidence(*id) > kProven && each_is_needed(answer)) return terms;
    }
    return Set();
  }

  [[nodiscard]] bool each_is_needed(const Answer& answer) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (Part left = answer.terms[g]; left != 0; left &= left - 1) {
        const auto id = healed(groups_[g], left & ~(left - 1));
        if (id && session_.evidence(*id) > 0.0) return false;
      }
    }
    return true;
  }

  /// Where few answers are left, the tests that prove each of them if it is right also part them, and
  /// save a batch. Nothing where they do not fit, or where too much else is likely.
  std::vector<Id> proofs() {
    std::vector<Id> batch;
    if (std::ranges::all_of(groups_, is_settled)) return batch;
    double chance = 0.0;
    for (const Answer& answer : likely_answers()) {
      if (answer.chance < kLeastWorthProving) break;
      const Set terms = terms_of(answer);
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
      chance += answer.chance;
    }
    if (chance < kWorthProving) return {};
    for (Candidates& group : groups_) {
      for (const Candidates::Asked& asked : group.asked) {
        if (std::ranges::find(batch, asked.id) != batch.end()) part_cells(group, asked.healed);
      }
    }
    return batch;
  }

  /// Settings one by one in or out of a test, as long as that tells more.
  void improve(const Candidates& group, Candidates::Asked& best, double most,
               const std::vector<Id>& batch) {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < group.settings.size(); ++i) {
        const Part part = best.healed ^ (Part{1} << i);
        const double gain = part == 0 ? 0.0 : bits_of(group, part);
        if (gain <= most + kLeastBetter) continue;
        const auto id = healed(group, part);
        if (!id || std::ranges::find(batch, *id) != batch.end()) continue;
        best = {part, *id};
        most = gain;
        better = true;
      }
    }
  }

  /// Each cell in two, by the answer of one more test.
  static void part_cells(Candidates& group, Part part) {
    std::vector<std::size_t> fresh(2 * group.cells, kNoCell);
    std::size_t count = 0;
    for (Candidates::Possible& one : group.possible) {
      std::size_t& cell = fresh[2 * one.cell + ((one.terms & part) != 0 ? 1 : 0)];
      if (cell == kNoCell) cell = count++;
      one.cell = cell;
    }
    group.cells = count;
  }

  /// One of the likely settings alone, then some of them by chance.
  Part candidate(const Candidates& group, int tries) {
    Part open = 0;
    for (const Candidates::Possible& one : group.possible) {
      if (one.weight > kUnlikely * 100) open |= one.terms;
    }
    Part part = 0;
    const double share = kHealed[tries % std::size(kHealed)];
    int place = 0;
    for (Part left = open; left != 0; left &= left - 1, ++place) {
      const Part lowest = left & ~(left - 1);
      const bool alone = tries < std::popcount(open) && tries < kCandidates / 4;
      if (alone ? place == tries : random_.uniform() < share) part |= lowest;
    }
    return part;
  }

  /// How much the answer tells beside those of the tests that are chosen already.
  static double bits_of(const Candidates& group, Part part) {
    struct Cell {
      double clear = 0.0, wall = 0.0;
    };
    std::vector<Cell> cells(group.cells);
    for (const Candidates::Possible& one : group.possible) {
      Cell& cell = cells[one.cell];
      ((one.terms & part) != 0 ? cell.clear : cell.wall) += one.weight;
    }
    double bits = 0.0;
    for (const Cell& cell : cells) {
      const double both = cell.clear + cell.wall;
      for (const double one : {cell.clear, cell.wall}) {
        if (one > 0.0) bits -= one * std::log2(one / both);
      }
    }
    return bits;
  }

  static double chance_of_wall(const Candidates& group, Part part) {
    double wall = 0.0;
    for (const Candidates::Possible& one : group.possible) {
      if ((one.terms & part) == 0) wall += one.weight;
    }
    return wall;
  }

  [[nodiscard]] std::optional<Id> alone(const Set& terms) {
    return settings_.id_of(settings_.closure(terms, wall_, settings_.grow({}, wall_)));
  }

  /// The terms alone, and the wall without each, where that was not tested yet.
  std::vector<Id> unconfirmed(const Set& terms) {
    std::vector<Id> batch;
    if (terms.none()) return batch;
    const auto all_terms = alone(terms);
    if (all_terms && session_.tests_of(*all_terms) == 0) batch.push_back(*all_terms);
    for (Candidates& group : groups_) {
      for (std::size_t i = 0; i < group.settings.size(); ++i) {
        if (!terms.test(group.settings[i])) continue;
        const Part part = Part{1} << i;
        const auto id = healed(group, part);
        if (!id || session_.tests_of(*id) > 0) continue;
        batch.push_back(*id);
        if (std::ranges::find(group.asked, part, &Candidates::Asked::healed) == group.asked.end())
          group.asked.push_back({part, *id});
      }
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
  std::vector<Candidates> groups_;
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

Result<Set> needed_settings(Session& session, Settings& settings, const Set& wall) {
  if (session.options().batch < kLeastBatch || session.waits() || wall.count() < 2) return Set();
  return GroupSearch(session, settings, wall).needed();
}

}  // namespace greynic::causal
