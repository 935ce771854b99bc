#include "layout_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "rule_text.h"

namespace greynic::files {

using nlohmann::json;

namespace {

/// JSON as json_text() writes it with an indent of 1.
class JsonLines {
 public:
  explicit JsonLines(const TextSink& sink) : sink_(sink) {}

  void begin(char bracket) {
    place();
    text_ += bracket;
    ++depth_;
    is_first_ = true;
  }
  void end(char bracket) {
    --depth_;
    if (!is_first_) new_line();
    text_ += bracket;
    is_first_ = false;
    if (text_.size() > kFlushed) flush();
  }
  void key(std::string_view name) {
    place();
    text_ += '"';
    text_ += name;
    text_ += "\": ";
    behind_key_ = true;
  }
  /// Nothing in it needs an escape.
  void plain_string(std::string_view value) {
    place();
    text_ += '"';
    text_ += value;
    text_ += '"';
  }
  void number(std::uint64_t value) {
    place();
    fmt::format_to(std::back_inserter(text_), "{}", value);
  }
  void scalar(const json& value) {
    place();
    text_ += json_text(value);
  }

  Result<void> finish() {
    text_ += '\n';
    flush();
    return std::move(written_);
  }
  [[nodiscard]] bool failed() const { return !written_; }

 private:
  static constexpr std::size_t kFlushed = 1 << 16;

  void new_line() {
    text_ += '\n';
    text_.append(depth_, ' ');
  }
  /// Where the next value, or key, is to stand.
  void place() {
    if (std::exchange(behind_key_, false)) return;
    if (depth_ == 0) return;
    if (!std::exchange(is_first_, false)) text_ += ',';
    new_line();
  }
  void flush() {
    if (written_) written_ = sink_(text_);
    text_.clear();
  }

  const TextSink& sink_;
  std::string text_;
  std::size_t depth_ = 0;
  bool is_first_ = true;  ///< in the list or the object
  bool behind_key_ = false;
  Result<void> written_;
};

class LayoutText {
 public:
  explicit LayoutText(JsonLines& out) : out_(out) {}

  void tables(const Layout& layout) {
    out_.key("tables");
    out_.begin('[');
    for (const LayoutTable& one : layout.tables) {
      if (out_.failed()) return;
      table(one);
    }
    out_.end(']');
  }

 private:
  void table(const LayoutTable& table) {
    out_.begin('{');
    out_.key("id");
    out_.number(table.id);
    out_.key("matchers");
    out_.begin('[');
    for (const Matcher& one : table.matchers) matcher(one);
    out_.end(']');
    if (table.software) {
      out_.key("software");
      out_.scalar(true);
    }
    out_.end('}');
  }

  void matcher(const Matcher& matcher) {
    out_.begin('{');
    if (matcher.idle_seconds > 0) {
      out_.key("idle_seconds");
      out_.number(matcher.idle_seconds);
    }
    out_.key("mask");
    fields(texts_of(matcher.mask));
    out_.key("priority");
    out_.number(matcher.priority);
    out_.key("rules");
    out_.begin('[');
    for (const FlowRule& one : matcher.rules) rule(one);
    out_.end(']');
    out_.end('}');
  }

  void rule(const FlowRule& rule) {
    out_.begin('{');
    out_.key("actions");
    out_.begin('[');
    for (const Action& one : rule.actions) {
      const json action = to_json(one);
      out_.begin('{');
      for (const auto& [key, value] : action.items()) {
        out_.key(key);
        out_.scalar(value);
      }
      out_.end('}');
    }
    out_.end(']');
    out_.key("from");
    out_.begin('[');
    for (const std::uint32_t line : rule.from) out_.number(line);
    out_.end(']');
    out_.key("match");
    fields(texts_of(rule.match));
    out_.key("weight");
    out_.scalar(rule.weight);
    out_.end('}');
  }

  void fields(FieldTexts texts) {
    std::sort(texts.begin(), texts.end());
    out_.begin('{');
    for (const auto& [name, text] : texts) {
      out_.key(name);
      out_.plain_string(text);
    }
    out_.end('}');
  }

  JsonLines& out_;
};

Result<void> end_file(JsonLines& out) {
  out.key("version");
  out.number(1);
  out.end('}');
  return out.finish();
}

}  // namespace

bool is_for_all(const ModelLayouts& layouts) {
  return layouts.size() == 1 && layouts.front().models.empty();
}

Result<void> write_text_of(const Layout& layout, const TextSink& sink) {
  JsonLines out(sink);
  out.begin('{');
  LayoutText(out).tables(layout);
  return end_file(out);
}

Result<void> write_text_of(const ModelLayouts& layouts, const TextSink& sink) {
  if (is_for_all(layouts)) return write_text_of(layouts.front().layout, sink);
  JsonLines out(sink);
  LayoutText text(out);
  out.begin('{');
  out.key("models");
  out.begin('[');
  for (const ModelLayout& part : layouts) {
    out.begin('{');
    out.key("names");
    out.begin('[');
    for (const std::string& name : part.models) out.scalar(name);
    out.end(']');
    text.tables(part.layout);
    out.end('}');
  }
  out.end(']');
  return end_file(out);
}

}  // namespace greynic::files
