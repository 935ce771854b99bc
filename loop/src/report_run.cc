#include "greynic/loop/report_run.h"

#include "greynic/files/output_file.h"
#include "greynic/report/report.h"

namespace greynic::loop {

Result<std::unique_ptr<model::Model>> model_of(const results::RunStore& store,
                                               const std::string& run_path,
                                               const std::string& model) {
  if (!model.empty()) return model::load(model);
  auto kept = store.kept("model");
  if (!kept) return pass_on(kept);
  if (kept->empty()) return nullptr;
  return model::parse(*kept, run_path + ": the model kept with it");
}

Result<void> write_report(const results::RunStore& store, const std::string& run_path,
                          const model::Model* model, const std::string& title,
                          const std::string& out) {
  report::ReportOptions options;
  options.run_path = run_path;
  options.title = title;
  if (model != nullptr) {
    options.model_text = model->to_json_text();
    options.predictor = [model](const Configuration& configuration,
                                const std::string& measure) -> std::optional<report::Predicted> {
      const auto prediction = model->predict(configuration);
      if (!prediction) return std::nullopt;
      const auto found = prediction->measures.find(measure);
      if (found == prediction->measures.end()) return std::nullopt;
      return report::Predicted{found->second.value, found->second.low, found->second.high,
                               prediction->extrapolated};
    };
  }
  auto html = report::report_html(store, options);
  if (!html) return pass_on(html);
  return files::write_text(out, *html);
}

}  // namespace greynic::loop
