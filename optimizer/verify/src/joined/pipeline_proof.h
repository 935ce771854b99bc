#pragma once

/// One table of a pipeline after another, compared by sets of packets.
///
/// A layout may do at once what the rules do in several tables, and not for all packets in the same ones. So both
/// sides are followed together. A state says what each side has done to a packet so far, and where it goes on; with it goes
/// the set of packets, as they entered, that come to be in it, as one diagram of bits (bits/bit_diagrams.h):
///   - first the layout is followed through the tables that only it has, shared ones once for all that come there;
///   - what it does in the end is met with what the rules of the table do: the first states;
///   - a state where both sides did the same is settled: from there on both are alike. In any other, the side that
///     is further from the end of the pipeline goes on by one table of the rules, behind what was done already.
/// States are taken in the order of the pipeline, so each comes up once, with all of its packets. Where nothing is
/// left to follow and both sides differ, any packet of the state shows it.
///
/// Nothing is cut into pieces: a table of 10,000 rules that is a product of 900 addresses and 100 lists of ports is a
/// diagram of some ten thousand nodes. Where nodes run out, nothing is said, and the table is compared by search.

#include <map>
#include <optional>
#include <string>

#include "src/bits/bit_diagrams.h"
#include "src/bits/first_match.h"
#include "src/bits/questions.h"
#include "src/joined/comparison.h"

namespace greynic::verify {

class PipelineProof {
 public:
  struct Limits {
    std::size_t nodes = 0;    ///< for one table
    std::uint64_t steps = 0;  ///< for all
  };
  /// All that is given must outlive this.
  PipelineProof(const TablesOfSet& rules, const Layout& layout, const Onward& onward,
                Limits limits);

  struct Answer {
    bool alike = false;
    Packet packet;  ///< one that is not treated alike
    std::string by_rules;
    std::string by_layout;
  };
  /// One table; those of smaller rank were found alike before. None where nodes, steps or memory ran out.
  [[nodiscard]] std::optional<Answer> compare(const Sides& sides);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  /// What one side has done, and whether it goes on from there.
  struct Side {
    std::uint32_t effect = kMiss;
    bool ended = true;
    auto operator<=>(const Side&) const = default;
  };
  struct State {
    std::size_t rank = 0;  ///< of the table that one of them goes on in; the greatest
    Side rules;
    Side layout;
    auto operator<=>(const State&) const = default;
  };
  void start_anew();
  [[nodiscard]] bool ran_out() const { return bytes_left_ == 0 || diagrams_->ran_out(); }
  FunctionId rules_of(std::uint32_t table);
  FunctionId layout_of(const LayoutTable& table, const Sides& sides,
                       const std::map<std::uint32_t, std::uint32_t>& place);
  std::map<std::uint32_t, FunctionId> ends_of_layout(const Sides& sides);
  [[nodiscard]] std::optional<std::size_t> rank_behind(const Side& side) const;
  void add(const Sides& sides, Side rules, Side layout, FunctionId packets);
  void go_on(const Sides& sides, const State& state, FunctionId packets);
  FunctionId behind(std::uint32_t effect);
  Side after(std::uint32_t effect, std::uint32_t done);
  std::uint32_t number(const Actions& actions);
  void differ(const Side& rules, const Side& layout, bool follow, FunctionId packets);

  const TablesOfSet& rules_;
  const Onward& onward_;
  const Limits limits_;
  std::optional<Questions> questions_;  ///< none where there are ranges, or no nodes
  std::uint64_t steps_ = 0;

  // Of the table at hand.
  std::optional<BitDiagrams> diagrams_;
  std::optional<FirstMatch> first_match_;
  EffectNames effects_;
  std::size_t bytes_left_ = 0;  ///< of lists of actions
  std::map<std::uint32_t, FunctionId> rules_of_;
  std::map<std::pair<std::uint32_t, Questions::Known>, FunctionId> behind_;  ///< by table
  std::map<std::pair<std::uint32_t, std::uint32_t>, Side> after_;

  std::map<State, FunctionId, std::greater<>> open_;
  std::optional<Answer> found_;
};

}  // namespace greynic::verify
