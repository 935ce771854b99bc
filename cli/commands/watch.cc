#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/files/json_file.h"
#include "greynic/zero/reader.h"

namespace greynic::cli {
namespace {

struct WatchFlags {
  std::string region;
  std::chrono::nanoseconds every = std::chrono::seconds(1);
  std::optional<std::chrono::nanoseconds> wait;
  std::uint64_t count = 1;
  bool json = false;
};

void show(const zero::Reading& reading, bool as_json) {
  const zero::Row& row = *reading.row;
  nlohmann::json metrics = nlohmann::json::object();
  std::int64_t time_ns = 0;
  if (!as_json)
    print("{}{}{}{}", row.schema->name, row.labels.empty() ? "" : "{", row.labels,
          row.labels.empty() ? "" : "}");
  std::string lines;
  for (const zero::Field& field : row.schema->fields) {
    if (field.name == "time_ns") {
      time_ns = static_cast<std::int64_t>(zero::bits_of(field, reading.bytes));
      continue;
    }
    if (field.kind == ZERO_HISTOGRAM) continue;
    for (std::uint32_t i = 0; i < field.count; ++i) {
      const std::string name = field.count == 1 ? field.name : fmt::format("{}[{}]", field.name, i);
      const double value = zero::number_of(field, reading.bytes, i);
      metrics[name] = value;
      lines += fmt::format("  {:<40} {:>20} {}\n", name, number_to_string(value), field.unit);
    }
  }
  if (!as_json) {
    print(" at {} ns (write {})\n{}", time_ns, reading.version / 2, lines);
    return;
  }
  nlohmann::json document = {{"group", row.schema->name},
                             {"version", reading.version},
                             {"time_ns", time_ns},
                             {"metrics", std::move(metrics)}};
  if (!row.labels.empty()) document["labels"] = row.labels;
  print("{}\n", files::json_text(document));
}

Result<zero::ArenaReader> open_region(const std::string& path) {
  auto source = zero::map_region(path);
  if (!source) return pass_on(source);
  auto reader = zero::ArenaReader::open(std::move(*source));
  if (!reader) return reader.error().while_doing(path);
  return reader;
}

/// The region, once its target has made it: when its first measurement begins. Until then a file of
/// an older run may be there.
Result<zero::ArenaReader> reader_of(const WatchFlags& flags) {
  constexpr std::chrono::milliseconds kLook{20};
  const auto until =
      std::chrono::steady_clock::now() + flags.wait.value_or(std::chrono::nanoseconds(0));
  auto reader = open_region(flags.region);
  while (!reader && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLook);
    reader = open_region(flags.region);
  }
  return reader;
}

int watch(const WatchFlags& flags) {
  auto reader = reader_of(flags);
  if (!reader) return tell(reader.error());
  for (std::uint64_t round = 0; round < flags.count; ++round) {
    if (round > 0) std::this_thread::sleep_for(flags.every);
    const auto readings = reader->look();
    if (!readings) return tell(readings.error());
    for (const zero::Reading& reading : *readings) show(reading, flags.json);
    flush_output();
  }
  return 0;
}

}  // namespace

void add_watch(Program& program) {
  auto flags = std::make_shared<WatchFlags>();
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
