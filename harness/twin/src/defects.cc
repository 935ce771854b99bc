#include "defects.h"

#include <fmt/format.h>

namespace greynic::twin {

std::string defect_name(std::size_t index) {
  return index < 8 ? fmt::format("S{}", index + 1) : fmt::format("C{}", index - 7);
}

DefectSet usual_defects() { return DefectSet().set(scalacn_defect(6)); }

Result<DefectSet> read_defects(std::string_view text) {
  DefectSet set;
  if (text == "none") return set;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    std::size_t index = 0;
    while (index < kDefectCount && defect_name(index) != name) ++index;
    if (index == kDefectCount) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("there is no defect '{}'; there are S1 to S8 and C1 to C18, or none", name));
    }
    set.set(index);
    text.remove_prefix(std::min(text.size(), name.size() + 1));
  }
  return set;
}

}  // namespace greynic::twin
