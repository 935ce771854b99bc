#include <fmt/core.h>

#include <set>

#include "greynic/core/check.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "layout_reader.h"
#include "layout_writer.h"

namespace greynic::files {

using nlohmann::json;

namespace {

Result<FlowRule> layout_rule_from_json(const json& object, const Matcher& matcher,
                                       std::uint32_t table, const std::string& source,
                                       const std::string& here) {
  FlowRule rule;
  rule.table = table;
  rule.priority = matcher.priority;
  auto match = match_from_json(object.at("match"), source, here + "/match");
  if (!match) return pass_on(match);
  rule.match = std::move(*match);
  if (!is_under(rule.match, matcher.mask)) {
    return bad_value(source, here + "/match",
                     fmt::format("looks at {}, but its matcher's mask is {}",
                                 to_string(rule.match.mask()), to_string(matcher.mask)));
  }
  for (const json& item : object.at("actions")) {
    auto action = action_from_json(item, source, here + "/actions");
    if (!action) return pass_on(action);
    rule.actions.push_back(std::move(*action));
  }
  rule.weight = object.value("weight", 0.0);
  rule.from = object.value("from", std::vector<std::uint32_t>{});
  return rule;
}

bool has_models(const json& document) {
  return document.is_object() && document.contains("models");
}

/// Of a layout, or of layouts for models. It comes of the text, so that the format is written in one place.
template <typename Written>
json document_of(const Written& layout) {
  std::string text;
  const auto written = write_text_of(layout, [&](std::string_view piece) -> Result<void> {
    text += piece;
    return {};
  });
  GREYNIC_CHECK(written.has_value());
  return json::parse(text);
}

template <typename Written>
Result<void> write_file_of(const Written& layout, const std::string& path) {
  auto file = OutputFile::open(path);
  if (!file) return pass_on(file);
  const auto to_file = [&](std::string_view text) { return file->write(text); };
  if (auto written = write_text_of(layout, to_file); !written) return written;
  return file->finish();
}

/// Nothing where the text is not as good layouts are: what is wrong, its tree tells.
std::optional<ModelLayouts> layouts_by_parts(std::string_view text) {
  auto parts = layout_parts(text);
  if (!parts) return std::nullopt;
  auto layouts = model_layouts_from_json(parts->frame, {});
  if (!layouts || layouts->size() != parts->tables.size()) return std::nullopt;
  for (std::size_t i = 0; i < layouts->size(); ++i) {
    Layout& layout = (*layouts)[i].layout;
    layout.tables = std::move(parts->tables[i]);
    if (endless_jumps(layout)) return std::nullopt;
  }
  return std::move(*layouts);
}

}  // namespace

Result<Layout> layout_from_json(const json& document, const std::string& source) {
  if (auto fits = check_schema(document, "layout", source); !fits) return pass_on(fits);
  Layout layout;
  std::set<std::uint32_t> ids;
  try {
    for (const json& table_json : document.at("tables")) {
      const std::string at_table = fmt::format("/tables/{}", layout.tables.size());
      LayoutTable table;
      table.id = table_json.at("id").get<std::uint32_t>();
      table.software = table_json.value("software", false);
      if (!ids.insert(table.id).second) return bad_value(source, at_table + "/id", "stands twice");
      for (const json& matcher_json : table_json.at("matchers")) {
        const std::string here = fmt::format("{}/matchers/{}", at_table, table.matchers.size());
        Matcher matcher;
        auto mask = mask_from_json(matcher_json.at("mask"), source, here + "/mask");
        if (!mask) return pass_on(mask);
        matcher.mask = std::move(*mask);
        matcher.priority = matcher_json.value("priority", RulePriority{0});
        matcher.idle_seconds = matcher_json.value("idle_seconds", std::uint32_t{0});
        for (const json& rule_json : matcher_json.at("rules")) {
          auto rule = layout_rule_from_json(rule_json, matcher, table.id, source,
                                            fmt::format("{}/rules/{}", here, matcher.rules.size()));
          if (!rule) return pass_on(rule);
          matcher.rules.push_back(std::move(*rule));
        }
        table.matchers.push_back(std::move(matcher));
      }
      layout.tables.push_back(std::move(table));
    }
  } catch (const json::exception& error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", source, error.what()));
  }
  if (const auto table = endless_jumps(layout)) {
    return bad_value(source, fmt::format("/tables/{}", *table),
                     "lies on a loop of jumps, or behind one, that do not change the packet: it "
                     "could go round for ever; let one of the jumps lead elsewhere");
  }
  return layout;
}

Result<Layout> layout_from_text(std::string_view text, const std::string& source) {
  if (auto layouts = layouts_by_parts(text); layouts && is_for_all(*layouts)) {
    return std::move(layouts->front().layout);
  }
  const auto document = parse_json(text, source);
  if (!document) return pass_on(document);
  if (has_models(*document)) {
    return fail(ErrorCode::kBadInput,
                source +
                    ": has a layout for each model of a fleet, and here one layout is asked for; "
                    "`apply`, `verify` and `tune --layout` take it whole");
  }
  return layout_from_json(*document, source);
}

Result<Layout> read_layout(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return pass_on(text);
  return layout_from_text(*text, path);
}

Result<ModelLayouts> model_layouts_from_json(const json& document, const std::string& source) {
  if (!has_models(document)) {
    auto layout = layout_from_json(document, source);
    if (!layout) return pass_on(layout);
    return ModelLayouts{{{}, std::move(*layout)}};
  }
  if (auto fits = check_schema(document, "model_layouts", source); !fits) return pass_on(fits);
  ModelLayouts layouts;
  std::set<std::string> seen;
  for (const json& part : document.at("models")) {
    const std::string here = fmt::format("/models/{}", layouts.size());
    ModelLayout made{part.at("names").get<std::vector<std::string>>(), {}};
    for (const std::string& name : made.models) {
      if (!seen.insert(name).second) {
        return bad_value(source, here + "/names",
                         fmt::format("'{}' has a layout already; leave one of the two out", name));
      }
    }
    auto layout = layout_from_json({{"version", 1}, {"tables", part.at("tables")}}, source + here);
    if (!layout) return pass_on(layout);
    made.layout = std::move(*layout);
    layouts.push_back(std::move(made));
  }
  return layouts;
}

Result<ModelLayouts> model_layouts_from_text(std::string_view text, const std::string& source) {
  if (auto layouts = layouts_by_parts(text)) return std::move(*layouts);
  const auto document = parse_json(text, source);
  if (!document) return pass_on(document);
  return model_layouts_from_json(*document, source);
}

Result<ModelLayouts> read_model_layouts(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return pass_on(text);
  return model_layouts_from_text(*text, path);
}

json to_json(const Layout& layout) { return document_of(layout); }
json to_json(const ModelLayouts& layouts) { return document_of(layouts); }

Result<void> write_layout(const Layout& layout, const std::string& path) {
  return write_file_of(layout, path);
}
Result<void> write_model_layouts(const ModelLayouts& layouts, const std::string& path) {
  return write_file_of(layouts, path);
}

}  // namespace greynic::files
