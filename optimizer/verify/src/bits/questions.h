#pragma once

/// What is asked of packets, one bit after another, in one order for all rules of a pipeline.
///
/// Most questions are "is this bit of that field 1?". Bits that all rules look at together, and always for the same
/// values, are one question: of a metadata field whose rules all ask for a number below 16, the upper 60 bits are one,
/// "are all of them 0?".

#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "src/bits/bit_diagrams.h"
#include "src/bits/first_match.h"
#include "src/joined/onward.h"

namespace greynic::verify {

class Questions {
 public:
  /// Of all matches of both sides, and of what their actions set. Ranges are not asked.
  Questions(const TablesOfSet& rules, const Layout& layout);

  [[nodiscard]] std::size_t count() const { return questions_.size(); }
  /// What a match says to each question that it answers.
  [[nodiscard]] FirstMatch::Asked asked(const Match& match) const;
  /// What is known once actions were done: the last that sets a field counts.
  using Known = std::map<std::uint32_t, bool>;
  [[nodiscard]] Known written(const Actions& actions) const;
  /// A packet that says yes to these, and to no other question.
  [[nodiscard]] Packet packet(const std::vector<std::uint32_t>& yes) const;

 private:
  struct Question {
    MatchField field = MatchField::kInPort;
    U128 bits = 0;
    U128 wanted = 0;  ///< yes: the bits are these
  };
  struct Field {
    std::set<U128> masks;      ///< of matches, and of what is set
    std::size_t rules = 0;     ///< of the set, that look at it
    U128 zeros = 0, ones = 0;  ///< bits that some match wants so
  };
  void note(const FlowRule& rule, bool of_set);
  void ask(MatchField field, const Field& looked_at);
  template <typename Visit>
  void for_each(MatchField field, U128 value, U128 bits, const Visit& visit) const;

  std::map<MatchField, Field> fields_;
  std::vector<Question> questions_;
  std::map<MatchField, std::vector<std::uint32_t>> of_field_;  ///< ascending
};

}  // namespace greynic::verify
