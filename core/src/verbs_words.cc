#include "greynic/core/verbs_words.h"

#include <algorithm>

namespace greynic {
namespace {

template <typename Word, std::size_t count>
std::optional<Word> word_named(const std::array<std::string_view, count>& names,
                               std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Word>(found - names.begin());
}

}  // namespace

std::optional<Operation> operation_named(std::string_view name) {
  return word_named<Operation>(kOperationNames, name);
}

std::optional<Transport> transport_named(std::string_view name) {
  return word_named<Transport>(kTransportNames, name);
}

}  // namespace greynic
