#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "greynic/core/units.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/language/constraint_language.h"
#include "greynic/language/mask_group.h"
#include "greynic/language/model_reader.h"

namespace greynic::language {

namespace {

using nlohmann::json;

std::string level_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  return number_to_string(value.get<double>());
}

class JsonModelReader {
 public:
  explicit JsonModelReader(const std::string& source) { model_.source = source; }

  Result<CoverModel> read(const json& document) {
    if (document.contains("strength")) model_.strength = document["strength"].get<int>();
    if (document.contains("parameters")) {
      if (auto done = parameters(document["parameters"]); !done) return pass_on(done);
    }
    if (document.contains("masks")) {
      if (auto done = masks(document["masks"], document.value("mask_order", false)); !done)
        return pass_on(done);
    }
    if (model_.parameters.empty()) {
      return files::bad_value(model_.source, "/", "the model has no parameters and no masks");
    }
    if (document.contains("parameters")) {
      if (auto done = conditions(document["parameters"]); !done) return pass_on(done);
    }
    if (auto done = constraints(document); !done) return pass_on(done);
    if (auto done = tables(document); !done) return pass_on(done);
    if (auto done = partial_rows(document); !done) return pass_on(done);
    if (auto done = sub_models(document); !done) return pass_on(done);
    return std::move(model_);
  }

 private:
  tl::unexpected<Error> bad(const std::string& path, const std::string& reason) const {
    return files::bad_value(model_.source, path, reason);
  }

  Result<void> parameters(const json& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json& entry = list[i];
      const std::string path = fmt::format("/parameters/{}", i);
      ModelParameter parameter;
      parameter.name = entry["name"].get<std::string>();
      if (model_.find(parameter.name)) {
        return bad(path, fmt::format("a second parameter '{}'", parameter.name));
      }
      const json& levels = entry["levels"];
      bool numeric = true;
      std::set<std::string> seen;  // the schema's uniqueItems compares each with each
      for (const json& level : levels) {
        numeric = numeric && level.is_number();
        parameter.levels.push_back(level_text(level));
        if (!seen.insert(parameter.levels.back()).second) {
          return bad(path + "/levels",
                     fmt::format("'{}' stands twice; remove one", parameter.levels.back()));
        }
      }
      for (const json& level : levels) {
        if (numeric) parameter.numbers.push_back(level.get<double>());
      }
      for (const auto& [key, to] :
           {std::pair{"weights", &parameter.weights}, std::pair{"costs", &parameter.costs}}) {
        if (!entry.contains(key)) continue;
        *to = entry[key].get<std::vector<double>>();
        if (to->size() != levels.size()) {
          return bad(path + "/" + key,
                     fmt::format("{} numbers for {} levels", to->size(), levels.size()));
        }
      }
      parameter.covered = entry.value("covered", true);
      if (auto done = negative_levels(entry, parameter, path); !done) return done;
      model_.parameters.push_back(std::move(parameter));
    }
    return {};
  }

  Result<void> negative_levels(const json& entry, ModelParameter& parameter,
                               const std::string& path) const {
    if (!entry.contains("negative")) return {};
    parameter.negative.resize(parameter.levels.size());
    for (const json& level : entry["negative"]) {
      const auto found =
          std::find(parameter.levels.begin(), parameter.levels.end(), level_text(level));
      if (found == parameter.levels.end()) {
        return bad(path + "/negative", fmt::format("'{}' is no level", level_text(level)));
      }
      parameter.negative[static_cast<std::size_t>(found - parameter.levels.begin())] = true;
    }
    return {};
  }

  Result<void> masks(const json& list, bool ordered) {
    const auto groups = files::mask_groups_from_json(list, model_.source);
    if (!groups) return pass_on(groups);
    for (std::size_t i = 0; i < groups->size(); ++i) {
      if (auto added = add_mask_group((*groups)[i], model_); !added) {
        return bad(fmt::format("/masks/{}", i), added.error().message);
      }
    }
    if (!ordered) return {};
    if (auto added = add_mask_order(*groups, model_); !added) {
      return bad("/mask_order", added.error().message);
    }
    return {};
  }

  Result<void> conditions(const json& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].contains("only_if")) continue;
      const std::string path = fmt::format("/parameters/{}/only_if", i);
      auto condition = parse_constraint(list[i]["only_if"].get<std::string>(), model_, path);
      if (!condition) return pass_on(condition);
      const std::vector<std::uint32_t> read = parameters_of(*condition);
      if (std::find(read.begin(), read.end(), i) != read.end()) {
        return bad(path, "a parameter cannot depend on itself");
      }
      model_.parameters[i].only_if = std::move(*condition);
    }
    return {};
  }

  Result<void> constraints(const json& document) {
    if (!document.contains("constraints")) return {};
    const json& list = document["constraints"];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string where = fmt::format("/constraints/{}", i);
      const std::string text = list[i].get<std::string>();
      auto expression = parse_constraint(text, model_, where);
      if (!expression) return pass_on(expression);
      model_.constraints.push_back({std::move(*expression), text, where});
    }
    return {};
  }

  /// The level that a value names; kBadInput when there is none.
  Result<std::pair<std::uint32_t, std::uint16_t>> level(const std::string& name, const json& value,
                                                        const std::string& path) const {
    const auto parameter = model_.find(name);
    if (!parameter) return bad(path, fmt::format("unknown parameter '{}'", name));
    const std::vector<std::string>& levels = model_.parameters[*parameter].levels;
    const auto found = std::find(levels.begin(), levels.end(), level_text(value));
    if (found == levels.end()) {
      return bad(path, fmt::format("'{}' is no level of '{}'", level_text(value), name));
    }
    return std::pair{*parameter, static_cast<std::uint16_t>(found - levels.begin())};
  }

  Result<void> tables(const json& document) {
    if (!document.contains("tables")) return {};
    for (std::size_t i = 0; i < document["tables"].size(); ++i) {
      const json& table = document["tables"][i];
      const auto names = table["parameters"].get<std::vector<std::string>>();
      std::vector<Expr> rows;
      for (std::size_t r = 0; r < table["allowed"].size(); ++r) {
        const json& row = table["allowed"][r];
        const std::string path = fmt::format("/tables/{}/allowed/{}", i, r);
        if (row.size() != names.size()) {
          return bad(path, fmt::format("{} values for {} parameters", row.size(), names.size()));
        }
        std::vector<Expr> cells;
        for (std::size_t c = 0; c < names.size(); ++c) {
          const auto cell = level(names[c], row[c], path);
          if (!cell) return pass_on(cell);
          cells.push_back(Expr::level_in(cell->first, {cell->second}));
        }
        rows.push_back(Expr::all_of(std::move(cells)));
      }
      model_.constraints.push_back({Expr::any_of(std::move(rows)),
                                    fmt::format("table of {}", fmt::join(names, ", ")),
                                    fmt::format("/tables/{}", i)});
    }
    return {};
  }

  Result<void> partial_rows(const json& document) {
    for (const std::string key : {"forbidden", "seeds", "already_run"}) {
      if (!document.contains(key)) continue;
      for (std::size_t i = 0; i < document[key].size(); ++i) {
        const std::string path = fmt::format("/{}/{}", key, i);
        Clause clause;
        std::vector<int> row(model_.parameters.size(), -1);
        for (const auto& [name, value] : document[key][i].items()) {
          const auto cell = level(name, value, path);
          if (!cell) return pass_on(cell);
          clause.push_back({cell->first, cell->second, false});
          row[cell->first] = cell->second;
        }
        if (key == "forbidden") {
          model_.clauses.push_back(std::move(clause));
          model_.clause_where.push_back(path);
          continue;
        }
        if (key == "already_run") {
          if (auto whole = check_whole(row, path); !whole) return whole;
        }
        (key == "seeds" ? model_.seeds : model_.already).push_back(std::move(row));
      }
    }
    return {};
  }

  /// What was run had a level of every parameter that is always there.
  Result<void> check_whole(const std::vector<int>& row, const std::string& path) const {
    for (std::size_t p = 0; p < row.size(); ++p) {
      if (row[p] >= 0 || model_.parameters[p].only_if) continue;
      return bad(path, fmt::format("'{}' is missing; a row that was run has a level of every "
                                   "parameter that is always there",
                                   model_.parameters[p].name));
    }
    return {};
  }

  Result<void> sub_models(const json& document) {
    if (!document.contains("sub_models")) return {};
    for (std::size_t i = 0; i < document["sub_models"].size(); ++i) {
      const json& entry = document["sub_models"][i];
      const std::string path = fmt::format("/sub_models/{}", i);
      SubModel group;
      group.strength = entry["strength"].get<int>();
      for (const json& name : entry["parameters"]) {
        const auto parameter = model_.find(name.get<std::string>());
        if (!parameter) {
          return bad(path, fmt::format("unknown parameter '{}'", name.get<std::string>()));
        }
        group.parameters.push_back(*parameter);
      }
      std::sort(group.parameters.begin(), group.parameters.end());
      group.parameters.erase(std::unique(group.parameters.begin(), group.parameters.end()),
                             group.parameters.end());
      if (static_cast<std::size_t>(group.strength) > group.parameters.size()) {
        return bad(path, fmt::format("strength {} among {} parameters", group.strength,
                                     group.parameters.size()));
      }
      model_.groups.push_back(std::move(group));
    }
    return {};
  }

  CoverModel model_;
};

}  // namespace

Result<CoverModel> parse_json_model(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (auto checked = files::check_schema(*document, "cover_model", source); !checked) {
    return pass_on(checked);
  }
  return JsonModelReader(source).read(*document);
}

}  // namespace greynic::language
