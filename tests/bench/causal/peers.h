#pragma once

/// What others do with a failing configuration and a passing one, written from their papers: which
/// of the settings that differ do they blame, in how many tests? One measurement decides each test,
/// as in the papers. They name settings and no thresholds, so they are held to the structure alone.

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace greynic::bench {

using Blamed = std::set<std::size_t>;

/// Does it still fail with these settings as in the failing configuration, the others as in the
/// passing one?
using Fails = std::function<bool(const Blamed& kept)>;

struct Peer {
  std::string name;
  std::function<Blamed(std::size_t settings, const Fails& fails)> blame;
};

/// Collie's one-at-a-time search (NSDI 2022), ddmin (Zeller, Hildebrandt 2002), ProbDD (FSE 2021),
/// FIC_BS (Zhang, Zhang 2011), BEN (Ghandehari 2012, pairs), BugDoc's stacked shortcut (SIGMOD
/// 2020, four runs, each in an order of its own).
[[nodiscard]] std::vector<Peer> peers();

}  // namespace greynic::bench
