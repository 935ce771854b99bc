/// Feeds one reader by libFuzzer, which follows what each input reaches: in place of main.cc in the
/// preset fuzz, which needs clang. GREYNIC_FUZZ_TARGET names the reader.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz.h"

namespace greynic::fuzz {
namespace {

const Target& chosen() {
  static const Target target = [] {
    const char* const name = std::getenv("GREYNIC_FUZZ_TARGET");
    return target_named(name == nullptr ? "" : name);
  }();
  return target;
}

}  // namespace
}  // namespace greynic::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerInitialize(const int* count, const char* const* const* words) {
  if (*count < 2 || std::strcmp((*words)[1], "--list") != 0) return 0;
  for (const auto& target : greynic::fuzz::all_targets()) std::printf("%s\n", target.name.c_str());
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  greynic::fuzz::chosen().read({reinterpret_cast<const char*>(bytes), size});
  return 0;
}

/// It begins with nothing: one change in four starts from a seed, one is of our kinds.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using namespace greynic::fuzz;
  std::mt19937_64 random(seed);
  const auto& seeds = chosen().seeds;
  const auto any = [&]() -> const std::string& { return seeds[random() % seeds.size()]; };
  const std::uint64_t kind = size < 2 ? 0 : random() % 4;
  if (kind > 1) return LLVMFuzzerMutate(bytes, size, most);
  const std::string from = kind == 0 ? any() : std::string(reinterpret_cast<char*>(bytes), size);
  const std::string text = mutated(from, any(), random);
  const std::size_t made = std::min(text.size(), most);
  std::memcpy(bytes, text.data(), made);
  return made;
}
