#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "greynic/bpf/hooks.h"

namespace greynic::bpf {

KernelSymbols KernelSymbols::read() {
  KernelSymbols made;
  std::ifstream file("/proc/kallsyms");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::uint64_t address = 0;
    std::string kind;
    std::string name;
    if (!(words >> std::hex >> address >> kind >> name) || address == 0) continue;
    if (kind == "t" || kind == "T") made.symbols_.emplace_back(address, std::move(name));
  }
  std::sort(made.symbols_.begin(), made.symbols_.end());
  return made;
}

std::string KernelSymbols::name_of(std::uint64_t address) const {
  const auto behind = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t wanted, const auto& symbol) { return wanted < symbol.first; });
  if (behind == symbols_.begin()) return fmt::format("{:#x}", address);
  const auto& [begin, name] = *std::prev(behind);
  return fmt::format("{}+{:#x}", name, address - begin);
}

}  // namespace greynic::bpf
