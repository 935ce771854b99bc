#pragma once

/// Every reader of greynic under input that nobody meant. A target is a reader with inputs to begin
/// with and claims about what it gives; what becomes of the inputs is main.cc's part.

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> seeds;
  std::function<void(std::string_view)> read;  ///< ends the process when a claim does not hold
};

/// Of texts, of files, and of what devices, switches and peers answer.
[[nodiscard]] std::vector<Target> text_targets();
[[nodiscard]] std::vector<Target> file_targets();
[[nodiscard]] std::vector<Target> answer_targets();
[[nodiscard]] std::vector<Target> packet_targets();
[[nodiscard]] std::vector<Target> input_targets();
[[nodiscard]] std::vector<Target> store_targets();
[[nodiscard]] std::vector<Target> socket_targets();
[[nodiscard]] std::vector<Target> peer_targets();
[[nodiscard]] std::vector<Target> layout_targets();
#ifdef GREYNIC_FUZZ_LAB
[[nodiscard]] std::vector<Target> lab_targets();
#endif
#ifdef GREYNIC_FUZZ_HTTP
[[nodiscard]] std::vector<Target> web_targets();
#endif
#ifdef GREYNIC_FUZZ_AGENT
[[nodiscard]] std::vector<Target> agent_targets();
#endif
#ifdef GREYNIC_FUZZ_BROKER
[[nodiscard]] std::vector<Target> broker_targets();
#endif

[[nodiscard]] std::vector<Target> all_targets();
/// Adds what tests/fuzz/cases/TARGET keeps to its seeds.
void add_cases(Target& target);
/// The target of this name, with its cases; ends the program when there is none.
[[nodiscard]] Target target_named(const std::string& name);

/// Ends the process, saying which claim does not hold.
void claim(bool holds, std::string_view what);

/// An error is the world's, names a reason, and can be printed.
void claim_sound(const Error& error);
template <typename T>
void claim_sound(const Result<T>& result) {
  if (!result) claim_sound(result.error());
}
/// Values lie within masks, masks within fields.
void claim_sound(const Match& match);
/// Every number is one.
void claim_sound(const Observation& observation);

[[nodiscard]] std::string contents_of(const std::string& path);
/// A file of the source tree.
[[nodiscard]] std::string tree_file(const std::string& path);

/// A folder in memory that goes with the process.
[[nodiscard]] const std::string& folder();
/// The path of a file in it that holds these bytes.
[[nodiscard]] std::string file_of(std::string_view bytes, const char* name);

/// Whether there is something to read of a socket, soon.
[[nodiscard]] bool readable(int socket);

/// One to four changes: bytes changed, pieces cut out or doubled, words and pieces of another input
/// put in.
[[nodiscard]] std::string mutated(std::string text, const std::string& other,
                                  std::mt19937_64& random);

}  // namespace greynic::fuzz
