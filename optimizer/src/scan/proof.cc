#include "proof.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "packed_table.h"
#include "src/key_table.h"
#include "src/problem.h"

namespace greynic::optimizer {
namespace {

constexpr int kMostDepth = 64;             // as core's look_up: a longer chain of jumps is a loop
constexpr std::size_t kMostSplits = 4096;  // of one rule, to see it covered by several others

using Members = std::vector<std::uint32_t>;

/// What holds for one table under one region: input rules and layout rules, both cut to the region.
struct Scene {
  Scene(std::size_t words) : inputs(words), entries(words) {}
  Ternaries inputs;
  std::vector<std::uint32_t> input;         ///< row of the Problem; ascending, so it is the rank
  std::vector<std::uint32_t> input_effect;  ///< by row of inputs
  Ternaries entries;
  std::vector<std::uint32_t> position;  ///< of the matcher
  std::vector<std::uint32_t> effect;
  std::vector<std::uint32_t> target;
  std::vector<std::uint32_t> home;     ///< by input: first position that contains it; kNone
  std::vector<std::uint32_t> witness;  ///< by entry: first input of its effect containing it
};

void add_within(Ternaries& out, const Word* value, const Word* mask, const Word* region_value,
                const Word* region_mask) {
  Word* const new_value = out.value.add();
  Word* const new_mask = out.mask.add();
  for (std::size_t w = 0; w < out.words(); ++w) {
    new_value[w] = value[w] | region_value[w];
    new_mask[w] = mask[w] | region_mask[w];
  }
}

/// Rows of a scene by what `key` says of them beside their mask.
template <typename Key>
std::vector<Members> grouped(const Ternaries& rows, Key key) {
  std::vector<Members> groups;
  ByMask<std::map<std::uint32_t, std::size_t>> known;
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    const auto [place, fresh] = known[mask_of(rows, row)].try_emplace(key(row), groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(row);
  }
  return groups;
}

bool mask_within(const Word* inner, const Word* outer, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if ((inner[w] & ~outer[w]) != 0) return false;
  }
  return true;
}

/// Calls visit(wide row, narrow row) for each pair in which the wide one contains the narrow one.
template <typename Visit>
void for_containing(const Ternaries& wide, const std::vector<Members>& wide_groups,
                    const Ternaries& narrow, const std::vector<Members>& narrow_groups,
                    Visit visit) {
  const std::size_t words = wide.words();
  for (const Members& outer : wide_groups) {
    const Word* mask = wide.mask[outer.front()];
    std::unordered_multimap<std::uint64_t, std::uint32_t> table;
    for (const Members& inner : narrow_groups) {
      if (!mask_within(mask, narrow.mask[inner.front()], words)) continue;
      if (table.empty()) {
        for (const std::uint32_t row : outer) {
          table.emplace(hash_under(wide.value[row], mask, words), row);
        }
      }
      for (const std::uint32_t row : inner) {
        const auto [begin, end] = table.equal_range(hash_under(narrow.value[row], mask, words));
        for (auto found = begin; found != end; ++found) {
          if (matches(wide.value[found->second], mask, narrow.value[row], words)) {
            visit(found->second, row);
          }
        }
      }
    }
  }
}

/// Do the entries at positions below `limit` together contain this ternary?
class Cover {
 public:
  Cover(const Scene& scene, std::uint32_t limit) : scene_(scene), limit_(limit) {}

  bool contains_all(const Word* value, const Word* mask) {
    Members candidates;
    for (std::uint32_t entry = 0; entry < scene_.entries.size(); ++entry) {
      if (scene_.position[entry] < limit_) candidates.push_back(entry);
    }
    const std::size_t words = scene_.entries.words();
    return split({value, value + words}, {mask, mask + words}, candidates);
  }

 private:
  bool split(std::vector<Word> value, std::vector<Word> mask, const Members& among) {
    const std::size_t words = mask.size();
    Members near;
    for (const std::uint32_t entry : among) {
      const Word* entry_value = scene_.entries.value[entry];
      const Word* entry_mask = scene_.entries.mask[entry];
      if (contains(entry_value, entry_mask, value.data(), mask.data(), words)) return true;
      if (overlap(entry_value, entry_mask, value.data(), mask.data(), words)) near.push_back(entry);
    }
    if (near.empty() || ++splits_ > kMostSplits) return false;
    for (std::size_t w = 0; w < words; ++w) {
      const Word open = scene_.entries.mask[near.front()][w] & ~mask[w];
      if (open == 0) continue;
      const Word bit = open & (~open + 1);
      mask[w] |= bit;
      if (!split(value, mask, near)) return false;
      value[w] |= bit;
      return split(std::move(value), std::move(mask), near);
    }
    return false;  // not reached: an entry that overlaps and contains not has an open bit
  }

  const Scene& scene_;
  std::uint32_t limit_;
  std::size_t splits_ = 0;
};

class Prover {
 public:
  Prover(const Problem& problem, const std::map<std::uint32_t, PackedTable>& tables)
      : problem_(problem), tables_(tables) {}

  Result<void> prove_table(std::uint32_t table, const std::vector<Word>& region_value,
                           const std::vector<Word>& region_mask, const Members& inputs, int depth) {
    if (depth > kMostDepth) return refuse(table, "its jumps form a loop");
    const Members deciding = without_shadowed(region_value, region_mask, inputs);
    Scene scene = make_scene(tables_.at(table), region_value, region_mask, deciding);
    ++proof.tables;
    proof.pairs += scene.inputs.size() * scene.entries.size();
    const auto by_position = grouped(scene.entries, [&](auto row) { return scene.position[row]; });
    const auto by_mask = grouped(scene.inputs, [](auto) { return 0U; });
    find_homes(scene, by_position, by_mask);
    if (auto done = check_missed(scene, table); !done) return done;
    if (auto done = check_witnesses(scene, by_position, table); !done) return done;
    if (auto done = check_order(scene, by_position, table); !done) return done;
    return follow_jumps(scene, by_position, by_mask, depth);
  }

  Proof proof;

 private:
  static tl::unexpected<Error> refuse(std::uint32_t table, std::string_view why) {
    return fail(ErrorCode::kInternal,
                fmt::format("the layout cannot be proven: table {}: {}", table, why));
  }

  [[nodiscard]] std::string shown(const Ternaries& rows, std::uint32_t row) const {
    return to_string(problem_.columns.unpack(rows.value[row], rows.mask[row]));
  }

  /// Leaves out inputs that one input of a smaller rank contains in the region: they decide
  /// nothing.
  [[nodiscard]] Members without_shadowed(const std::vector<Word>& region_value,
                                         const std::vector<Word>& region_mask,
                                         const Members& inputs) const {
    Ternaries rows(problem_.rows.words());
    for (const std::uint32_t row : inputs) {
      add_within(rows, problem_.rows.value[row], problem_.rows.mask[row], region_value.data(),
                 region_mask.data());
    }
    const auto groups = grouped(rows, [](auto) { return 0U; });
    std::vector<bool> shadowed(inputs.size(), false);
    for_containing(rows, groups, rows, groups, [&](auto wide, auto narrow) {
      if (wide < narrow) shadowed[narrow] = true;  // inputs ascend, so a row's number is its rank
    });
    Members deciding;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!shadowed[i]) deciding.push_back(inputs[i]);
    }
    return deciding;
  }

  Scene make_scene(const PackedTable& table, const std::vector<Word>& region_value,
                   const std::vector<Word>& region_mask, const Members& inputs) const {
    const std::size_t words = problem_.rows.words();
    Scene scene(words);
    for (const std::uint32_t row : inputs) {
      add_within(scene.inputs, problem_.rows.value[row], problem_.rows.mask[row],
                 region_value.data(), region_mask.data());
      scene.input.push_back(row);
      scene.input_effect.push_back(problem_.effect[row]);
    }
    for (std::uint32_t row = 0; row < table.rows.size(); ++row) {
      if (!overlap(table.rows.value[row], table.rows.mask[row], region_value.data(),
                   region_mask.data(), words)) {
        continue;
      }
      add_within(scene.entries, table.rows.value[row], table.rows.mask[row], region_value.data(),
                 region_mask.data());
      scene.position.push_back(table.matcher[row]);
      scene.effect.push_back(table.effect[row]);
      scene.target.push_back(table.target[row]);
    }
    scene.home.assign(scene.inputs.size(), kNone);
    scene.witness.assign(scene.entries.size(), kNone);
    return scene;
  }

  static void find_homes(Scene& scene, const std::vector<Members>& entries,
                         const std::vector<Members>& inputs) {
    for_containing(scene.entries, entries, scene.inputs, inputs, [&](auto entry, auto input) {
      scene.home[input] = std::min(scene.home[input], scene.position[entry]);
    });
    for_containing(scene.inputs, inputs, scene.entries, entries, [&](auto input, auto entry) {
      if (scene.target[entry] != kNone || scene.input_effect[input] != scene.effect[entry]) return;
      scene.witness[entry] = std::min(scene.witness[entry], scene.input[input]);
    });
  }

  Result<void> check_missed(const Scene& scene, std::uint32_t table) const {
    for (std::uint32_t row = 0; row < scene.inputs.size(); ++row) {
      if (scene.home[row] != kNone) continue;
      if (!Cover(scene, kNone).contains_all(scene.inputs.value[row], scene.inputs.mask[row])) {
        return refuse(table, fmt::format("packets of {} can miss it", shown(scene.inputs, row)));
      }
    }
    return {};
  }

  Result<void> check_witnesses(const Scene& scene, const std::vector<Members>& groups,
                               std::uint32_t table) const {
    for (const Members& group : groups) {
      std::set<std::vector<Word>> seen;
      for (const std::uint32_t row : group) {
        const Word* value = scene.entries.value[row];
        if (!seen.emplace(value, value + scene.entries.words()).second) {
          return refuse(table, fmt::format("one matcher has {} twice", shown(scene.entries, row)));
        }
        if (scene.target[row] == kNone && scene.witness[row] == kNone) {
          return refuse(table, fmt::format("no input rule does what the rule {} does",
                                           shown(scene.entries, row)));
        }
      }
    }
    return {};
  }

  /// Claim 2 of the header, by joining input rules of equal mask and home with every matcher that
  /// is tried no later than that home.
  Result<void> check_order(const Scene& scene, const std::vector<Members>& entry_groups,
                           std::uint32_t table) const {
    const auto input_groups = grouped(scene.inputs, [&](auto row) { return scene.home[row]; });
    const auto rank_of_input = [&](std::uint32_t row) { return scene.input[row]; };
    const auto rank_of_entry = [&](std::uint32_t row) { return scene.witness[row]; };
    struct Joined {
      std::uint32_t inputs;
      std::uint32_t entries;
    };
    ByMask<std::vector<Joined>> joins;
    std::vector<Members> finals;
    std::vector<std::vector<Word>> masks_of_finals;
    for (const Members& group : entry_groups) {
      Members rows;
      for (const std::uint32_t row : group) {
        if (scene.target[row] == kNone) rows.push_back(row);
      }
      if (rows.empty()) continue;
      masks_of_finals.push_back(mask_of(scene.entries, rows.front()));
      finals.push_back(std::move(rows));
    }
    for (std::uint32_t i = 0; i < input_groups.size(); ++i) {
      const std::uint32_t input = input_groups[i].front();
      const std::vector<Word> mask = mask_of(scene.inputs, input);
      for (std::uint32_t e = 0; e < finals.size(); ++e) {
        if (scene.home[input] < scene.position[finals[e].front()]) continue;
        joins[common(mask, masks_of_finals[e])].push_back({i, e});
      }
    }
    for (const auto& [mask, pairs] : joins) {
      std::map<std::uint32_t, KeyTable> input_tables;
      std::map<std::uint32_t, KeyTable> entry_tables;
      for (const Joined& pair : pairs) {
        const KeyTable& inputs =
            input_tables
                .try_emplace(pair.inputs, scene.inputs, input_groups[pair.inputs], mask.data(),
                             rank_of_input, scene.input_effect)
                .first->second;
        const KeyTable& entries =
            entry_tables
                .try_emplace(pair.entries, scene.entries, finals[pair.entries], mask.data(),
                             rank_of_entry, scene.effect)
                .first->second;
        if (!some_precedes(inputs, entries)) continue;
        if (auto done = check_pairs(scene, input_groups[pair.inputs], finals[pair.entries], table);
            !done) {
          return done;
        }
      }
    }
    return {};
  }

  static bool some_precedes(const KeyTable& inputs, const KeyTable& entries) {
    if (inputs.size() <= entries.size()) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Ranks* other = entries.lookup(inputs.entry(i).key);
        if (other != nullptr && inputs.entry(i).precedes(*other)) return true;
      }
      return false;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Ranks* other = inputs.lookup(entries.entry(i).key);
      if (other != nullptr && other->precedes(entries.entry(i))) return true;
    }
    return false;
  }

  /// The join found a pair that may break claim 2; look at each, and whether earlier entries have
  /// taken what the two have in common.
  Result<void> check_pairs(const Scene& scene, const Members& inputs, const Members& entries,
                           std::uint32_t table) const {
    const std::size_t words = scene.inputs.words();
    for (const std::uint32_t input : inputs) {
      const Word* value = scene.inputs.value[input];
      const Word* mask = scene.inputs.mask[input];
      for (const std::uint32_t entry : entries) {
        if (scene.input[input] > scene.witness[entry] ||
            scene.input_effect[input] == scene.effect[entry] ||
            !overlap(value, mask, scene.entries.value[entry], scene.entries.mask[entry], words)) {
          continue;
        }
        Ternaries shared(words);
        add_within(shared, value, mask, scene.entries.value[entry], scene.entries.mask[entry]);
        if (!Cover(scene, scene.position[entry]).contains_all(shared.value[0], shared.mask[0])) {
          return refuse(table,
                        fmt::format("the rule {} takes packets of {}, which wins over it",
                                    shown(scene.entries, entry), shown(scene.inputs, input)));
        }
      }
    }
    return {};
  }

  Result<void> follow_jumps(const Scene& scene, const std::vector<Members>& entry_groups,
                            const std::vector<Members>& input_groups, int depth) {
    const std::size_t words = scene.inputs.words();
    std::map<std::uint32_t, Members> inputs_of;  // by entry
    for (const Members& group : entry_groups) {
      Members jumps;
      for (const std::uint32_t entry : group) {
        if (scene.target[entry] != kNone) jumps.push_back(entry);
      }
      if (jumps.empty()) continue;
      for (const std::uint32_t entry : jumps) inputs_of[entry];
      for (const Members& inputs : input_groups) {
        const std::vector<Word> mask =
            common(mask_of(scene.entries, jumps.front()), mask_of(scene.inputs, inputs.front()));
        std::unordered_multimap<std::uint64_t, std::uint32_t> table;
        for (const std::uint32_t entry : jumps) {
          table.emplace(hash_under(scene.entries.value[entry], mask.data(), words), entry);
        }
        for (const std::uint32_t input : inputs) {
          const auto [begin, end] =
              table.equal_range(hash_under(scene.inputs.value[input], mask.data(), words));
          for (auto found = begin; found != end; ++found) {
            // What an entry tried before contains never comes to this jump.
            if (scene.home[input] < scene.position[found->second]) continue;
            if (overlap(scene.entries.value[found->second], scene.entries.mask[found->second],
                        scene.inputs.value[input], scene.inputs.mask[input], words)) {
              inputs_of[found->second].push_back(scene.input[input]);
            }
          }
        }
      }
    }
    for (auto& [entry, inputs] : inputs_of) {
      std::sort(inputs.begin(), inputs.end());
      const Word* value = scene.entries.value[entry];
      const Word* mask = scene.entries.mask[entry];
      if (auto done = prove_table(scene.target[entry], {value, value + words}, {mask, mask + words},
                                  inputs, depth + 1);
          !done) {
        return done;
      }
    }
    return {};
  }

  const Problem& problem_;
  const std::map<std::uint32_t, PackedTable>& tables_;
};

}  // namespace

Result<Proof> prove(const RuleSet& rules, const Layout& layout) {
  const RulesOfTable input = rules_by_table(rules);
  const auto tables = LayoutTables::sort_out(input, rules, layout);
  if (!tables) return pass_on(tables);
  Proof proof;
  Effects effects;
  for (const auto& [id, members] : input) {
    if (!tables->has(id)) {
      return fail(ErrorCode::kInternal, fmt::format("the layout lacks table {}", id));
    }
    Problem problem = make_problem(rules, members, effects);
    std::map<std::uint32_t, PackedTable> reached;
    for (const std::uint32_t table : tables->reach(id)) {
      auto one = tables->packed(table, problem, effects);
      if (!one) return pass_on(one);
      reached.emplace(table, std::move(*one));
    }
    Members all(members.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    Prover prover(problem, reached);
    const std::vector<Word> anywhere(problem.rows.words(), 0);
    if (auto done = prover.prove_table(id, anywhere, anywhere, all, 0); !done) return pass_on(done);
    proof.tables += prover.proof.tables;
    proof.pairs += prover.proof.pairs;
  }
  return proof;
}

}  // namespace greynic::optimizer
