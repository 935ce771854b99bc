#pragma once

/// Covering arrays of strength 2 that need no search.
///
///  - Two symbols: every column is a different ceil(N / 2)-subset of N - 1 rows, and one more row
///  is 0
///    throughout (Kleitman and Spencer 1973; Katona 1973). Optimal.
///  - q symbols, q a prime power: q^2 rows serve q + 1 columns (Bose 1938); each further q^2 - q
///  rows
///    take n columns to q n + 1 (Williams 2000), so 15 rows serve 13 columns of 3 symbols.

#include <cstdint>
#include <vector>

namespace greynic::testgen {

using SymbolRows = std::vector<std::vector<std::uint16_t>>;

/// An array of `columns` columns over the symbols 0 to q - 1, where q is the smallest prime power
/// that is not below `symbols`; every pair of columns shows every pair of symbols. Empty when it
/// would have more than `most_rows` rows.
[[nodiscard]] SymbolRows algebraic_array(std::size_t columns, std::uint32_t symbols,
                                         std::size_t most_rows);

}  // namespace greynic::testgen
