#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/files/json_file.h"
#include "greynic/zero/region.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string region;
  std::chrono::nanoseconds every = std::chrono::seconds(1);
  std::optional<std::chrono::nanoseconds> wait;
  std::uint64_t count = 1;
  bool json = false;
};

void show(const zero::Group& group, const zero::Snapshot& snapshot, bool as_json) {
  if (as_json) {
    nlohmann::json metrics = nlohmann::json::object();
    for (std::size_t i = 0; i < group.metrics.size(); ++i) {
      metrics[group.metrics[i].name] = snapshot.values[i];
    }
    const nlohmann::json document = {{"group", group.name},
                                     {"version", snapshot.version},
                                     {"time_ns", snapshot.time_ns},
                                     {"metrics", std::move(metrics)}};
    print("{}\n", files::json_text(document));
    return;
  }
  print("{} at {} ns (write {})\n", group.name, snapshot.time_ns, snapshot.version / 2);
  for (std::size_t i = 0; i < group.metrics.size(); ++i) {
    print("  {:<40} {:>20} {}\n", group.metrics[i].name, number_to_string(snapshot.values[i]),
          group.metrics[i].unit);
  }
}

/// The region, once its target has made it: when its first measurement begins.
Result<zero::RegionReader> reader_of(const Flags& flags) {
  constexpr std::chrono::milliseconds kLook{20};
  const auto until =
      std::chrono::steady_clock::now() + flags.wait.value_or(std::chrono::nanoseconds(0));
  std::error_code ignored;
  while (!std::filesystem::exists(flags.region, ignored) &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLook);
  }
  auto source = zero::map_region(flags.region);
  if (!source) return pass_on(source);
  auto reader = zero::RegionReader::discover(std::move(*source));
  if (!reader) return reader.error().while_doing(flags.region);
  return reader;
}

int watch(const Flags& flags) {
  auto reader = reader_of(flags);
  if (!reader) return tell(reader.error());
  for (std::uint64_t round = 0; round < flags.count; ++round) {
    if (round > 0) std::this_thread::sleep_for(flags.every);
    for (std::size_t i = 0; i < reader->groups().size(); ++i) {
      const auto snapshot = reader->read(i);
      if (!snapshot) return tell(snapshot.error());
      show(reader->groups()[i], *snapshot, flags.json);
    }
    flush_output();
  }
  return 0;
}

}  // namespace

void add_watch(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "watch", "Read the counters in a shared region, one-sided",
      "  greynic run mask_wall --target 'twin:cx6?counters=/dev/shm/cx6' -o run.db &\n"
      "  greynic watch /dev/shm/cx6 --wait 10s --every 100ms --count 50 --json");
  command.option("region", flags->region, "Region file that a target publishes to").required();
  command.option("--every", flags->every, "Time between reads");
  command.option("--count", flags->count, "How many times to read");
  command.option("--wait", flags->wait, "Wait so long for a region that is not there yet");
  command.flag("--json", flags->json, "One JSON object a group and read");
  command.run([flags] { return watch(*flags); });
}

}  // namespace greynic::cli
