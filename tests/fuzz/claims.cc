#include <poll.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz.h"
#include "greynic/core/match_field.h"
#include "greynic/core/text.h"

namespace greynic::fuzz {

void claim(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void claim_sound(const Error& error) {
  claim(error.code != ErrorCode::kInternal, "bad input is not our bug: " + error.message);
  claim(!error.message.empty(), "an error has a reason");
  claim(!bad_utf8(error.message), "an error is text: " + printable(error.message));
  claim(error.message.size() < 20'000, "an error is short");
}

void claim_sound(const Match& match) {
  for (const FieldMatch& part : match.fields()) {
    claim((part.bits & ~full_mask(part.field)) == U128{0}, "a mask lies within its field");
    claim((part.value & ~part.bits) == U128{0}, "a value lies within its mask");
  }
}

void claim_sound(const Observation& observation) {
  for (const auto& [name, measure] : observation.measures) {
    claim(std::isfinite(measure.value), "a measure is a number");
    claim(std::isfinite(measure.standard_error.value_or(0.0)), "a standard error is a number");
  }
  for (const auto* counters : {&observation.counters_before, &observation.counters_after}) {
    for (const auto& [name, value] : *counters)
      claim(std::isfinite(value), "a counter is a number");
  }
  claim(observation.outcome != Outcome::kNotRun, "an observation has an outcome");
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  claim(file.good(), "there is a file " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string tree_file(const std::string& path) {
  return contents_of(std::string(GREYNIC_SOURCE_DIR) + "/" + path);
}

const std::string& folder() {
  static const struct Folder {
    Folder() {
      char name[] = "/dev/shm/greynic_fuzz_XXXXXX";
      claim(::mkdtemp(name) != nullptr, "there is a file system in memory at /dev/shm");
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } made;
  return made.path;
}

std::string file_of(std::string_view bytes, const char* name) {
  std::filesystem::remove(folder() + "/" + name + "-journal");
  std::string path = folder() + "/" + name;
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

bool readable(int socket) {
  constexpr int kPatienceMs = 5000;
  pollfd asked{socket, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&asked, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);  // libFuzzer's clock rings now and then
  return ready > 0;
}

std::string mutated(std::string text, const std::string& other, std::mt19937_64& random) {
  static const std::vector<std::string> kWords = {"0",
                                                  "-1",
                                                  "1",
                                                  "255",
                                                  "65536",
                                                  "4294967296",
                                                  "18446744073709551616",
                                                  "1e20",
                                                  "-1e300",
                                                  "1e999",
                                                  "nan",
                                                  "-0.0",
                                                  "null",
                                                  "true",
                                                  "\"\"",
                                                  "[]",
                                                  "{}",
                                                  "[",
                                                  "{",
                                                  "]",
                                                  "}",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "\\",
                                                  "\n",
                                                  "\t",
                                                  " ",
                                                  "=",
                                                  "/",
                                                  "(",
                                                  ")",
                                                  "#",
                                                  "..",
                                                  "\\u0000",
                                                  "\\ud800",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  "\xef\xbf\xbe",
                                                  std::string(300, '['),
                                                  std::string(300, '(')};
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(9)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, 1 + below(20));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), below(60)));
        break;
      case 4:
        text.insert(at, kWords[below(kWords.size())]);
        break;
      case 5: {  // a number or a word becomes another
        const std::size_t begin = text.find_first_of("0123456789\"", at);
        if (begin == std::string::npos) break;
        const std::size_t end = text.find_first_not_of("0123456789.", begin + 1);
        text.replace(begin, std::min(end, text.size()) - begin, kWords[below(kWords.size())]);
        break;
      }
      case 6:
        text.insert(at, other.substr(below(other.size() + 1), below(80)));
        break;
      case 7:
        if (below(8) == 0) text.resize(at);
        break;
      default:
        if (!text.empty()) std::swap(text[below(text.size())], text[below(text.size())]);
    }
  }
  if (text.size() > 100'000) text.resize(100'000);
  return text;
}

}  // namespace greynic::fuzz
