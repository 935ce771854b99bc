#include "greynic/rnic/selection.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "greynic/core/text.h"
#include "greynic/files/json_file.h"

namespace greynic::rnic {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Selection Selection::usual() {
  Selection selection;
  for (const char* pattern :
       {"port.*", "hw.*", "qp", "counter.*", "net.*_bytes", "net.*_packets", "net.*_errors",
        "net.*_dropped", "net.*discard*", "net.*pause*", "net.*ecn*", "net.*_phy", "net.*_prio*"}) {
    selection.rules_.push_back({pattern, false});
  }
  // Each queue of the interface by itself.
  for (const char* pattern :
       {"net.rx[0-9]*", "net.tx[0-9]*", "net.*_queue_[0-9]*", "net.ch[0-9]*"}) {
    selection.rules_.push_back({pattern, true});
  }
  return selection;
}

Result<Selection> Selection::read(const std::string& path) {
  const auto text = files::read_text(path);
  if (!text) return pass_on(text);
  Selection selection;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(0, line.find_first_not_of(" \t\r"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const bool leaves_out = line.front() == '!';
    if (leaves_out) line.erase(0, 1);
    const bool known = line == "qp" || line == "*" || line.starts_with("port.") ||
                       line.starts_with("hw.") || line.starts_with("net.") ||
                       line.starts_with("counter.");
    if (!known || has(line, " ")) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}:{}: '{}' is no pattern; it begins with port., hw., net. or "
                              "counter., or is qp",
                              path, number, shortened(printable(line), 60)));
    }
    selection.rules_.push_back({line, leaves_out});
  }
  if (selection.rules_.empty()) {
    return fail(ErrorCode::kBadInput, path + ": has no pattern; hw.* is one");
  }
  return selection;
}

bool Selection::takes(std::string_view name) const {
  const std::string text(name);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (::fnmatch(rule->pattern.c_str(), text.c_str(), 0) == 0) return !rule->leaves_out;
  }
  return false;
}

NetGroup group_of(std::string_view name) {
  const bool of_ring =
      name.size() > 2 && (name.starts_with("rx") || name.starts_with("tx")) && is_digit(name[2]);
  NetGroup group{"interface", "traffic"};
  if (has(name, "prio")) {
    group.component = "priority";
  } else if (has(name, "global_pause")) {
    group.component = "global_pause";
  } else if (has(name, "vport")) {
    group.component = "vport";
  } else if (name.ends_with("_phy")) {
    group.component = "physical_port";
  } else if (of_ring || has(name, "queue_") || name.starts_with("ch")) {
    group.component = "ring";
  }
  if (has(name, "err") || has(name, "drop") || has(name, "discard") || has(name, "oversize") ||
      has(name, "out_of_buffer") || has(name, "jabber")) {
    group.kind = "error";
  } else if (has(name, "pause") || has(name, "ecn") || has(name, "cnp") || has(name, "congest")) {
    group.kind = "congestion";
  } else if (has(name, "lro") || has(name, "tso") || has(name, "csum") || has(name, "gro") ||
             has(name, "tls") || has(name, "xdp") || has(name, "inlined")) {
    group.kind = "acceleration";
  }
  return group;
}

}  // namespace greynic::rnic
