#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

#include "greynic/core/completion_status.h"
#include "greynic/core/units.h"
#include "perftest/log.h"

namespace greynic::results {
namespace {

constexpr double kGbpsOfMebibyte = 1048576.0 * 8.0 * 1e-9;

/// A column of perftest's tables: how it is titled, what it is here, and the factor between the
/// units.
struct ColumnKind {
  std::string_view title;
  std::string_view name;
  double scale = 1.0;
};

namespace column = perftest_column;

constexpr std::array kColumns = std::to_array<ColumnKind>({
    {"#bytes", column::kBytes},
    {"#iterations", column::kIterations},
    {"#sl", column::kServiceLevel},
    {"BW peak[MB/sec]", "bandwidth_gbps_peak", kGbpsOfMebibyte},
    {"BW peak[MiB/sec]", "bandwidth_gbps_peak", kGbpsOfMebibyte},
    {"BW peak[Gb/sec]", "bandwidth_gbps_peak"},
    {"BW average[MB/sec]", measure::kBandwidth, kGbpsOfMebibyte},
    {"BW average[MiB/sec]", measure::kBandwidth, kGbpsOfMebibyte},
    {"BW average[Gb/sec]", measure::kBandwidth},
    {"BW Port1[MB/sec]", "bandwidth_gbps_port1", kGbpsOfMebibyte},
    {"BW Port1[MiB/sec]", "bandwidth_gbps_port1", kGbpsOfMebibyte},
    {"BW Port1[Gb/sec]", "bandwidth_gbps_port1"},
    {"BW Port2[MB/sec]", "bandwidth_gbps_port2", kGbpsOfMebibyte},
    {"BW Port2[MiB/sec]", "bandwidth_gbps_port2", kGbpsOfMebibyte},
    {"BW Port2[Gb/sec]", "bandwidth_gbps_port2"},
    {"MsgRate Port1[Mpps]", "message_rate_mops_port1"},
    {"MsgRate Port2[Mpps]", "message_rate_mops_port2"},
    {"MsgRate[Mpps]", measure::kMessageRate},
    {"t_min[usec]", "latency_us_min"},
    {"t_max[usec]", "latency_us_max"},
    {"t_typical[usec]", measure::kLatencyP50},
    {"t_avg[usec]", measure::kLatencyMean},
    {"t_stdev[usec]", column::kDeviation},
    {"99% percentile[usec]", measure::kLatencyP99},
    {"99.9% percentile[usec]", measure::kLatencyP999},
    {"tps average", "transaction_rate_mops", 1e-6},
    {"CPU_Util[%]", "cpu_share", 0.01},
    {"CPU_Util[%%]", "cpu_share", 0.01},
});

bool is_rule(std::string_view line) {
  return line.size() >= 20 && line.find_first_not_of('-') == std::string_view::npos;
}

bool is_title(std::string_view line) {
  return line.ends_with(" Test") && line.find(':') == std::string_view::npos;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

/// Reads a report line by line; what a line means depends on the part of the report it stands in.
class TextReader {
 public:
  TextReader(const std::string& source, std::vector<std::string>& warnings)
      : source_(source), warnings_(warnings) {}

  Result<std::vector<PerftestReport>> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool torn = end == std::string_view::npos;
      ++line_number_;
      if (auto done = read_line(trimmed(text.substr(0, end)), torn); !done) return pass_on(done);
      text.remove_prefix(torn ? text.size() : end + 1);
    }
    if (part_ == Part::kTable && !reports_.empty() && !reports_.back().rows.empty()) {
      warnings_.push_back(source_ +
                          ": the table does not end with a rule; the log may be cut short");
    }
    return std::move(reports_);
  }

 private:
  enum class Part { kHeader, kTable, kSamples };

  tl::unexpected<Error> refuse(std::string_view why) const {
    return fail(ErrorCode::kBadInput, fmt::format("{}:{}: {}", source_, line_number_, why));
  }

  PerftestReport& report() {
    if (reports_.empty()) reports_.emplace_back();
    return reports_.back();
  }

  Result<void> read_line(std::string_view line, bool torn) {
    if (line.starts_with("#bytes")) return begin_table(line);
    if (line.starts_with("#flows")) {
      return refuse("a table of flow-setup rates, which is no bandwidth or latency test");
    }
    if (line.starts_with("#,")) return begin_samples(line);
    if (is_title(line)) {
      reports_.emplace_back();
      reports_.back().title = line;
      part_ = Part::kHeader;
      split_results_ = false;
      return {};
    }
    if (line.starts_with("Local results") || line.starts_with("Remote results")) {
      split_results_ = true;
      return {};
    }
    if (read_failure(line)) return {};
    if (part_ == Part::kTable) return read_row(line, torn);
    if (part_ == Part::kSamples) return read_sample(line);
    read_settings(line);
    return {};
  }

  Result<void> begin_table(std::string_view line) {
    part_ = Part::kTable;
    columns_.clear();
    while (!line.empty()) {
      const ColumnKind* found = nullptr;
      for (const ColumnKind& kind : kColumns) {
        if (line.starts_with(kind.title)) found = &kind;
      }
      if (!found) {
        return refuse(
            fmt::format("unknown column \"{}\"; docs/formats/perftest.md lists those known",
                        line.substr(0, line.find_first_of("[ \t"))));
      }
      columns_.push_back(found);
      line = trimmed(line.substr(found->title.size()));
    }
    return {};
  }

  Result<void> begin_samples(std::string_view line) {
    if (line.find("usec") == std::string_view::npos) {
      return refuse("times are in CPU cycles; run perftest without --report-cycles");
    }
    part_ = Part::kSamples;
    samples_ = {};
    return {};
  }

  Result<void> read_sample(std::string_view line) {
    if (is_rule(line)) {
      part_ = Part::kHeader;
      return {};
    }
    const std::size_t comma = line.find(',');
    const auto microseconds = comma == std::string_view::npos
                                  ? std::nullopt
                                  : parse_number(trimmed(line.substr(comma + 1)));
    if (microseconds && *microseconds >= 0.0 && *microseconds < 1e12) {
      samples_.record(static_cast<std::uint64_t>(std::llround(*microseconds * 1000.0)));
      return {};
    }
    // Without a rule after the samples (not fully verbose) the row follows at once.
    part_ = Part::kTable;
    return read_row(line, false);
  }

  Result<void> read_row(std::string_view line, bool torn) {
    if (is_rule(line)) {
      part_ = Part::kHeader;
      return {};
    }
    if (line.empty() || line.front() < '0' || line.front() > '9') return {};  // a remark in between
    const auto words = words_of(line);
    if (words.size() != columns_.size()) {
      return refuse(fmt::format("a row of {} values in a table of {} columns; the log is damaged",
                                words.size(), columns_.size()));
    }
    if (torn) return refuse("the log ends in the middle of a row");
    PerftestRow row{.line = line_number_, .values = {}, .samples = std::exchange(samples_, {})};
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (auto read = read_cell(row, *columns_[i], words[i]); !read) return read;
    }
    if (split_results_) {
      warnings_.push_back(
          fmt::format("{}:{}: results of one side alone are left out; the sum of "
                      "both is kept",
                      source_, line_number_));
      return {};
    }
    report().rows.push_back(std::move(row));
    return {};
  }

  Result<void> read_cell(PerftestRow& row, const ColumnKind& kind, std::string_view word) {
    if (word == "inf" || word == "-inf" || word == "nan" || word == "-nan") {
      warnings_.push_back(
          fmt::format("{}:{}: {} is {}; left out", source_, line_number_, kind.title, word));
      return {};
    }
    const auto value = parse_number(word);
    if (!value || *value < 0.0) {
      return refuse(
          fmt::format("\"{}\" in column {} is no number that perftest prints", word, kind.title));
    }
    row.values[std::string(kind.name)] = *value * kind.scale;
    return {};
  }

  bool read_failure(std::string_view line) {
    if (line.starts_with("Completion with error") || line.starts_with("Couldn't") ||
        line.starts_with("Unable to") || line.starts_with("Failed to")) {
      if (report().failure.empty()) report().failure = line;
      return true;
    }
    constexpr std::string_view kStatus = "Failed status ";
    const std::size_t at = line.find(kStatus);
    if (at == std::string_view::npos) return false;
    int status = -1;
    const char* begin = line.data() + at + kStatus.size();
    std::from_chars(begin, line.data() + line.size(), status);
    report().failure = status < 0 ? std::string(line) : completion_status_name(status);
    return true;
  }

  /// " Number of qps   : 4\t\tTransport type : IB"
  void read_settings(std::string_view line) {
    while (!line.empty()) {
      const std::size_t end = std::min(line.find("\t\t"), line.size());
      const std::string_view field = line.substr(0, end);
      const std::size_t colon = field.find(':');
      if (colon != std::string_view::npos) {
        report().settings[normal_name(field.substr(0, colon))] = trimmed(field.substr(colon + 1));
      } else if (field.starts_with("Test with events")) {
        report().settings["test with events"] = "ON";
      }
      line = trimmed(line.substr(end));
    }
  }

  const std::string& source_;
  std::vector<std::string>& warnings_;
  std::size_t line_number_ = 0;
  Part part_ = Part::kHeader;
  std::vector<const ColumnKind*> columns_;
  LatencyHistogram samples_;
  bool split_results_ = false;
  std::vector<PerftestReport> reports_;
};

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string normal_name(std::string_view name) {
  std::string normal;
  for (const char c : trimmed(name)) {
    const bool blank = c == '_' || c == ' ' || c == '\t';
    if (blank && (normal.empty() || normal.back() == ' ')) continue;
    normal += blank ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  while (!normal.empty() && normal.back() == ' ') normal.pop_back();
  return normal;
}

Result<std::vector<PerftestReport>> read_perftest_text(std::string_view text,
                                                       const std::string& source,
                                                       std::vector<std::string>& warnings) {
  return TextReader(source, warnings).read(text);
}

}  // namespace greynic::results
