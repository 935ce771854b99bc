#pragma once

/// A table's rules in the order in which they are tried, and the packets that come to it, those that are alike in all
/// that the table looks at once.

#include <cstdint>
#include <set>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "src/fronts/arrivals.h"
#include "src/problem.h"

namespace greynic::optimizer {

struct FrontTable {
  struct Packets {
    std::uint32_t row = kNoRow;  ///< that they hit
    double tried = 0.0;          ///< matchers, without fronts
    double weight = 0.0;         ///< share of all packets
    double heaviest = 0.0;       ///< of one flow
  };

  /// `all`: the weight of all packets. `whole_fields` are not looked at in part.
  FrontTable(const LayoutTable& table, const std::vector<Arrival>& arrivals, const Traffic& traffic,
             double all, const std::set<MatchField>& whole_fields);

  std::vector<std::size_t> first_row;   ///< by matcher
  std::vector<const FlowRule*> by_row;  ///< in the layout
  Problem problem;
  std::size_t words;
  std::vector<std::vector<Word>> fields;  ///< the columns of each field
  std::vector<bool> whole;                ///< by field: not looked at in part
  std::vector<Packets> packets;
  Rows bits;  ///< by place in packets

 private:
  static Problem problem_of(const LayoutTable& table, std::vector<std::size_t>& first_row,
                            std::vector<const FlowRule*>& by_row);
  void find_fields(const std::set<MatchField>& whole_fields);
  void take_in(const std::vector<Arrival>& arrivals, const Traffic& traffic, double all);
};

}  // namespace greynic::optimizer
