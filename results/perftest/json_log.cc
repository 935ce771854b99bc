#include <fmt/core.h>

#include <array>
#include <cmath>

#include "greynic/core/text.h"
#include "greynic/core/units.h"
#include "perftest/log.h"

namespace greynic::results {
namespace {

/// One section of a document ("test_info", "results"): its fields as text.
using Section = std::map<std::string, std::string>;
using Document = std::map<std::string, Section>;

/// Reads what perftest writes with --out_json. Versions before 2024 wrote keys and values without
/// quotes and a comma after the last field, later ones still do so for some options, and numbers
/// may be nan. So this reads the shape that all of them share: sections of `key: value`, one a
/// line, quotes and trailing commas optional. Several documents may follow each other.
class LenientReader {
 public:
  LenientReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Result<std::vector<Document>> read() {
    std::vector<Document> documents;
    skip_blanks();
    while (at_ < text_.size()) {
      auto document = read_document();
      if (!document) return pass_on(document);
      documents.push_back(std::move(*document));
      skip_blanks();
    }
    return documents;
  }

 private:
  tl::unexpected<Error> refuse(std::string_view why) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n') + 1;
    return fail(ErrorCode::kBadInput, fmt::format("{}:{}: {}", source_, line, why));
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] std::string shown() const {
    return at_ < text_.size() ? fmt::format("'{}'", first_character(text_.substr(at_)))
                              : "the end of the file";
  }

  Result<Document> read_document() {
    if (!take('{')) return refuse("expected '{', found " + shown());
    Document document;
    while (!take('}')) {
      auto name = read_key();
      if (!name) return pass_on(name);
      if (!take('{')) return refuse(fmt::format("expected '{{' after \"{}\"", *name));
      auto section = read_section();
      if (!section) return pass_on(section);
      if (!document.emplace(*name, std::move(*section)).second) {
        return refuse(fmt::format("section \"{}\" is there twice", *name));
      }
      take(',');
    }
    return document;
  }

  Result<Section> read_section() {
    Section section;
    while (!take('}')) {
      auto key = read_key();
      if (!key) return pass_on(key);
      auto value = read_value();
      if (!value) return pass_on(value);
      if (!section.emplace(normal_name(*key), std::move(*value)).second) {
        return refuse(fmt::format("\"{}\" is there twice", *key));
      }
      take(',');
    }
    return section;
  }

  Result<std::string> read_quoted() {
    const std::size_t end = text_.find_first_of("\"\n", at_);
    if (end == std::string_view::npos || text_[end] == '\n') return refuse("a quote is not closed");
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  /// A key and the colon after it.
  Result<std::string> read_key() {
    if (take('"')) {
      auto key = read_quoted();
      if (key && !take(':')) return refuse(fmt::format("expected ':' after \"{}\"", *key));
      return key;
    }
    skip_blanks();
    const std::size_t end = text_.find_first_of(":{},\"\n", at_);
    if (end == std::string_view::npos || text_[end] != ':' || end == at_) {
      return refuse("expected a field such as Mtu: 1024, found " + shown());
    }
    std::string key(trimmed(text_.substr(at_, end - at_)));
    at_ = end + 1;
    return key;
  }

  Result<std::string> read_value() {
    if (take('"')) return read_quoted();
    const std::size_t end = text_.find_first_of(",{}\"\n", at_);
    if (end == std::string_view::npos || text_[end] == '{' || text_[end] == '"') {
      return refuse("expected a value, found " + shown());
    }
    const std::string_view value = trimmed(text_.substr(at_, end - at_));
    if (value.empty()) return refuse("a field has no value");
    at_ = end;
    return std::string(value);
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

namespace column = perftest_column;

struct FieldKind {
  std::string_view key;  ///< as normal_name spells it
  std::string_view name;
  double scale = 1.0;
};

constexpr std::string_view kPeak = "bandwidth_gbps_peak";

constexpr std::array kFields = std::to_array<FieldKind>({
    {"msgsize", column::kBytes},
    {"n iterations", column::kIterations},
    {"sl", column::kServiceLevel},
    {"bw peak", kPeak},
    {"bw average", measure::kBandwidth},
    {"bw avg", measure::kBandwidth},
    {"msgrate", measure::kMessageRate},
    {"msgrate avg", measure::kMessageRate},
    {"t min", "latency_us_min"},
    {"t max", "latency_us_max"},
    {"t typical", measure::kLatencyP50},
    {"t avg", measure::kLatencyMean},
    {"avg lat", measure::kLatencyMean},
    {"t stdev", column::kDeviation},
    {"percentile 99", measure::kLatencyP99},
    {"percentile 99.9", measure::kLatencyP999},
    {"tps average", "transaction_rate_mops", 1e-6},
    {"cpu util", "cpu_share", 0.01},
});

std::optional<double> value_of(const PerftestRow& row, std::string_view name) {
  const auto found = row.values.find(std::string(name));
  return found == row.values.end() ? std::nullopt : std::optional(found->second);
}

/// The unit in which the bandwidth agrees with message rate times size. The two candidates are a
/// factor of 119 apart, so a tolerance of 2 covers every rounding that leaves a digit.
std::optional<PerftestUnit> unit_by_rate(const PerftestRow& row) {
  const auto bandwidth = value_of(row, measure::kBandwidth);
  const auto rate = value_of(row, measure::kMessageRate);
  const auto bytes = value_of(row, column::kBytes);
  if (!bandwidth || !rate || !bytes || *bandwidth <= 0.0 || *rate <= 0.0 || *bytes <= 0.0) {
    return std::nullopt;
  }
  const auto agrees = [&](double expected) {
    return *bandwidth < 2.0 * expected && expected < 2.0 * *bandwidth;
  };
  if (agrees(*rate * 1e6 * *bytes / 1048576.0)) return PerftestUnit::kMebibytes;
  if (agrees(*rate * 1e6 * *bytes * 8e-9)) return PerftestUnit::kGigabits;
  return std::nullopt;
}

Result<void> settle_unit(PerftestRow& row, const PerftestOptions& options,
                         const std::string& source) {
  if (!row.values.contains(std::string(measure::kBandwidth))) return {};
  const auto unit = options.json_unit ? options.json_unit : unit_by_rate(row);
  if (!unit) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: at /results: nothing tells the unit of the bandwidth; say "
                            "--json-unit MiB/s, or Gb/s for logs made with --report_gbits",
                            source));
  }
  if (*unit == PerftestUnit::kGigabits) return {};
  for (const std::string_view name : {measure::kBandwidth, kPeak}) {
    const auto found = row.values.find(std::string(name));
    if (found != row.values.end()) {
      found->second = BitRate::from_mib_per_second(found->second).gbps();
    }
  }
  return {};
}

Result<PerftestRow> read_results(const Section& section, const PerftestOptions& options,
                                 const std::string& source, std::vector<std::string>& warnings) {
  PerftestRow row;
  for (const auto& [key, text] : section) {
    const FieldKind* found = nullptr;
    for (const FieldKind& field : kFields) {
      if (field.key == key) found = &field;
    }
    if (!found) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("{}: at /results: unknown field \"{}\"; docs/formats/perftest.md lists "
                      "those known",
                      source, key));
    }
    if (text == "inf" || text == "-inf" || text == "nan" || text == "-nan") {
      warnings.push_back(fmt::format("{}: at /results/{}: is {}; left out", source, key, text));
      continue;
    }
    const auto value = parse_number(text);
    if (!value || *value < 0.0) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: at /results/{}: \"{}\" is no number that perftest prints",
                              source, key, text));
    }
    row.values[std::string(found->name)] = *value * found->scale;
  }
  if (auto settled = settle_unit(row, options, source); !settled) return pass_on(settled);
  return row;
}

}  // namespace

std::optional<PerftestUnit> perftest_unit_named(std::string_view name) {
  if (name == "MiB/s") return PerftestUnit::kMebibytes;
  if (name == "Gb/s") return PerftestUnit::kGigabits;
  return std::nullopt;
}

Result<std::vector<PerftestReport>> read_perftest_json(std::string_view text,
                                                       const std::string& source,
                                                       const PerftestOptions& options,
                                                       std::vector<std::string>& warnings) {
  auto documents = LenientReader(text, source).read();
  if (!documents) return pass_on(documents);
  std::vector<PerftestReport> reports;
  for (Document& document : *documents) {
    PerftestReport report;
    if (const auto info = document.find("test_info"); info != document.end()) {
      report.settings = std::move(info->second);
      report.title = report.settings["test"];
      report.settings.erase("test");
    }
    const auto results = document.find("results");
    if (results == document.end()) {
      return fail(ErrorCode::kBadInput,
                  source + ": no section \"results\"; is this perftest's JSON?");
    }
    auto row = read_results(results->second, options, source, warnings);
    if (!row) return pass_on(row);
    report.rows.push_back(std::move(*row));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace greynic::results
