#include "engine/algebraic.h"

#include <optional>

#include "engine/lower_bound.h"

namespace greynic::testgen {
namespace {

/// The field of q elements as tables; elements are polynomials over the prime field, written in
/// base p.
class Field {
 public:
  static std::optional<Field> of(std::uint32_t q) {
    std::uint32_t p = 2;
    while (q % p != 0) ++p;
    std::uint32_t degree = 0;
    for (std::uint32_t rest = q; rest > 1; rest /= p, ++degree) {
      if (rest % p != 0) return std::nullopt;
    }
    // A reducible polynomial shows as a product of two elements that is zero.
    for (std::uint32_t low = 0; low < q; ++low) {
      Field field(p, q, degree, low);
      if (field.has_no_zero_divisor()) return field;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::uint32_t add(std::uint32_t a, std::uint32_t b) const {
    std::uint32_t sum = 0;
    for (std::uint32_t unit = 1; unit < q_; unit *= p_) {
      sum += (a / unit + b / unit) % p_ * unit;
    }
    return sum;
  }
  [[nodiscard]] std::uint32_t multiply(std::uint32_t a, std::uint32_t b) const {
    return product_[a * q_ + b];
  }

 private:
  /// Modulo x^degree = low, with low read as a polynomial of smaller degree.
  Field(std::uint32_t p, std::uint32_t q, std::uint32_t degree, std::uint32_t low)
      : p_(p), q_(q), product_(q * q) {
    const std::uint32_t top = q / p;
    const auto times_x = [&](std::uint32_t a) {
      const std::uint32_t lead = a / top;
      std::uint32_t result = degree == 1 ? 0 : a % top * p;
      for (std::uint32_t i = 0; i < lead; ++i) result = add(result, low);
      return result;
    };
    for (std::uint32_t a = 0; a < q; ++a) {
      for (std::uint32_t b = 0; b < q; ++b) {
        if (degree == 1) {
          product_[a * q + b] = a * b % p;
          continue;
        }
        std::uint32_t sum = 0;
        std::uint32_t power = a;
        for (std::uint32_t rest = b; rest > 0; rest /= p, power = times_x(power)) {
          for (std::uint32_t i = 0; i < rest % p; ++i) sum = add(sum, power);
        }
        product_[a * q + b] = sum;
      }
    }
  }
  [[nodiscard]] bool has_no_zero_divisor() const {
    for (std::uint32_t a = 1; a < q_; ++a) {
      for (std::uint32_t b = 1; b < q_; ++b) {
        if (multiply(a, b) == 0) return false;
      }
    }
    return true;
  }

  std::uint32_t p_;
  std::uint32_t q_;
  std::vector<std::uint32_t> product_;
};

SymbolRows binary_array(std::size_t columns) {
  const std::size_t rows = binary_pairs_rows(columns);
  SymbolRows array(rows, std::vector<std::uint16_t>(columns, 0));
  // Subsets in lexicographic order, as positions.
  const std::size_t size = (rows + 1) / 2;
  std::vector<std::size_t> chosen(size);
  for (std::size_t i = 0; i < size; ++i) chosen[i] = i;
  for (std::size_t c = 0; c < columns; ++c) {
    for (const std::size_t r : chosen) array[r + 1][c] = 1;
    std::size_t i = size;
    while (i > 0 && chosen[i - 1] == rows - 1 - size + i - 1) --i;
    if (i == 0) break;
    ++chosen[i - 1];
    for (std::size_t j = i; j < size; ++j) chosen[j] = chosen[j - 1] + 1;
  }
  return array;
}

}  // namespace

SymbolRows algebraic_array(std::size_t columns, std::uint32_t symbols, std::size_t most_rows) {
  if (columns < 2 || symbols < 2) return {};
  if (symbols == 2) {
    return binary_pairs_rows(columns) <= most_rows ? binary_array(columns) : SymbolRows{};
  }
  std::uint32_t q = symbols;
  std::optional<Field> field;
  while (static_cast<std::size_t>(q) * q <= most_rows && !(field = Field::of(q))) ++q;
  if (!field) return {};
  // Row (a, b): column m holds a m + b, and the last column a.
  SymbolRows array;
  for (std::uint32_t a = 0; a < q; ++a) {
    for (std::uint32_t b = 0; b < q; ++b) {
      std::vector<std::uint16_t> row;
      for (std::uint32_t m = 0; m < q; ++m) {
        row.push_back(static_cast<std::uint16_t>(field->add(field->multiply(a, m), b)));
      }
      row.push_back(static_cast<std::uint16_t>(a));
      array.push_back(row);
    }
  }
  const SymbolRows plane(array.begin() + q, array.end());  // without its constant rows, a = 0
  while (array.front().size() < columns) {
    if (array.size() + plane.size() > most_rows) return {};
    // Each column is repeated q times; below, the copies differ as the plane's columns do. The
    // column that is 0 above and a below pairs with all: the constant rows were its rows with a =
    // 0.
    SymbolRows wider;
    for (const auto& row : array) {
      std::vector<std::uint16_t> repeated;
      for (const std::uint16_t symbol : row) repeated.insert(repeated.end(), q, symbol);
      repeated.push_back(0);
      wider.push_back(std::move(repeated));
    }
    const std::size_t groups = array.front().size();
    for (const auto& row : plane) {
      std::vector<std::uint16_t> repeated;
      for (std::size_t g = 0; g < groups; ++g) {
        repeated.insert(repeated.end(), row.begin(), row.begin() + q);
      }
      repeated.push_back(row.back());
      wider.push_back(std::move(repeated));
    }
    array = std::move(wider);
  }
  for (auto& row : array) row.resize(columns);
  return array;
}

}  // namespace greynic::testgen
