#pragma once

/// Derivatives of one number with respect to many, by going backwards. Arithmetic on `Variable`
/// notes on a tape what each result was made of and how strongly it depends on it; one sweep from
/// the result back to the leaves adds up the chain rule. That costs a few times the arithmetic
/// itself however many leaves there are, where forward derivatives cost as many times as leaves.

#include <cmath>
#include <span>
#include <vector>

namespace greynic::model {

class Tape {
 public:
  Tape() { nodes_.reserve(256); }

  /// A new node that depends on nothing; leaves come first. All return the node's index.
  int leaf() { return record(0, 0.0); }
  int record(int a, double slope_a) {
    // The second parent is the node itself, whose turn is over when it is swept: no store that the
    // next load would have to wait for.
    return record(a, slope_a, static_cast<int>(nodes_.size()), 0.0);
  }
  int record(int a, double slope_a, int b, double slope_b) {
    nodes_.push_back({a, b, slope_a, slope_b});
    return static_cast<int>(nodes_.size()) - 1;
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// Forgets what was recorded after the first `size` nodes.
  void cut(std::size_t size) { nodes_.resize(size); }

  /// d node / d leaf for the first leaves.size() nodes of the tape.
  void sweep(int node, std::span<double> leaves) {
    reached_.assign(nodes_.size(), 0.0);
    reached_[static_cast<std::size_t>(node)] = 1.0;
    for (auto i = static_cast<std::size_t>(node); i >= leaves.size(); --i) {
      const double by = reached_[i];
      const Node& n = nodes_[i];
      reached_[static_cast<std::size_t>(n.a)] += by * n.slope_a;
      reached_[static_cast<std::size_t>(n.b)] += by * n.slope_b;
    }
    for (std::size_t j = 0; j < leaves.size(); ++j) leaves[j] = reached_[j];
  }

 private:
  struct Node {
    int a;
    int b;
    double slope_a;
    double slope_b;
  };
  std::vector<Node> nodes_;
  std::vector<double> reached_;
};

/// A number that knows its place on a tape; without a tape it is a constant.
struct Variable {
  double value = 0.0;
  Tape* tape = nullptr;
  int node = 0;

  Variable() = default;
  Variable(double constant) : value(constant) {}  // NOLINT: constants join in as they are
  Variable(double v, Tape* on, int at) : value(v), tape(on), node(at) {}
};

[[gnu::always_inline]] inline Variable depending(double value, const Variable& x, double slope) {
  // What does not move is a constant: walks past no masks leave nothing on the tape.
  if (x.tape == nullptr || slope == 0.0) return {value};
  return {value, x.tape, x.tape->record(x.node, slope)};
}
[[gnu::always_inline]] inline Variable depending(double value, const Variable& a, double slope_a,
                                                 const Variable& b, double slope_b) {
  if (a.tape == nullptr) return depending(value, b, slope_b);
  if (b.tape == nullptr) return depending(value, a, slope_a);
  return {value, a.tape, a.tape->record(a.node, slope_a, b.node, slope_b)};
}

inline Variable operator+(const Variable& a, const Variable& b) {
  return depending(a.value + b.value, a, 1.0, b, 1.0);
}
inline Variable operator-(const Variable& a, const Variable& b) {
  return depending(a.value - b.value, a, 1.0, b, -1.0);
}
inline Variable operator*(const Variable& a, const Variable& b) {
  return depending(a.value * b.value, a, b.value, b, a.value);
}
inline Variable operator/(const Variable& a, const Variable& b) {
  const double ratio = a.value / b.value;
  return depending(ratio, a, 1.0 / b.value, b, -ratio / b.value);
}
inline Variable& operator+=(Variable& a, const Variable& b) { return a = a + b; }
inline Variable& operator*=(Variable& a, const Variable& b) { return a = a * b; }
inline bool operator<(const Variable& a, const Variable& b) { return a.value < b.value; }
inline bool operator>(const Variable& a, const Variable& b) { return a.value > b.value; }
inline Variable exp(const Variable& x) {
  const double value = std::exp(x.value);
  return depending(value, x, value);
}
inline Variable log(const Variable& x) { return depending(std::log(x.value), x, 1.0 / x.value); }

inline double value_of(double x) { return x; }
inline double value_of(const Variable& x) { return x.value; }

}  // namespace greynic::model
