#pragma once

#include <string>
#include <vector>

namespace greynic::cli {

struct SharingFlags {
  std::string connections;
  std::vector<std::string> models;
  std::string out;
  bool as_json = false;
};

/// `greynic optimize --connections`: the exit code.
int advise_sharing(const SharingFlags& flags);

}  // namespace greynic::cli
