#include "ovs/datapath_counts.h"

#include <charconv>
#include <set>

namespace greynic::flows {
namespace {

/// Calls visit(line) for each line.
template <typename Visit>
void each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

struct Row {
  std::string_view label;
  double PmdStats::*member;
};

constexpr Row kRows[] = {
    {"packets received:", &PmdStats::packets},
    {"packet recirculations:", &PmdStats::recirculations},
    {"emc hits:", &PmdStats::exact_match_hits},
    {"smc hits:", &PmdStats::signature_match_hits},
    {"megaflow hits:", &PmdStats::megaflow_hits},
    {"simple match hits:", &PmdStats::simple_match_hits},
    {"miss with success upcall:", &PmdStats::misses},
    {"miss with failed upcall:", &PmdStats::misses},
    {"processing cycles:", &PmdStats::processing_cycles},
};
constexpr std::string_view kLookups = "avg. subtable lookups per megaflow hit:";

/// 0 where there is no number, or one that no counter of 64 bits can show.
double number_after(std::string_view line, std::string_view label) {
  line.remove_prefix(line.find(label) + label.size());
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  double value = 0.0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value >= 0.0 && value <= 0x1p64 ? value : 0.0;
}

}  // namespace

Result<PmdStats> parse_pmd_stats(std::string_view text) {
  PmdStats stats;
  double lookups = 0.0;         // of all threads
  double thread_lookups = 0.0;  // per hit, of this thread
  double thread_hits = 0.0;
  bool in_thread = false;
  bool any = false;
  each_line(text, [&](std::string_view line) {
    if (!line.starts_with(' ')) {
      lookups += thread_lookups * thread_hits;
      thread_lookups = thread_hits = 0.0;
      // The main thread handles no packets of ports that packet threads poll.
      in_thread = line.starts_with("pmd thread");
      any = any || in_thread;
      return;
    }
    if (!in_thread) return;
    if (line.find(kLookups) != std::string_view::npos) {
      thread_lookups = number_after(line, kLookups);
      return;
    }
    for (const Row& row : kRows) {
      const std::size_t place = line.find(row.label);
      // "avg processing cycles per packet:" must not be taken for "processing cycles:".
      if (place == std::string_view::npos || line.find_first_not_of(' ') != place) continue;
      const double value = number_after(line, row.label);
      stats.*row.member += value;
      if (row.member == &PmdStats::megaflow_hits) thread_hits = value;
    }
  });
  lookups += thread_lookups * thread_hits;
  if (!any) return fail(ErrorCode::kBadInput, "Open vSwitch reports no packet thread");
  stats.lookups_per_hit = stats.megaflow_hits > 0 ? lookups / stats.megaflow_hits : 0.0;
  return stats;
}

Result<RevalidatorStats> parse_revalidators(std::string_view text) {
  constexpr std::string_view kCurrent = "(current ";
  constexpr std::string_view kLimit = "(limit ";
  constexpr std::string_view kDump = "dump duration : ";
  for (const std::string_view label : {kCurrent, kLimit, kDump}) {
    if (text.find(label) == std::string_view::npos) {
      return fail(ErrorCode::kBadInput, "Open vSwitch reports no revalidators");
    }
  }
  return RevalidatorStats{number_after(text, kCurrent), number_after(text, kLimit),
                          number_after(text, kDump)};
}

std::string megaflow_mask(std::string_view line) {
  // The match ends where the counters begin; values stand after '=' or '(' and end at ',' or ')';
  // what follows a '/' inside them is the mask.
  line = line.substr(0, line.find(", packets:"));
  std::string mask;
  bool in_value = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '=' || c == '(') {
      // "ipv4(src=1.2.3.4/32": what follows the bracket is a name, not a value, when a '=' comes
      // before the value's end.
      const std::size_t end = line.find_first_of(",)=(", i + 1);
      in_value = c == '=' || end == std::string_view::npos || line[end] == ',' || line[end] == ')';
      mask += c;
    } else if (c == ',' || c == ')' || c == '/') {
      in_value = false;
      mask += c;
    } else if (!in_value) {
      mask += c;
    }
  }
  return mask;
}

MegaflowCount count_megaflows(std::string_view text) {
  MegaflowCount count;
  std::set<std::string> masks;
  each_line(text, [&](std::string_view line) {
    if (line.find("packets:") == std::string_view::npos) return;
    ++count.flows;
    masks.insert(megaflow_mask(line));
  });
  count.masks = masks.size();
  return count;
}

}  // namespace greynic::flows
