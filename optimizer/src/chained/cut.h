#pragma once

/// The choice of a cut or of a guard for a node, and what each would cost.

#include <memory>
#include <optional>

#include "src/chained/field_bits.h"
#include "src/chained/key_numbers.h"
#include "src/chained/node.h"

namespace greynic::optimizer::chained {

struct Cut {
  std::vector<Word> mask;
  double cost = 0.0;  ///< share of packets x matchers tried, entries priced in
};

/// Which units of a node go to the parts of a cut: all rows by part.
struct CutParts {
  struct Part {
    std::uint32_t example;            ///< a row that has its value
    std::vector<std::uint32_t> rows;  ///< ascending; copies of rows of the rest among them
  };
  std::vector<Part> parts;
  std::vector<std::uint32_t> rest;         ///< ascending
  std::vector<std::uint32_t> part_of_row;  ///< kNoRow: the rest
};

/// Matchers that send packets with low ports away; behind them some units look at no port.
struct Guard {
  /// One prefix of the low ports: the prefixes differ in length.
  struct Away {
    std::vector<Word> mask;
    std::vector<std::vector<Word>> values;  ///< by protocol of the units that are freed
  };
  std::size_t field = 0;
  std::vector<Away> away;
  std::vector<Word> headers;        ///< bits of the protocol, where they are not decided yet
  std::vector<std::uint32_t> sets;  ///< units with these port sets are freed of them; ascending
  double cost = 0.0;

  [[nodiscard]] bool frees(std::uint32_t set) const;
  /// All packets of the row go away.
  [[nodiscard]] bool holds(const Units& units, const UnitRows& rows, std::size_t row) const;
  /// Some packets of the row go away, with this number among the protocols.
  [[nodiscard]] bool meets(const Units& units, const UnitRows& rows, std::size_t row,
                           std::size_t protocol) const;
};

/// Packets that rows of two kinds may match, told apart. Three regions: without the bits of any row
/// that looks at all of `first`; with them, but without those of any row of `second`; with both.
struct Filter {
  std::vector<Word> first;
  std::vector<Word> second;
};

/// One side of a filter: the rows that look at all bits of a mask, and the packets that have the
/// bits of one of them.
struct FilterSide {
  std::vector<Word> mask;
  std::vector<bool> row;     ///< by row
  std::vector<bool> packet;  ///< by position in the node's packets
  double weight = 0.0;       ///< that the rows decide
  double strange = 0.0;      ///< of packets that have the bits, though other rows decide them
};

/// Whether a row looks at all bits of a mask.
[[nodiscard]] inline bool covers_all(const Word* wide, const std::vector<Word>& mask) {
  for (std::size_t w = 0; w < mask.size(); ++w) {
    if ((mask[w] & ~wide[w]) != 0) return false;
  }
  return true;
}

/// What a port set leaves out, when that is all ports up to some number, in few prefixes, shortest first; else
/// empty. 1025:65535 leaves out 0 to 1023, and 1024.
[[nodiscard]] std::vector<Prefix> left_out(const std::vector<Prefix>& set, const Slot& slot);

/// A node's weights by kind, for a bound on what cuts cost.
struct KindSums {
  explicit KindSums(const Node& node);
  std::vector<double> weight;
  std::vector<std::uint32_t> order;  ///< kinds, as a chain would have them
};

class CutChooser {
 public:
  CutChooser(const Units& units, const Rows& packets, const std::vector<double>& packet_weight,
             const std::vector<std::uint32_t>& decider, double entry_price)
      : units_(units),
        fields_(units.problem->columns),
        packets_(packets),
        packet_weight_(packet_weight),
        decider_(decider),
        entry_price_(entry_price) {}

  void set_price(double entry_price) { entry_price_ = entry_price; }

  /// The node as one chain: what packets that are decided try, and with those that are not.
  [[nodiscard]] ChainCost chain_of(const Node& node, const std::vector<double>& kind_masks) const;
  [[nodiscard]] double chain(const Node& node) const;
  /// The cheapest cuts, in order; `chain`: what they must cost less than.
  [[nodiscard]] std::vector<Cut> best_cuts(const Node& node, double chain, std::size_t most) const;
  [[nodiscard]] std::optional<Guard> best_guard(const Node& node) const;
  [[nodiscard]] std::optional<Filter> best_filter(const Node& node) const;
  /// What the cut makes of the node; exact where the choice only estimates.
  [[nodiscard]] CutParts split(const Node& node, const std::vector<Word>& mask) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> rows_of_packets(const Node& node) const;
  [[nodiscard]] std::optional<FilterSide> side_of(const Node& node,
                                                  const std::vector<std::uint32_t>& row_of,
                                                  std::vector<Word> mask) const;
  /// Gives up, with more than `dearest`, where it cannot cost less.
  [[nodiscard]] double cost_of(const Node& node, const std::vector<Word>& mask,
                               double dearest) const;
  /// At least the rows that do not look at the mask stay in the rest, so no cut costs less.
  [[nodiscard]] double least_cost(const Node& node, const KindSums& sums,
                                  const std::vector<Word>& mask) const;
  void look_inside(const Node& node, const std::vector<Word>& mask) const;
  std::size_t sort_rows(const Node& node, const std::vector<Word>& mask) const;
  /// Behind the guard, and in each of the regions that jump away.
  [[nodiscard]] double guard_cost(const Node& node, const Guard& guard) const;
  [[nodiscard]] std::vector<std::vector<Word>> candidates(const Node& node, std::size_t most) const;
  void add_fields(const Node& node, const std::vector<double>& kind_weight, std::size_t most,
                  std::vector<std::vector<Word>>& masks) const;
  void add_heavy(const Node& node, const std::vector<double>& kind_weight, std::size_t most,
                 std::vector<std::vector<Word>>& masks) const;
  /// Rows of the rest that a row may take along: as many as its packets are worth.
  [[nodiscard]] std::size_t most_copies(const Node& node, std::size_t row) const;

  /// What best_cuts and cost_of work with.
  struct Scratch {
    std::vector<std::uint8_t> covers;   ///< by kind: looks at all bits of the cut
    std::vector<std::uint32_t> inside;  ///< by kind: its number in a part
    std::vector<double> masks;          ///< by that number
    std::vector<Word> parted;           ///< bits that part no matchers in a part
    std::vector<std::uint8_t> open;     ///< by that number: some bit is still looked at
    KeyNumbers keys;                    ///< of kinds, then of parts
    KeyNumbers tried;                   ///< masks, for best_cuts
    std::vector<std::uint32_t> part;    ///< by row; kNoRow: the rest
    std::vector<std::pair<std::uint32_t, Share>> in_parts;
    std::vector<double> rest_weight;   ///< by class of kinds; negative: no row in the rest
    std::vector<double> passing;       ///< by part
    std::vector<std::uint32_t> begin;  ///< by part, in `sorted`
    std::vector<Share> sorted;
    std::vector<Share> shares;
  };

  const Units& units_;
  FieldBits fields_;
  const Rows& packets_;
  const std::vector<double>& packet_weight_;
  const std::vector<std::uint32_t>& decider_;
  double entry_price_;
  std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();  ///< copies share it
};

}  // namespace greynic::optimizer::chained
