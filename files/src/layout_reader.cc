#include "layout_reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "json_builder.h"
#include "rule_text.h"

namespace greynic::files {

using nlohmann::json;

namespace {

/// The text without what indents its lines, almost half of a layout. No text of JSON goes over the
/// end of a line, so nothing else is left out.
class Unindented {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Unindented(const char* at, const char* end) : at_(at), end_(end) {}
  reference operator*() const { return *at_; }
  Unindented& operator++() {
    if (*at_++ != '\n') return *this;
    while (at_ != end_ && *at_ == ' ') ++at_;
    return *this;
  }
  Unindented operator++(int) {
    const Unindented before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Unindented& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char* end_;
};

/// The keys of an object, in the order of an enumeration.
template <typename Key, std::size_t kCount>
struct Keys {
  std::array<std::string_view, kCount> names;
  unsigned needed;  ///< a bit for each that must stand
  unsigned seen = 0;
  Key last = {};

  void begin() { seen = 0; }
  /// False for a key that is unknown, or stands twice.
  bool take(std::string_view name) {
    const auto known = std::find(names.begin(), names.end(), name);
    const unsigned bit = 1U << (known - names.begin());
    if (known == names.end() || (seen & bit) != 0) return false;
    seen |= bit;
    last = static_cast<Key>(known - names.begin());
    return true;
  }
  [[nodiscard]] bool has_all() const { return (seen & needed) == needed; }
};

/// Makes tables of the events between the brackets of a list of them. Each answer is false where
/// something is not as in layouts that greynic writes.
class TablesFiller {
 public:
  explicit TablesFiller(Builder& budget) : budget_(budget) {}

  bool key(std::string& name) {
    switch (at_) {
      case At::kTable:
        return table_keys_.take(name);
      case At::kMatcher:
        return matcher_keys_.take(name);
      case At::kRule:
        return rule_keys_.take(name);
      case At::kAction: {
        const auto [entry, is_first] = action_.emplace(name, nullptr);
        member_ = &*entry;
        return is_first;
      }
      default:
        return field_key(name);
    }
  }

  bool start_object() {
    switch (at_) {
      case At::kTables:
        table_ = {};
        table_keys_.begin();
        at_ = At::kTable;
        return true;
      case At::kMatchers:
        matcher_ = {};
        matcher_keys_.begin();
        at_ = At::kMatcher;
        return true;
      case At::kRules:
        rule_ = kNoRule;
        rule_keys_.begin();
        at_ = At::kRule;
        return true;
      case At::kActions:
        action_ = json::object();
        at_ = At::kAction;
        return true;
      case At::kMatcher:
      case At::kRule:
        fields_seen_ = 0;
        if (at_ == At::kRule ? rule_keys_.last != kMatch : matcher_keys_.last != kMask)
          return false;
        at_ = at_ == At::kRule ? At::kMatch : At::kMask;
        return true;
      default:
        return false;
    }
  }

  bool end_object() {
    switch (at_) {
      case At::kTable:
        at_ = At::kTables;
        return table_keys_.has_all() && end_table();
      case At::kMatcher:
        at_ = At::kMatchers;
        return matcher_keys_.has_all() && end_matcher();
      case At::kRule:
        at_ = At::kRules;
        return rule_keys_.has_all() && end_rule();
      case At::kAction:
        at_ = At::kActions;
        return end_action();
      default:
        at_ = at_ == At::kMatch ? At::kRule : At::kMatcher;
        return true;
    }
  }

  bool start_array() {
    if (at_ == At::kTable && table_keys_.last == kMatchers) {
      at_ = At::kMatchers;
    } else if (at_ == At::kMatcher && matcher_keys_.last == kRules) {
      at_ = At::kRules;
    } else if (at_ == At::kRule && rule_keys_.last == kActions) {
      at_ = At::kActions;
    } else if (at_ == At::kRule && rule_keys_.last == kFrom) {
      at_ = At::kFrom;
    } else {
      return false;
    }
    return true;
  }
  /// Of the tables themselves, when none of them is open.
  void end_array() {
    at_ = at_ == At::kMatchers ? At::kTable : at_ == At::kRules ? At::kMatcher : At::kRule;
  }
  [[nodiscard]] bool is_done() const { return at_ == At::kTables; }

  bool string(std::string& text) {
    if (at_ == At::kMatch) return !text.empty() && set_from_text(rule_.match, field_, text);
    if (at_ == At::kMask) {
      const bool is_number = text.starts_with("0x") && text.size() <= kMaskLetters;
      return (is_number || text == "range") && add_from_text(matcher_.mask, field_, text);
    }
    if (at_ == At::kAction) *member_ = std::move(text);
    return at_ == At::kAction;
  }
  bool boolean(bool value) {
    if (at_ == At::kAction) {
      *member_ = value;
    } else if (at_ == At::kTable && table_keys_.last == kSoftware) {
      table_.software = value;
    } else {
      return false;
    }
    return true;
  }
  bool number(std::uint64_t value) {
    if (at_ == At::kAction) {
      *member_ = value;
      return true;
    }
    if (at_ == At::kRule) return number(static_cast<double>(value));
    if (value > std::numeric_limits<std::uint32_t>::max()) return false;
    const auto index = static_cast<std::uint32_t>(value);
    if (at_ == At::kFrom) {
      rule_.from.push_back(index);
    } else if (at_ == At::kMatcher && matcher_keys_.last == kPriority) {
      matcher_.priority = index;
    } else if (at_ == At::kMatcher && matcher_keys_.last == kIdleSeconds) {
      matcher_.idle_seconds = index;
    } else if (at_ == At::kTable && table_keys_.last == kId) {
      table_.id = index;
    } else {
      return false;
    }
    return true;
  }
  bool number(double value) {
    if (at_ != At::kRule || rule_keys_.last != kWeight || !(value >= 0.0 && value <= 1.0)) {
      return false;
    }
    rule_.weight = value;
    return true;
  }

  std::vector<LayoutTable> tables() {
    ids_.clear();
    return std::exchange(tables_, {});
  }

 private:
  enum class At {
    kTables,
    kTable,
    kMatchers,
    kMatcher,
    kMask,
    kRules,
    kRule,
    kMatch,
    kActions,
    kAction,
    kFrom
  };
  enum TableKey : std::uint8_t { kId, kMatchers, kSoftware };
  enum MatcherKey : std::uint8_t { kMask, kRules, kPriority, kIdleSeconds };
  enum RuleKey : std::uint8_t { kMatch, kActions, kWeight, kFrom };
  static constexpr std::size_t kMaskLetters = 34;
  static constexpr double kBlockBytes = 16.0;  // that the allocator adds to each of its blocks
  inline static const FlowRule kNoRule = {};

  bool field_key(const std::string& name) {
    auto known = std::find_if(fields_.begin(), fields_.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (known == fields_.end()) {
      const auto field = match_field_named(name);
      if (!field) return false;
      known = fields_.insert(known, {name, *field});
    }
    field_ = known->second;
    const U128 bit = U128{1} << static_cast<unsigned>(field_);
    return (std::exchange(fields_seen_, fields_seen_ | bit) & bit) == 0;
  }

  bool end_action() {
    auto read = action_from_json(action_, {}, {});
    if (!read || !is_usual(*read) || to_json(*read) != action_) return false;
    rule_.actions.push_back(std::move(*read));
    return true;
  }

  /// The bounds of the schema.
  static bool is_usual(const Action& action) {
    switch (action.kind) {
      case ActionKind::kForward:
      case ActionKind::kOther:
        return !action.text.empty();
      case ActionKind::kJump:
      case ActionKind::kMeter:
        return action.number <= std::numeric_limits<std::uint32_t>::max();
      case ActionKind::kVxlanEncap:
        return action.number < 1U << 24;
      case ActionKind::kPushVlan:
        return action.number < 1U << 12;
      default:
        return true;
    }
  }

  bool end_rule() {
    double bytes = bytes_of(rule_.match.fields()) + bytes_of(rule_.match.ranges()) +
                   bytes_of(rule_.actions) + bytes_of(rule_.from);
    for (const Action& action : rule_.actions) bytes += static_cast<double>(action.text.size());
    budget_.take(bytes + kGrowth * sizeof(FlowRule));
    rules_.push_back(rule_);  // a copy has no room to spare
    return true;
  }

  bool end_matcher() {
    for (FlowRule& rule : rules_) {
      if (!is_under(rule.match, matcher_.mask)) return false;
      rule.priority = matcher_.priority;
    }
    move_all(rules_, matcher_.rules);
    budget_.take(bytes_of(matcher_.mask.fields()) + bytes_of(matcher_.mask.ranges()) +
                 kGrowth * sizeof(Matcher));
    matchers_.push_back(std::move(matcher_));
    return true;
  }

  bool end_table() {
    if (!ids_.insert(table_.id).second) return false;
    move_all(matchers_, table_.matchers);
    for (Matcher& matcher : table_.matchers) {
      for (FlowRule& rule : matcher.rules) rule.table = table_.id;
    }
    budget_.take(kGrowth * sizeof(LayoutTable) + 2 * kBlockBytes);
    tables_.push_back(std::move(table_));
    return true;
  }

  /// Into a list without room to spare.
  template <typename T>
  static void move_all(std::vector<T>& from, std::vector<T>& to) {
    to.assign(std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  }
  template <typename T>
  static double bytes_of(const std::vector<T>& list) {
    return list.empty() ? 0.0 : static_cast<double>(list.size() * sizeof(T)) + kBlockBytes;
  }
  static constexpr double kGrowth =
      3.0;  // a list that grows is there twice, once with room to spare

  Builder& budget_;
  At at_ = At::kTables;
  Keys<TableKey, 3> table_keys_{{"id", "matchers", "software"}, 1U << kId | 1U << kMatchers};
  Keys<MatcherKey, 4> matcher_keys_{{"mask", "rules", "priority", "idle_seconds"},
                                    1U << kMask | 1U << kRules};
  Keys<RuleKey, 4> rule_keys_{{"match", "actions", "weight", "from"},
                              1U << kMatch | 1U << kActions};

  std::vector<LayoutTable> tables_;
  std::unordered_set<std::uint32_t> ids_;
  LayoutTable table_;
  std::vector<Matcher> matchers_;  ///< of the table
  Matcher matcher_;
  std::vector<FlowRule> rules_;  ///< of the matcher
  FlowRule rule_;
  json action_;
  json* member_ = nullptr;  ///< of the action: what its last key names

  std::vector<std::pair<std::string, MatchField>> fields_;  ///< that the text names
  MatchField field_ = MatchField::kInPort;                  ///< of the mask or the match
  U128 fields_seen_ = 0;
  static_assert(kMatchFieldCount <= 128);
};

/// Takes the lists of tables out of the events, and makes the frame of the others.
class PartsBuilder final : public nlohmann::json_sax<json> {
 public:
  PartsBuilder(LayoutParts& parts, std::size_t text_bytes)
      : parts_(parts), frame_(parts.frame, text_bytes), filler_(frame_) {}

  bool null() override { return !in_tables_ && frame_.null(); }
  bool boolean(bool value) override {
    return in_tables_ ? filler_.boolean(value) : frame_.boolean(value);
  }
  bool number_integer(number_integer_t value) override {
    return !in_tables_ && frame_.number_integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return in_tables_ ? filler_.number(std::uint64_t{value}) : frame_.number_unsigned(value);
  }
  bool number_float(number_float_t value, const string_t& written) override {
    return in_tables_ ? filler_.number(value) : frame_.number_float(value, written);
  }
  bool string(string_t& value) override {
    return in_tables_ ? filler_.string(value) : frame_.string(value);
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t size) override {
    if (in_tables_) return filler_.start_object();
    return frame_.depth() < kMostDepth && frame_.start_object(size);
  }
  bool end_object() override { return in_tables_ ? filler_.end_object() : frame_.end_object(); }
  bool start_array(std::size_t size) override {
    if (in_tables_) return filler_.start_array();
    in_tables_ = key_is_tables_;
    return frame_.depth() < kMostDepth && frame_.start_array(size);
  }
  bool end_array() override {
    if (in_tables_ && !filler_.is_done()) {
      filler_.end_array();
      return true;
    }
    if (std::exchange(in_tables_, false)) parts_.tables.push_back(filler_.tables());
    return frame_.end_array();
  }
  bool key(string_t& name) override {
    if (in_tables_) return filler_.key(name);
    key_is_tables_ = name == "tables";
    return frame_.key(name);
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  LayoutParts& parts_;
  Builder frame_;
  TablesFiller filler_;
  bool key_is_tables_ = false;
  bool in_tables_ = false;
};

}  // namespace

bool is_under(const Match& match, const Mask& mask) {
  return std::equal(match.fields().begin(), match.fields().end(), mask.fields().begin(),
                    mask.fields().end(),
                    [](const FieldMatch& part, const FieldMask& looked_at) {
                      return part.field == looked_at.field && part.bits == looked_at.bits;
                    }) &&
         std::equal(match.ranges().begin(), match.ranges().end(), mask.ranges().begin(),
                    mask.ranges().end(), [](const FieldRange& part, MatchField looked_at) {
                      return part.field == looked_at;
                    });
}

std::optional<LayoutParts> layout_parts(std::string_view text) {
  LayoutParts parts;
  PartsBuilder builder(parts, text.size());
  const char* const end = text.data() + text.size();
  try {
    if (!json::sax_parse(Unindented(text.data(), end), Unindented(end, end), &builder,
                         json::input_format_t::json, true, true)) {
      return std::nullopt;
    }
  } catch (const Refused&) {
    return std::nullopt;
  }
  return parts;
}

}  // namespace greynic::files
