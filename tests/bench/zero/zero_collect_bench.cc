// What the collector costs: 10,000 metrics of one program each 10 ms, a million samples a second,
// into a store. Values move as those of a server do: a tenth of them each 10 ms by small steps, some
// by large ones, gauges with decimals, the rest now and then. CPU of the collector's threads, bytes
// of a sample in the store. Nothing is asserted.
//
// usage: zero_collect_bench DIRECTORY [seconds, 20]

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "greynic/monitor/collector.h"
#include "greynic/series/query.h"
#include "greynic_zero.h"

namespace {

using namespace greynic;

constexpr std::size_t kCounters = 400, kGauges = 100, kObjects = 20;
struct Object {
  std::uint64_t counters[kCounters];
  double gauges[kGauges];
};
const zero_field kFields[] = {
    {"counters", ZERO_U64, ZERO_COUNTER, 0, kCounters, 0, "", "", ""},
    {"gauges", ZERO_F64, ZERO_GAUGE, offsetof(Object, gauges), kGauges, 0, "ratio", "", ""}};
const zero_schema kObject = {"object", "", kFields, 2, sizeof(Object), ZERO_PLAIN};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

[[noreturn]] void be_watched(int ready) {
  std::vector<Object*> objects;
  for (std::size_t i = 0; i < kObjects; ++i) {
    auto* const object = static_cast<Object*>(zero_malloc(sizeof(Object)));
    zero_publish(object, &kObject, fmt::format("id=\"{}\"", i).c_str());
    objects.push_back(object);
  }
  if (write(ready, "!", 1) != 1) _exit(1);
  std::mt19937_64 random(1);
  for (std::uint64_t turn = 0;; ++turn) {
    for (Object* object : objects) {
      for (std::size_t i = 0; i < kCounters; ++i) {
        if (i % 10 == 0) zero_add(&object->counters[i], 90 + random() % 20);
        if (i % 40 == 1) zero_add(&object->counters[i], random() % 1000000);
        if (i % 10 == 2 && turn % 100 == i % 100) zero_add(&object->counters[i], 1);
      }
      for (std::size_t i = 0; i < kGauges; ++i) {
        if (i % 5 == 0) zero_set_f64(&object->gauges[i], static_cast<double>(random() % 100) / 100);
      }
    }
    usleep(10000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 20;
  int ready[2];
  if (pipe(ready) != 0) return 3;
  const pid_t watched = fork();
  if (watched == 0) be_watched(ready[1]);
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return 3;
  monitor::HostSpec host;
  host.name = "h";
  host.pid = watched;
  host.interval = std::chrono::milliseconds(10);
  monitor::CollectorOptions options;
  options.store = argv[1];
  options.tell = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  auto collector = monitor::Collector::open({host}, options);
  if (!collector) return 3;
  const std::atomic<bool> never{false};
  const double before = cpu_seconds();
  const auto done = (*collector)->run(never, std::chrono::seconds(seconds));
  const double used = cpu_seconds() - before;
  const auto counts = (*collector)->counts();
  collector->reset();
  kill(watched, SIGKILL);
  waitpid(watched, nullptr, 0);
  std::uint64_t raw = 0, tiers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    (entry.path().extension() == ".raw" ? raw : tiers) += entry.file_size();
  }
  fmt::print("{} samples in {} s, {} acknowledged, {} lost, {} looks late\n", counts.samples,
             seconds, counts.acknowledged, counts.lost, counts.late_looks);
  fmt::print("collector: {:.2f} % of a core at {:.0f} samples/s, {:.1f} ns a sample\n",
             100 * used / seconds, static_cast<double>(counts.samples) / seconds,
             1e9 * used / static_cast<double>(counts.samples));
  fmt::print("store: {:.3f} bytes a sample, and {:.3f} of tiers\n",
             static_cast<double>(raw) / static_cast<double>(counts.acknowledged),
             static_cast<double>(tiers) / static_cast<double>(counts.acknowledged));
  return done ? 0 : 1;
}
