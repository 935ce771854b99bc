#pragma once

/// Runs the controls of a P4_16 text, of just the constructs that burst_radar.p4 uses: bit<N>
/// variables up to 256 bits, registers, assignments, if and else, casts, and the operators
/// + - & == > |-| ++. Statements are interpreted where they stand in the text; parsers and deparsers
/// are not run: the caller sets header fields. Whatever else stands there ends the test.

#include <bitset>
#include <cctype>
#include <cstdint>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace greynic::p4 {

struct Value {
  std::bitset<256> bits;
  int width = 0;  ///< 0: a literal, of whatever width it meets
  Value() = default;
  Value(std::uint64_t number, int bit_count) : bits(number), width(bit_count) { trim(); }
  void trim() {
    if (width == 0) return;
    for (auto i = static_cast<std::size_t>(width); i < bits.size(); ++i) bits.reset(i);
  }
  [[nodiscard]] std::uint64_t number() const {
    return (bits & std::bitset<256>(UINT64_MAX)).to_ullong();
  }
};

struct Register {
  int width = 0;
  std::vector<Value> cells;
  std::uint64_t reads = 0, writes = 0;
};

class Program {
 public:
  explicit Program(std::string text) {
    text = std::regex_replace(text, std::regex("//[^\n]*"), "");
    std::map<std::string, std::string> defines;
    const std::regex define(R"(#define (\w+) (\w+))");
    for (std::sregex_iterator it(text.begin(), text.end(), define), end; it != end; ++it) {
      defines[(*it)[1]] = (*it)[2];
    }
    text = std::regex_replace(text, std::regex("#[^\n]*"), "");
    const std::regex token(R"(0x[0-9a-fA-F]+|\d+|[A-Za-z_]\w*(?:\.\w+)*|\|-\||\+\+|==|\S)");
    for (std::sregex_iterator it(text.begin(), text.end(), token), end; it != end; ++it) {
      const auto known = defines.find(it->str());
      tokens_.push_back(known == defines.end() ? it->str() : known->second);
    }
    find_declarations();
  }

  std::map<std::string, Register> registers;
  std::map<std::string, Value> variables;  ///< header fields, metadata, and locals
  int clones = 0;

  void run(const std::string& control) {
    at_ = applies_.at(control);
    block(true);
  }

 private:
  void find_declarations() {
    std::string control;
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      if (tokens_[at_] == "register") {  // register < bit < N > > ( SIZE ) name ;
        Register made;
        made.width = std::stoi(tokens_[at_ + 4]);
        made.cells.assign(std::stoul(tokens_[at_ + 8]), Value(0, made.width));
        registers[tokens_[at_ + 10]] = made;
      }
      if (tokens_[at_] == "control") control = tokens_[at_ + 1];
      if (tokens_[at_] == "apply" && tokens_[at_ + 1] == "{") applies_[control] = at_ + 1;
    }
  }
  [[nodiscard]] const std::string& peek() const { return tokens_.at(at_); }
  std::string take() { return tokens_.at(at_++); }
  void expect(const std::string& token) {
    const std::string found = take();
    if (found != token) throw std::runtime_error("expected " + token + ", found " + found);
  }
  void skip_block() {
    int depth = 0;
    do {
      depth += peek() == "{" ? 1 : peek() == "}" ? -1 : 0;
      ++at_;
    } while (depth > 0);
  }
  void block(bool runs) {
    if (!runs) return skip_block();
    expect("{");
    while (peek() != "}") statement();
    expect("}");
  }
  void statement() {
    const std::string first = take();
    if (first == "if") {
      expect("(");
      const bool holds = expression().number() != 0;
      expect(")");
      block(holds);
      if (peek() != "else") return;
      ++at_;
      return block(!holds);
    }
    if (first == "bit") {
      const int width = type_width();
      variables[take()] = Value(0, width);
      return expect(";");
    }
    if (peek() == "(") {
      call(first);
    } else {
      expect("=");
      assign(first, expression());
    }
    expect(";");
  }
  void assign(const std::string& name, Value value) {
    Value& into = variables.at(name);
    value.width = into.width;
    value.trim();
    into = value;
  }
  int type_width() {  // < N >
    expect("<");
    const int width = std::stoi(take());
    expect(">");
    return width;
  }
  void call(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    const std::string object = name.substr(0, dot), method = name.substr(dot + 1);
    expect("(");
    if (name == "clone") {
      while (take() != ")") {
      }
      ++clones;
      return;
    }
    if (method == "read") {
      const std::string into = take();
      expect(",");
      Register& cells = registers.at(object);
      ++cells.reads;
      assign(into, cells.cells.at(expression().number()));
    } else if (method == "write") {
      const std::uint64_t index = expression().number();
      expect(",");
      Register& cells = registers.at(object);
      ++cells.writes;
      Value value = expression();
      value.width = cells.width;
      value.trim();
      cells.cells.at(index) = value;
    } else if (method == "setValid" || method == "setInvalid") {
      variables[object + ".isValid"] = Value(method == "setValid" ? 1 : 0, 1);
    } else if (method != "apply") {  // tables: what they decide is set by the caller
      throw std::runtime_error("no call " + name);
    }
    expect(")");
  }

  static Value binary(const std::string& op, const Value& a, const Value& b) {
    const int width = a.width != 0 ? a.width : b.width;
    const std::uint64_t x = a.number(), y = b.number();
    if (op == "+") return {x + y, width};
    if (op == "-") return {x - y, width};
    if (op == "&") return {x & y, width};
    if (op == "|-|") return {x > y ? x - y : 0, width};
    if (op == "/") return {x / y, width};
    if (op == "==") return {x == y ? 1U : 0U, 1};
    if (op == ">") return {x > y ? 1U : 0U, 1};
    Value both;  // ++
    both.width = a.width + b.width;
    both.bits = a.bits << static_cast<std::size_t>(b.width) | b.bits;
    return both;
  }
  Value expression() {
    static const std::vector<std::vector<std::string>> kLevels = {
        {"=="}, {">"}, {"&"}, {"+", "-", "++", "|-|"}, {"/"}};
    return level(kLevels, 0);
  }
  Value level(const std::vector<std::vector<std::string>>& levels, std::size_t depth) {
    if (depth == levels.size()) return primary();
    Value left = level(levels, depth + 1);
    while (std::find(levels[depth].begin(), levels[depth].end(), peek()) != levels[depth].end()) {
      const std::string op = take();
      left = binary(op, left, level(levels, depth + 1));
    }
    return left;
  }
  Value primary() {
    const std::string token = take();
    if (token == "(") {
      if (peek() == "bit") {
        ++at_;
        const int width = type_width();
        expect(")");
        Value value = primary();
        value.width = width;
        value.trim();
        return value;
      }
      Value value = expression();
      expect(")");
      return value;
    }
    if (std::isdigit(static_cast<unsigned char>(token[0])) != 0) {
      return {std::stoull(token, nullptr, 0), 0};
    }
    if (peek() == "(" && token.ends_with(".isValid")) at_ += 2;
    return variables.at(token);
  }

  std::vector<std::string> tokens_;
  std::map<std::string, std::size_t> applies_;
  std::size_t at_ = 0;
};

}  // namespace greynic::p4
