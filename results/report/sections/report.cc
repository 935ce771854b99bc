#include "greynic/report/report.h"

#include <fmt/core.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

Result<std::map<std::string, nlohmann::json>> read_documents(const results::RunStore& store,
                                                             const ReportOptions& options) {
  auto texts = store.documents();
  if (!texts) return pass_on(texts);
  if (!options.model_text.empty()) (*texts)["model"] = options.model_text;
  // One explanation is shown: the tested one, where there is one.
  auto explanation = store.best_explanation();
  if (!explanation) return pass_on(explanation);
  texts->erase(results::kHypotheses);
  if (!explanation->empty()) (*texts)[results::kExplanation] = std::move(*explanation);
  std::map<std::string, nlohmann::json> documents;
  for (const auto& [kind, text] : *texts) {
    auto document =
        files::parse_json(text, fmt::format("{} (its kept {})", options.run_path, kind));
    if (!document) return pass_on(document);
    documents[kind] = std::move(*document);
  }
  return documents;
}

}  // namespace

Result<std::string> report_html(const results::RunStore& store, const ReportOptions& options) {
  Content content;
  content.options = options;
  content.header = store.header();
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  if (observations->empty()) {
    return fail(
        ErrorCode::kBadInput,
        options.run_path + ": the run holds no observation yet; `greynic run` goes on with it");
  }
  content.observations = std::move(*observations);
  auto documents = read_documents(store, options);
  if (!documents) return pass_on(documents);
  content.documents = std::move(*documents);
  if (!content.header.campaign_text.empty()) {
    auto campaign = store.campaign();
    if (!campaign) return pass_on(campaign);
    content.campaign = std::move(*campaign);
  }
  complete(content);

  Page page(options.title.empty() ? content.header.campaign_name : options.title);
  try {
    for (const auto add :
         {add_head, add_walls, add_causes, add_around, add_effects, add_latency, add_counters,
          add_model, add_layout, add_gain, add_data, add_plan, add_other_documents, add_repeat}) {
      add(content, page);
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: a kept document is not as its format says: {}", options.run_path,
                            error.what()));
  }
  return page.text();
}

}  // namespace greynic::report
