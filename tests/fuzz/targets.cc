/// All targets there are, and the cases that the tree keeps for them.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "fuzz.h"

namespace greynic::fuzz {
std::vector<Target> all_targets() {
  std::vector<Target> all = text_targets();
  const auto add = [&](std::vector<Target> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  add(file_targets());
  add(answer_targets());
  add(packet_targets());
  add(input_targets());
  add(store_targets());
  add(socket_targets());
  add(peer_targets());
  add(layout_targets());
#ifdef GREYNIC_FUZZ_LAB
  add(lab_targets());
#endif
#ifdef GREYNIC_FUZZ_HTTP
  add(web_targets());
#endif
#ifdef GREYNIC_FUZZ_AGENT
  add(agent_targets());
#endif
#ifdef GREYNIC_FUZZ_BROKER
  add(broker_targets());
#endif
  return all;
}

void add_cases(Target& target) {
  const auto cases = std::filesystem::path(GREYNIC_SOURCE_DIR) / "tests/fuzz/cases" / target.name;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cases, none)) {
    target.seeds.push_back(contents_of(entry.path()));
  }
}

Target target_named(const std::string& name) {
  for (Target& target : all_targets()) {
    if (target.name != name) continue;
    add_cases(target);
    return target;
  }
  std::fprintf(stderr, "fuzz: there is no target %s; --list names them\n", name.c_str());
  std::exit(2);
}

}  // namespace greynic::fuzz
