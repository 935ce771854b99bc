#include "greynic/language/constraint_language.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "constraint_lexer.h"
#include "greynic/core/text.h"

namespace greynic::language {

namespace {

/// Deeper nesting than any person writes would only exhaust the stack.
constexpr int kDeepest = 200;
constexpr std::size_t kLongest = 100'000;

enum class TermType : std::uint8_t { kBool, kNumber, kText };

/// A part of a constraint while it is read. Text is either a literal or the value of a parameter.
struct Term {
  TermType type = TermType::kBool;
  Expr expr;
  std::string text;
  std::optional<std::uint32_t> parameter;  ///< of a text or Boolean parameter as such
  bool is_bareword = false;                ///< a name that is no parameter: perhaps a level
  std::size_t column = 1;
};

struct SyntaxError {
  std::size_t column;
  std::string what;
};

bool is_bool_parameter(const ModelParameter& parameter) {
  return parameter.numbers.empty() &&
         std::all_of(parameter.levels.begin(), parameter.levels.end(),
                     [](const std::string& level) { return level == "true" || level == "false"; });
}

class Parser {
 public:
  Parser(const CoverModel& model, const ConstantLookup& constants, std::vector<Token> tokens)
      : model_(model), constants_(constants), tokens_(std::move(tokens)) {}

  Expr parse() {
    Expr out = boolean(formula());
    if (peek().kind != TokenKind::kEnd) unexpected("an operator or the end");
    return out;
  }

 private:
  const Token& peek() const { return tokens_[at_]; }
  Token take() { return tokens_[peek().kind == TokenKind::kEnd ? at_ : at_++]; }
  bool accept(TokenKind kind) {
    if (peek().kind != kind) return false;
    ++at_;
    return true;
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!accept(kind)) unexpected(what);
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    throw SyntaxError{peek().column, fmt::format("{} expected, not '{}'", wanted, peek().text)};
  }

  struct Depth {
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) {
        throw SyntaxError{parser_.peek().column, "nested too deeply; split the constraint"};
      }
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser_;
  };

  Term formula() {
    const Depth depth(*this);
    Term left = implication();
    while (accept(TokenKind::kIff)) {
      const auto column = left.column;
      left = term_of(Expr::iff(boolean(std::move(left)), boolean(implication())), column);
    }
    return left;
  }

  Term implication() {
    const Depth depth(*this);
    Term left = disjunction();
    if (!accept(TokenKind::kImplies)) return left;
    const auto column = left.column;
    return term_of(Expr::implies(boolean(std::move(left)), boolean(implication())), column);
  }

  Term disjunction() {
    Term left = conjunction();
    if (peek().kind != TokenKind::kOr) return left;
    std::vector<Expr> args = {boolean(left)};
    while (accept(TokenKind::kOr)) args.push_back(boolean(conjunction()));
    return term_of(Expr::any_of(std::move(args)), left.column);
  }

  Term conjunction() {
    Term left = negation();
    if (peek().kind != TokenKind::kAnd) return left;
    std::vector<Expr> args = {boolean(left)};
    while (accept(TokenKind::kAnd)) args.push_back(boolean(negation()));
    return term_of(Expr::all_of(std::move(args)), left.column);
  }

  Term negation() {
    const Depth depth(*this);
    const std::size_t column = peek().column;
    if (accept(TokenKind::kNot)) return term_of(Expr::negation(boolean(negation())), column);
    return relation();
  }

  Term relation() {
    Term left = sum();
    const std::size_t column = peek().column;
    if (accept(TokenKind::kIn)) return term_of(membership(left), column);
    if (peek().kind == TokenKind::kNot && tokens_[at_ + 1].kind == TokenKind::kIn) {
      at_ += 2;
      return term_of(Expr::negation(membership(left)), column);
    }
    const auto op = compare_op();
    if (!op) return left;
    Term right = sum();
    Term out = term_of(comparison(*op, std::move(left), std::move(right), column), column);
    const std::size_t next = peek().column;
    if (compare_op()) throw SyntaxError{next, "comparisons do not chain; join two with &&"};
    return out;
  }

  std::optional<CompareOp> compare_op() {
    switch (peek().kind) {
      case TokenKind::kEqual:
        ++at_;
        return CompareOp::kEqual;
      case TokenKind::kNotEqual:
        ++at_;
        return CompareOp::kNotEqual;
      case TokenKind::kLess:
        ++at_;
        return CompareOp::kLess;
      case TokenKind::kLessEqual:
        ++at_;
        return CompareOp::kLessEqual;
      case TokenKind::kGreater:
        ++at_;
        return CompareOp::kGreater;
      case TokenKind::kGreaterEqual:
        ++at_;
        return CompareOp::kGreaterEqual;
      default:
        return std::nullopt;
    }
  }

  /// left in {a, b, 4..9}
  Expr membership(const Term& left) {
    expect(TokenKind::kOpenSet, "'{'");
    std::vector<Expr> alternatives;
    do {
      Term element = sum();
      const std::size_t column = element.column;
      if (accept(TokenKind::kRange)) {
        Term last = sum();
        alternatives.push_back(
            Expr::all_of({comparison(CompareOp::kGreaterEqual, left, std::move(element), column),
                          comparison(CompareOp::kLessEqual, left, std::move(last), column)}));
      } else {
        alternatives.push_back(comparison(CompareOp::kEqual, left, std::move(element), column));
      }
    } while (accept(TokenKind::kComma));
    expect(TokenKind::kCloseSet, "',' or '}'");
    return alternatives.size() == 1 ? std::move(alternatives[0])
                                    : Expr::any_of(std::move(alternatives));
  }

  Term sum() {
    Term left = product();
    while (peek().kind == TokenKind::kPlus || peek().kind == TokenKind::kMinus) {
      const bool minus = take().kind == TokenKind::kMinus;
      Expr right = number(product());
      if (minus) right = arithmetic(ExprKind::kMultiply, Expr::value(-1.0), std::move(right));
      left = number_term(arithmetic(ExprKind::kAdd, number(left), std::move(right)), left.column);
    }
    return left;
  }

  Term product() {
    Term left = operand();
    while (peek().kind == TokenKind::kTimes || peek().kind == TokenKind::kDivide) {
      const Token op = take();
      Expr right = number(operand());
      if (op.kind == TokenKind::kDivide) check_divisor(right, op.column);
      left = number_term(
          arithmetic(op.kind == TokenKind::kTimes ? ExprKind::kMultiply : ExprKind::kDivide,
                     number(left), std::move(right)),
          left.column);
    }
    return left;
  }

  /// Joins and folds constants, so that 2 * 512 is a number and a + b + c one flat sum.
  static Expr arithmetic(ExprKind kind, Expr left, Expr right) {
    if (left.kind == ExprKind::kNumber && right.kind == ExprKind::kNumber) {
      switch (kind) {
        case ExprKind::kAdd:
          return Expr::value(left.number + right.number);
        case ExprKind::kMultiply:
          return Expr::value(left.number * right.number);
        default:
          return Expr::value(left.number / right.number);
      }
    }
    Expr out;
    out.kind = kind;
    if (left.kind == kind && kind != ExprKind::kDivide) {
      out.args = std::move(left.args);
    } else {
      out.args.push_back(std::move(left));
    }
    out.args.push_back(std::move(right));
    return out;
  }

  void check_divisor(const Expr& divisor, std::size_t column) const {
    bool zero = divisor.kind == ExprKind::kNumber && divisor.number == 0.0;
    if (divisor.kind == ExprKind::kNumeric) {
      const std::vector<double>& numbers = model_.parameters[divisor.parameter].numbers;
      zero = std::find(numbers.begin(), numbers.end(), 0.0) != numbers.end();
    } else if (divisor.kind != ExprKind::kNumber) {
      throw SyntaxError{column,
                        "only a number or one parameter may stand after '/'; multiply instead"};
    }
    if (zero) throw SyntaxError{column, "the divisor can be 0; multiply instead"};
  }

  Term operand() {
    const Depth depth(*this);
    const Token token = take();
    switch (token.kind) {
      case TokenKind::kMinus: {
        Expr value = number(operand());
        return number_term(arithmetic(ExprKind::kMultiply, Expr::value(-1.0), std::move(value)),
                           token.column);
      }
      case TokenKind::kNumber:
        return number_term(Expr::value(token.number), token.column);
      case TokenKind::kText:
        return text_term(token.text, token.column);
      case TokenKind::kTrue:
      case TokenKind::kFalse:
        return term_of(Expr::constant(token.kind == TokenKind::kTrue), token.column);
      case TokenKind::kExists: {
        expect(TokenKind::kOpen, "'(' after exists");
        const Token name = take();
        const auto parameter = model_.find(name.text);
        if (!parameter) throw SyntaxError{name.column, unknown(name.text)};
        expect(TokenKind::kClose, "')'");
        return term_of(Expr::exists(*parameter), token.column);
      }
      case TokenKind::kIf: {
        Expr condition = boolean(formula());
        expect(TokenKind::kThen, "'then'");
        Expr consequence = boolean(formula());
        if (!accept(TokenKind::kElse)) {
          return term_of(Expr::implies(std::move(condition), std::move(consequence)), token.column);
        }
        Expr otherwise = boolean(formula());
        return term_of(
            Expr::all_of({Expr::implies(condition, std::move(consequence)),
                          Expr::implies(Expr::negation(condition), std::move(otherwise))}),
            token.column);
      }
      case TokenKind::kOpen: {
        Term inner = formula();
        expect(TokenKind::kClose, "')'");
        return inner;
      }
      case TokenKind::kName:
      case TokenKind::kQuotedName:
        return named(token);
      default:
        throw SyntaxError{token.column,
                          fmt::format("a name, number or text expected, not '{}'", token.text)};
    }
  }

  Term named(const Token& token) {
    if (const auto index = model_.find(token.text)) {
      const ModelParameter& parameter = model_.parameters[*index];
      if (!parameter.numbers.empty()) return number_term(Expr::numeric(*index), token.column);
      Term out;
      out.column = token.column;
      out.parameter = *index;
      out.text = token.text;
      if (is_bool_parameter(parameter)) {
        out.expr = Expr::level_in(*index, levels_named(*index, "true"));
        return out;
      }
      out.type = TermType::kText;
      return out;
    }
    if (constants_) {
      if (const auto value = constants_(token.text)) {
        if (const auto* number = std::get_if<double>(&*value)) {
          return number_term(Expr::value(*number), token.column);
        }
        if (const auto* flag = std::get_if<bool>(&*value)) {
          return term_of(Expr::constant(*flag), token.column);
        }
        return text_term(std::get<std::string>(*value), token.column);
      }
    }
    Term out = text_term(token.text, token.column);
    out.is_bareword = true;
    return out;
  }

  Expr comparison(CompareOp op, Term left, Term right, std::size_t column) const {
    if (left.type == TermType::kNumber && right.type == TermType::kNumber) {
      return number_comparison(op, std::move(left.expr), std::move(right.expr));
    }
    check_bareword(left, right);
    check_bareword(right, left);
    if (left.type != right.type) {
      throw SyntaxError{column, "the two sides are of different kinds (number, text, true/false)"};
    }
    if (op != CompareOp::kEqual && op != CompareOp::kNotEqual) {
      throw SyntaxError{column, "only numbers have an order; compare these with == or !="};
    }
    Expr equal = left.type == TermType::kBool
                     ? Expr::iff(std::move(left.expr), std::move(right.expr))
                     : text_equal(left, right);
    return op == CompareOp::kEqual ? equal : Expr::negation(std::move(equal));
  }

  /// A bare word must be a level of the text parameter on the other side.
  void check_bareword(const Term& word, const Term& other) const {
    if (!word.is_bareword) return;
    if (!other.parameter || other.type != TermType::kText ||
        levels_named(*other.parameter, word.text).empty()) {
      throw SyntaxError{word.column, unknown(word.text)};
    }
  }

  Expr number_comparison(CompareOp op, Expr left, Expr right) const {
    Expr compare = Expr::compare(op, std::move(left), std::move(right));
    const std::vector<std::uint32_t> read = parameters_of(compare);
    if (read.size() > 1) return compare;
    const auto number = [&](std::uint32_t p, int level) { return number_of(model_, p, level); };
    const auto truth_at = [&](int level) {
      return evaluate(
                 compare, [level](std::uint32_t) { return level; }, number) == Truth::kTrue;
    };
    if (read.empty()) return Expr::constant(truth_at(0));
    std::vector<std::uint16_t> levels;
    for (std::size_t level = 0; level < model_.parameters[read[0]].levels.size(); ++level) {
      if (truth_at(static_cast<int>(level))) levels.push_back(static_cast<std::uint16_t>(level));
    }
    return Expr::level_in(read[0], std::move(levels));
  }

  Expr text_equal(const Term& left, const Term& right) const {
    if (!left.parameter && !right.parameter) return Expr::constant(left.text == right.text);
    if (!left.parameter) return text_equal(right, left);
    if (!right.parameter) {
      return Expr::level_in(*left.parameter, levels_named(*left.parameter, right.text));
    }
    std::vector<Expr> alternatives;
    const std::vector<std::string>& levels = model_.parameters[*left.parameter].levels;
    for (std::size_t level = 0; level < levels.size(); ++level) {
      const auto same = levels_named(*right.parameter, levels[level]);
      if (same.empty()) continue;
      alternatives.push_back(
          Expr::all_of({Expr::level_in(*left.parameter, {static_cast<std::uint16_t>(level)}),
                        Expr::level_in(*right.parameter, same)}));
    }
    if (alternatives.empty()) return Expr::constant(false);
    return Expr::any_of(std::move(alternatives));
  }

  std::vector<std::uint16_t> levels_named(std::uint32_t parameter, std::string_view text) const {
    std::vector<std::uint16_t> out;
    const std::vector<std::string>& levels = model_.parameters[parameter].levels;
    for (std::size_t level = 0; level < levels.size(); ++level) {
      if (levels[level] == text) out.push_back(static_cast<std::uint16_t>(level));
    }
    return out;
  }

  std::string unknown(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const ModelParameter& parameter : model_.parameters) {
      if (names.size() < 12) names.push_back(parameter.name);
    }
    return fmt::format("unknown factor '{}'; there are: {}{} (text needs quotes)", name,
                       fmt::join(names, ", "), model_.parameters.size() > 12 ? ", ..." : "");
  }

  Expr boolean(Term term) const {
    if (term.is_bareword) throw SyntaxError{term.column, unknown(term.text)};
    if (term.type != TermType::kBool) {
      throw SyntaxError{term.column, term.type == TermType::kNumber
                                         ? "a number where a condition is expected; compare it"
                                         : "text where a condition is expected; compare it"};
    }
    return std::move(term.expr);
  }

  Expr number(Term term) const {
    if (term.is_bareword) throw SyntaxError{term.column, unknown(term.text)};
    if (term.type != TermType::kNumber) throw SyntaxError{term.column, "a number is expected here"};
    return std::move(term.expr);
  }

  static Term term_of(Expr expr, std::size_t column) {
    Term out;
    out.expr = std::move(expr);
    out.column = column;
    return out;
  }
  static Term number_term(Expr expr, std::size_t column) {
    Term out = term_of(std::move(expr), column);
    out.type = TermType::kNumber;
    return out;
  }
  static Term text_term(std::string text, std::size_t column) {
    Term out;
    out.type = TermType::kText;
    out.text = std::move(text);
    out.column = column;
    return out;
  }

  const CoverModel& model_;
  const ConstantLookup& constants_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expr> parse_constraint(std::string_view text, const CoverModel& model,
                              std::string_view where, const ConstantLookup& constants) {
  const auto refuse = [&](std::size_t column, std::string_view what) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: at {}: column {}: {}, in '{}'", model.source,
                                                  where, column, what, shortened(text, 200)));
  };
  if (text.size() > kLongest) return refuse(1, "a constraint this long is not taken; split it");
  Lexed lexed = lex_constraint(text);
  if (!lexed.error.empty()) return refuse(lexed.column, lexed.error);
  try {
    return Parser(model, constants, std::move(lexed.tokens)).parse();
  } catch (const SyntaxError& error) {
    return refuse(error.column, error.what);
  }
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (Token& token : lex_constraint(text).tokens) {
    if (token.kind == TokenKind::kName) names.push_back(std::move(token.text));
  }
  return names;
}

}  // namespace greynic::language
