#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "greynic/core/embedded.h"
#include "greynic/files/json_file.h"
#include "schema_words.h"

namespace greynic::files {

using nlohmann::json;

std::span<const EmbeddedFile> embedded_schemas();  // made by cmake from configs/schema

namespace {

struct Schema {
  json document;
  valijson::Schema compiled;
};

/// A schema of that name, which a process reads once: reading takes longer than checking a file.
/// Throws where it does not make sense; null where there is none.
const Schema* schema_named(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Schema>> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second.get();
  const auto schemas = embedded_schemas();
  const auto found = std::find_if(schemas.begin(), schemas.end(),
                                  [&](const EmbeddedFile& file) { return file.name == name; });
  if (found == schemas.end()) return nullptr;
  auto schema = std::make_unique<Schema>();
  schema->document = json::parse(found->text.begin(), found->text.end());
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema->document),
                        schema->compiled);
  return (known[name] = std::move(schema)).get();
}

}  // namespace

Result<void> check_schema(const json& document, std::string_view schema,
                          const std::string& source) {
  const std::string name = fmt::format("{}.schema.json", schema);
  try {
    const Schema* const rules = schema_named(name);
    if (rules == nullptr) {
      return fail(ErrorCode::kInternal, fmt::format("there is no schema {}", name));
    }
    valijson::Validator validator;
    const valijson::adapters::NlohmannJsonAdapter adapter(document);
    // Complaints are gathered only of a document that fails: each branch of an alternative that a
    // good one does not take would write some, which took a third of the time of a check.
    if (validator.validate(rules->compiled, adapter, nullptr)) return {};
    valijson::ValidationResults results;
    if (validator.validate(rules->compiled, adapter, &results)) return {};
    // The deepest complaint is the most telling one: outer ones only say that a part failed. That
    // an alternative is meant for another constant tells least.
    std::vector<std::string> path;
    std::string complaint = "does not fit the format";
    std::size_t depth = 0;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      const bool is_other_case = error.description.find("'const'") != std::string::npos;
      if (error.context.size() < depth || (error.context.size() == depth && is_other_case))
        continue;
      depth = error.context.size();
      path.clear();
      for (std::size_t i = 1; i < error.context.size(); ++i) {
        const std::string& part = error.context[i];
        path.push_back(part.size() > 2 && part.front() == '[' ? part.substr(1, part.size() - 2)
                                                              : part);
      }
      complaint = error.description;
    }
    return bad_value(source, fmt::format("/{}", fmt::join(path, "/")),
                     fmt::format("{} (the format is described in docs/formats/{}.md)",
                                 in_words(complaint, rules->document, document, path), schema));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, fmt::format("schema {}: {}", name, error.what()));
  }
}

}  // namespace greynic::files
