#include "target/target_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

namespace greynic::twin {
namespace {

/// What is written after a name: a number in a range, a whole one, or one of two words.
struct Row {
  const char* name;
  double least = 0, most = 0;
  const char* what = nullptr;                       ///< the number in words
  bool whole = false;                               ///< the number has no fraction
  const char *no = nullptr, *yes = nullptr;         ///< or these
  void (*put)(HostLoadOptions&, double) = nullptr;  ///< the number, or 0 and 1
};

Row word(const char* name, const char* no, const char* yes, void (*put)(HostLoadOptions&, double)) {
  return {.name = name, .no = no, .yes = yes, .put = put};
}
Row number(const char* name, double least, double most, const char* what,
           void (*put)(HostLoadOptions&, double)) {
  return {.name = name, .least = least, .most = most, .what = what, .put = put};
}
Row whole(const char* name, double least, double most, const char* what,
          void (*put)(HostLoadOptions&, double)) {
  return {.name = name, .least = least, .most = most, .what = what, .whole = true, .put = put};
}

const Row kRows[] = {
    word("posting", "window", "round",
         [](HostLoadOptions& o, double v) {
           o.posting = v > 0 ? Posting::kRound : Posting::kWindow;
         }),
    word("overlay", "off", "on", [](HostLoadOptions& o, double v) { o.overlay = v > 0; }),
    number("loss", 0, 0.5, "a share of packets", [](HostLoadOptions& o, double v) { o.loss = v; }),
    whole("ack_timeout", 0, 31, "the code of 4.096 us x 2^code (0: without end)",
          [](HostLoadOptions& o, double v) { o.retries.ack_timeout = static_cast<int>(v); }),
    whole("retry_count", 0, 7, "a number of retries",
          [](HostLoadOptions& o, double v) { o.retries.retry_count = static_cast<int>(v); }),
    whole("rnr_retry", 0, 7, "a number of retries (7: without end)",
          [](HostLoadOptions& o, double v) { o.retries.rnr_retry = static_cast<int>(v); }),
    whole("min_rnr_timer", 0, 31, "a code of the InfiniBand table (12: 0.64 ms)",
          [](HostLoadOptions& o, double v) { o.retries.min_rnr_timer = static_cast<int>(v); }),
    number("server_link_gbps", 0.1, 10000, "a rate in Gbit/s",
           [](HostLoadOptions& o, double v) { o.server_link_gbps = v; }),
    word("pfc", "off", "on", [](HostLoadOptions& o, double v) { o.pfc = v > 0; }),
    word("dcqcn", "off", "on", [](HostLoadOptions& o, double v) { o.dcqcn = v > 0; }),
    number("mr_churn", 0, 1e7, "memory regions a second",
           [](HostLoadOptions& o, double v) { o.mr_churn_rate = v; }),
    whole("large_groups", 1, 1024, "a number of groups",
          [](HostLoadOptions& o, double v) { o.grouping.large_groups = v; }),
    word("exact_match", "in_order", "first",
         [](HostLoadOptions& o, double v) { o.grouping.exact_first = v > 0; }),
};

Result<double> read_number(const Row& row, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= row.least && value <= row.most) || (row.whole && value != std::floor(value))) {
    return fail(ErrorCode::kBadInput,
                fmt::format("option {}={}: write {}, {}from {} to {}", row.name, text, row.what,
                            row.whole ? "whole, " : "", row.least, row.most));
  }
  return value;
}

}  // namespace

Result<bool> read_choice(const std::string& option, const std::string& text, const char* no,
                         const char* yes) {
  if (text == yes) return true;
  if (text == no) return false;
  return fail(ErrorCode::kBadInput,
              fmt::format("option {}={}: write {} or {}", option, text, no, yes));
}

Result<bool> read_load_option(const std::string& name, const std::string& text,
                              HostLoadOptions& options) {
  for (const Row& row : kRows) {
    if (name != row.name) continue;
    if (row.yes != nullptr) {
      const auto chosen = read_choice(name, text, row.no, row.yes);
      if (!chosen) return pass_on(chosen);
      row.put(options, *chosen ? 1 : 0);
      return true;
    }
    const auto value = read_number(row, text);
    if (!value) return pass_on(value);
    row.put(options, *value);
    return true;
  }
  return false;
}

std::string load_options() {
  std::string names;
  for (const Row& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace greynic::twin
