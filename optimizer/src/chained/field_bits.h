#pragma once

/// Masks of single fields, in words: the columns of each field, and the headers that it needs.

#include <vector>

#include "src/ternary.h"

namespace greynic::optimizer::chained {

class FieldBits {
 public:
  explicit FieldBits(const Columns& columns);

  [[nodiscard]] std::size_t fields() const { return fields_.size(); }
  [[nodiscard]] bool looks_at(const Word* row, std::size_t field) const;
  /// By the bits of the field alone: as the numbers that they are.
  [[nodiscard]] bool less(const Word* a, const Word* b, std::size_t field) const;
  /// What a row looks at of the field, and of the headers that the field needs.
  [[nodiscard]] std::vector<Word> with_headers(const Word* row, std::size_t field) const;

 private:
  struct Field {
    std::vector<Word> bits;
    std::vector<std::size_t> headers;  ///< that it needs itself
  };
  void add_headers(const Word* row, std::size_t field, std::vector<Word>& mask) const;
  std::vector<Field> fields_;  ///< in canonical order
};

}  // namespace greynic::optimizer::chained
