#include "peers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

namespace greynic::bench {
namespace {

Blamed all_of(std::size_t settings) {
  Blamed all;
  for (std::size_t i = 0; i < settings; ++i) all.insert(i);
  return all;
}

Blamed without(Blamed set, const std::vector<std::size_t>& removed) {
  for (const std::size_t one : removed) set.erase(one);
  return set;
}

/// Sets one after the other to the passing level, and leaves it there while the failure stays.
Blamed remove_one_by_one(const std::vector<std::size_t>& order, const Fails& fails) {
  Blamed kept(order.begin(), order.end());
  for (const std::size_t one : order) {
    const Blamed less = without(kept, {one});
    if (fails(less)) kept = less;
  }
  return kept;
}

std::vector<std::size_t> order_of(std::size_t settings) {
  std::vector<std::size_t> order(settings);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Blamed one_at_a_time(std::size_t settings, const Fails& fails) {
  return remove_one_by_one(order_of(settings), fails);
}

Blamed ddmin(std::size_t settings, const Fails& fails) {
  std::vector<std::size_t> now = order_of(settings);
  std::size_t parts = 2;
  while (now.size() >= 2) {
    std::vector<std::vector<std::size_t>> chunks(parts);
    for (std::size_t i = 0; i < now.size(); ++i) chunks[i * parts / now.size()].push_back(now[i]);
    const auto keep = [&](const Blamed& less, std::size_t next) {
      now.assign(less.begin(), less.end());
      parts = std::max<std::size_t>(2, std::min(next, now.size()));
    };
    bool reduced = false;
    for (std::size_t k = 0; k < parts && !reduced; ++k) {
      const Blamed chunk(chunks[k].begin(), chunks[k].end());
      reduced = chunk.size() < now.size() && fails(chunk);
      if (reduced) keep(chunk, 2);
    }
    for (std::size_t k = 0; k < chunks.size() && !reduced && chunks.size() > 2; ++k) {
      const Blamed rest = without({now.begin(), now.end()}, chunks[k]);
      reduced = !rest.empty() && fails(rest);
      if (reduced) keep(rest, chunks.size() - 1);
    }
    if (reduced) continue;
    if (parts >= now.size()) break;
    parts = std::min(2 * parts, now.size());
  }
  return {now.begin(), now.end()};
}

/// Removes the settings whose joint chance of being needless, times their number, is largest.
Blamed prob_dd(std::size_t settings, const Fails& fails) {
  std::map<std::size_t, double> needed;
  for (std::size_t i = 0; i < settings; ++i) needed[i] = 0.1;
  while (true) {
    std::vector<std::pair<double, std::size_t>> order;
    for (const auto& [one, chance] : needed) {
      if (chance < 1.0 - 1e-9) order.emplace_back(chance, one);
    }
    if (order.empty()) break;
    std::sort(order.begin(), order.end());
    double all_needless = 1.0, best = -1.0, product = 1.0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      product *= 1.0 - order[i].first;
      if (product * static_cast<double>(i + 1) <= best) continue;
      best = product * static_cast<double>(i + 1);
      count = i + 1;
      all_needless = product;
    }
    std::vector<std::size_t> removed;
    for (std::size_t i = 0; i < count; ++i) removed.push_back(order[i].second);
    Blamed kept;
    for (const auto& entry : needed) kept.insert(entry.first);
    if (fails(without(kept, removed))) {
      for (const std::size_t one : removed) needed.erase(one);
    } else {
      for (const std::size_t one : removed) {
        needed[one] = count == 1 ? 1.0 : std::min(1.0, needed[one] / (1.0 - all_needless));
      }
    }
  }
  Blamed kept;
  for (const auto& entry : needed) kept.insert(entry.first);
  return kept;
}

/// Each blamed setting is found by halving: the first in a row whose removal, with all before it,
/// makes the failure vanish. What came before it is removed for good.
Blamed fic_bs(std::size_t settings, const Fails& fails) {
  Blamed blamed;
  std::vector<std::size_t> free = order_of(settings);
  while (!fails(blamed)) {
    if (free.empty()) break;
    std::size_t low = 0, high = free.size();  // removing so many: fails, passes
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      Blamed kept = blamed;
      kept.insert(free.begin() + static_cast<std::ptrdiff_t>(middle), free.end());
      (fails(kept) ? low : high) = middle;
    }
    blamed.insert(free[high - 1]);
    free.erase(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(high));
  }
  return blamed;
}

/// Pairs of settings that are in failing tests alone are suspicious. The most suspicious is tested
/// in the environment of the least suspicious settings, ten a round, until the set is stable.
Blamed ben(std::size_t settings, const Fails& fails) {
  std::mt19937_64 random(settings);
  std::vector<std::pair<Blamed, bool>> tests = {{all_of(settings), true}};
  const auto try_one = [&](const Blamed& kept) { tests.emplace_back(kept, fails(kept)); };
  for (int i = 0; i < 12; ++i) {  // covers each pair of two levels with high chance
    Blamed kept;
    for (std::size_t s = 0; s < settings; ++s) {
      if (random() % 2 == 0) kept.insert(s);
    }
    try_one(kept);
  }
  const auto share = [&](std::size_t setting) {
    double with = 1e-9, failed = 0.0;
    for (const auto& [kept, bad] : tests) {
      if (!kept.contains(setting)) continue;
      with += 1.0;
      failed += bad ? 1.0 : 0.0;
    }
    return failed / with;
  };
  Blamed before;
  for (int round = 0; round < 30; ++round) {
    std::vector<double> suspicion(settings);
    for (std::size_t s = 0; s < settings; ++s) suspicion[s] = share(s);
    std::vector<std::pair<double, Blamed>> ranked;
    for (std::size_t a = 0; a < settings; ++a) {
      for (std::size_t b = a; b < settings; ++b) {
        const bool passes = std::any_of(tests.begin(), tests.end(), [&](const auto& test) {
          return !test.second && test.first.contains(a) && test.first.contains(b);
        });
        const double order = a == b ? 0.1 : 0.0;  // the shorter of two equals
        if (!passes) ranked.emplace_back(suspicion[a] + suspicion[b] + order, Blamed{a, b});
      }
    }
    if (ranked.empty()) return {};
    std::sort(ranked.rbegin(), ranked.rend());
    if (ranked.front().second == before) return before;
    before = ranked.front().second;
    for (std::size_t i = 0; i < std::min<std::size_t>(10, ranked.size()); ++i) {
      try_one(ranked[i].second);  // all others pass: the least suspicious environment
    }
  }
  return before;
}

/// Four shortcuts, each in an order of its own; what any of them blames is blamed.
Blamed stacked_shortcut(std::size_t settings, const Fails& fails) {
  std::mt19937_64 random(settings);
  Blamed blamed;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::size_t> order = order_of(settings);
    std::shuffle(order.begin(), order.end(), random);
    const Blamed some = remove_one_by_one(order, fails);
    blamed.insert(some.begin(), some.end());
  }
  return blamed;
}

}  // namespace

std::vector<Peer> peers() {
  return {{"one_at_a_time", one_at_a_time},
          {"ddmin", ddmin},
          {"prob_dd", prob_dd},
          {"fic_bs", fic_bs},
          {"ben", ben},
          {"stacked_shortcut", stacked_shortcut}};
}

}  // namespace greynic::bench
