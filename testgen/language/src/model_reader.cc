#include "greynic/language/model_reader.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>

#include "greynic/files/json_file.h"
#include "text_cursor.h"

namespace greynic::language {

namespace {

constexpr std::array<std::pair<std::string_view, ModelFormat>, 4> kFormats = {
    {{"pict", ModelFormat::kPict},
     {"casa", ModelFormat::kCasa},
     {"cnf", ModelFormat::kCnf},
     {"json", ModelFormat::kJson}}};

}  // namespace

std::optional<ModelFormat> model_format_named(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string_view to_string(ModelFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "";
}

ModelFormat guess_format(std::string_view path, std::string_view text) {
  if (path.ends_with(".citmodel")) return ModelFormat::kCasa;
  if (path.ends_with(".dimacs") || path.ends_with(".cnf")) return ModelFormat::kCnf;
  if (path.ends_with(".json")) return ModelFormat::kJson;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return ModelFormat::kPict;
  text.remove_prefix(first);
  if (text.starts_with('{')) return ModelFormat::kJson;
  if (text.starts_with("p cnf") || text.find("\np cnf") != std::string_view::npos) {
    return ModelFormat::kCnf;
  }
  if (text.find_first_not_of("0123456789 \t\r\n") == std::string_view::npos) {
    return ModelFormat::kCasa;
  }
  return ModelFormat::kPict;
}

Result<CoverModel> read_model(const ModelFile& file) {
  const auto read = files::read_text(file.path);
  if (!read) return pass_on(read);
  const std::string_view text = without_mark(*read);
  const ModelFormat format = file.format.value_or(guess_format(file.path, text));
  if (file.constraints && format != ModelFormat::kCasa) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: a file of constraints goes with CASA's models; this one is read as "
                    "{}, which has them inside",
                    file.path, to_string(format)));
  }
  switch (format) {
    case ModelFormat::kPict:
      return parse_pict(text, file.path);
    case ModelFormat::kCnf:
      return parse_cnf(text, file.path);
    case ModelFormat::kJson:
      return parse_json_model(text, file.path);
    case ModelFormat::kCasa:
      break;
  }
  std::string beside = std::filesystem::path(file.path).replace_extension(".constraints").string();
  if (file.constraints) {
    beside = *file.constraints;
  } else if (std::error_code error; !std::filesystem::exists(beside, error) && !error) {
    return parse_casa(text, file.path, "", "");
  }
  const auto constraints = files::read_text(beside);
  if (!constraints) return pass_on(constraints);
  // One that was cut off must not pass for a model without constraints.
  if (without_mark(*constraints).find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: is empty; write 0 where there are no constraints, or remove it", beside));
  }
  return parse_casa(text, file.path, without_mark(*constraints), beside);
}

}  // namespace greynic::language
