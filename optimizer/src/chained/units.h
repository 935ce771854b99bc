#pragma once

/// Rules of one input table as units: a rule whose port ranges a reader wrote out as prefixes is
/// one unit again. 1024:65535 on both ports is 36 rows of a Problem, and one unit.
///
/// A unit is a ternary row, the hull, and for each port field a set of prefixes, when its row has
/// several there. Inside a region the unit keeps what the region leaves open.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "src/overlap.h"
#include "src/ranged/port_code.h"

namespace greynic::optimizer::chained {

using ranged::kPortFields;
using ranged::kPorts;
using ranged::Prefix;

/// The columns of a field, as one number.
struct Slot {
  std::size_t first = 0;
  std::size_t count = 0;
  [[nodiscard]] std::uint32_t get(const Word* row) const;
  void set(std::uint32_t bits, Word* row) const;
  [[nodiscard]] std::uint32_t all() const { return (1U << count) - 1; }
};

/// Sets of disjoint prefixes of one slot, by number; 0 is no set.
class PortSets {
 public:
  PortSets() : sets_(1) {}
  [[nodiscard]] const std::vector<Prefix>& operator[](std::uint32_t id) const { return sets_[id]; }
  std::uint32_t number(std::vector<Prefix> prefixes);

 private:
  std::vector<std::vector<Prefix>> sets_;
  std::map<std::vector<Prefix>, std::uint32_t> known_;
};

using PortIds = std::array<std::uint32_t, kPortFields>;

/// Units in order of precedence; those of a region are the open part of those of the whole.
struct UnitRows {
  explicit UnitRows(std::size_t words) : hull(words) {}
  Ternaries hull;
  std::vector<PortIds> ports;
  std::vector<std::uint32_t> unit;  ///< number in Units; smaller wins

  [[nodiscard]] std::size_t size() const { return unit.size(); }
  void reserve(std::size_t rows) {
    hull.reserve(rows);
    ports.reserve(rows);
    unit.reserve(rows);
  }
  void add(const Word* value, const Word* mask, PortIds port_ids, std::uint32_t number) {
    hull.add(value, mask);
    ports.push_back(port_ids);
    unit.push_back(number);
  }
  /// Takes every packet of its region.
  [[nodiscard]] bool takes_all(std::size_t row) const;
};

struct Units {
  /// `most_ranges`: port fields that a matcher of the device may compare as ranges; with `codes` they
  /// are ranges from the start, else may_range.
  explicit Units(const Problem& problem, std::size_t most_ranges = 0, bool codes = true);

  const Problem* problem;
  std::array<Slot, kPortFields> slot;
  /// The field is compared as a range: it parts no masks, and rows and packets have its code in
  /// place of its bits. Where one is, no unit has a set of another field.
  std::array<bool, kPortFields> as_range{};
  std::array<ranged::PortCode, kPortFields> code;  ///< of these fields
  /// Ports are bits, but prefixes of a finished plan may become ranges.
  std::array<bool, kPortFields> may_range{};
  std::vector<Word> ranged;  ///< the columns of these fields
  PortSets sets;
  UnitRows rows;
  std::vector<std::uint32_t> effect;
  std::vector<std::uint32_t> rule;         ///< index in the RuleSet
  std::vector<std::uint32_t> unit_of_row;  ///< by row of the problem

  /// Some packet matches both; rows of one region.
  [[nodiscard]] bool overlap(const UnitRows& rows_a, std::size_t a, const UnitRows& rows_b,
                             std::size_t b) const;
  /// The unit meets a cube.
  [[nodiscard]] bool meets(const UnitRows& rows_a, std::size_t a, const Word* value,
                           const Word* mask) const;
  /// Adds to `out` what is open of a unit in a cube that it meets.
  void add_within(UnitRows& out, const UnitRows& rows_a, std::size_t a, const Word* value,
                  const Word* mask);
  /// Packets as rows of the problem, with codes.
  [[nodiscard]] Rows coded(const Rows& packets) const;
  /// The unit's ports without those that are compared as ranges.
  [[nodiscard]] PortIds kept_ports(PortIds ports) const {
    for (std::size_t i = 0; i < kPortFields; ++i) ports[i] = as_range[i] ? 0 : ports[i];
    return ports;
  }
  /// Ternary rows that a unit stands for: calls visit(value, mask).
  template <typename Visit>
  void written_out(const UnitRows& rows_a, std::size_t a, Visit visit) const {
    const std::size_t words = rows_a.hull.words();
    std::vector<Word> value(rows_a.hull.value[a], rows_a.hull.value[a] + words);
    std::vector<Word> mask(rows_a.hull.mask[a], rows_a.hull.mask[a] + words);
    write_out(rows_a.ports[a], 0, value, mask, visit);
  }

 private:
  void write_as_codes();
  template <typename Visit>
  void write_out(const PortIds& ports, std::size_t field, std::vector<Word>& value,
                 std::vector<Word>& mask, Visit& visit) const {
    if (field == kPortFields) return visit(value.data(), mask.data());
    if (ports[field] == 0) return write_out(ports, field + 1, value, mask, visit);
    const std::uint32_t old_value = slot[field].get(value.data());
    const std::uint32_t old_mask = slot[field].get(mask.data());
    for (const Prefix& prefix : sets[ports[field]]) {
      slot[field].set(prefix.value, value.data());
      slot[field].set(prefix.mask, mask.data());
      write_out(ports, field + 1, value, mask, visit);
    }
    slot[field].set(old_value, value.data());
    slot[field].set(old_mask, mask.data());
  }
};

/// For each row, those that must come before it: earlier, overlapping, of another effect (conflicts.cc).
struct Conflicts {
  std::size_t most = 0;               ///< that a row may have to leave a rest
  std::vector<std::uint32_t> listed;  ///< of all rows, one after the other; of each row ascending
  std::vector<std::size_t> end;       ///< by row, in `listed`
  std::vector<std::uint8_t> many;     ///< by row: there are more than `most`
  std::vector<std::uint8_t> some;     ///< by row: of these, not all are listed

  [[nodiscard]] std::size_t rows() const { return end.size(); }
  [[nodiscard]] std::span<const std::uint32_t> before(std::size_t row) const {
    const std::size_t begin = row == 0 ? 0 : end[row - 1];
    return {listed.data() + begin, end[row] - begin};
  }
  /// Keeps the first rows.
  void cut_off(std::size_t rows);
};
[[nodiscard]] Conflicts conflicts_of(const Units& units, const UnitRows& rows, std::size_t most);

/// Whether rows that meet in a region meet in a part of it, too, when both reach into the part.
enum class Meeting : std::uint8_t {
  kSure,  ///< in the same region, and where the part fixes bits of no port: rows are products of bits
  kOfPorts,   ///< where it does: sets of prefixes may meet elsewhere
  kUncertain  ///< where a part is no cube
};

/// Those of `inner`, whose rows are what is open of the rows `from` of a region around it, `outer`: its
/// conflicts, `among`, are looked through instead of all rows. `row_inside` is kNoRow for each row
/// of the outer region, before and after.
[[nodiscard]] Conflicts conflicts_within(const Units& units, const Conflicts& among,
                                         const UnitRows& outer, const UnitRows& inner,
                                         const std::vector<std::uint32_t>& from, Meeting meeting,
                                         std::vector<std::uint32_t>& row_inside);

}  // namespace greynic::optimizer::chained
