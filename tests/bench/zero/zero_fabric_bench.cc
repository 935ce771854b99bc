// Thousands of hosts behind one collector, on the twin's fabric in virtual time: how much of the
// line is used, how deep the port's queue gets, when the high class is served; beside it the
// variants without credits. And what one READ of 512 metrics takes. Only `check` asserts anything.
//
// usage: zero_fabric_bench [most hosts]
//        zero_fabric_bench sweep
//        zero_fabric_bench classes
//        zero_fabric_bench check
// sweep: a JSON line for each number of hosts and of metrics, with credits (sweep.py)
// check: whether the line is used and the queue short, by line and bytes; the exit code says so
// classes: how much earlier a tenth of 1,000 hosts is there than the others, by line and bytes

#include <fmt/core.h>

#include <cstdlib>
#include <string>

#include "fabric_collector.h"

namespace {

using namespace greynic::monitor;

void row(const char* name, const FabricRun& run) {
  const FabricOutcome o = FabricCollector(run).measure();
  fmt::print(
      "{:<26} {:>6} {:>6.0f} {:>7.1f} {:>10.1f} {:>9.3f} {:>8} {:>8} {:>6} {:>9.1f} {:>9.1f} "
      "{:>6.2f}\n",
      name, run.hosts, run.gbps, 100 * o.line_share,
      static_cast<double>(o.deepest_queue_bytes) / 1024, o.round_ns / 1e6, o.failed,
      o.drops_and_pauses, o.marked, o.delay_median_ns / 1e3, o.delay_p99_ns / 1e3, o.k);
  if (run.high_every > 0) {
    fmt::print("{:<26} high class after {:.1f} us, others after {:.1f} us: {:.1f} us earlier\n", "",
               o.high_mean_ns / 1e3, o.other_mean_ns / 1e3,
               (o.other_mean_ns - o.high_mean_ns) / 1e3);
  }
  std::fflush(stdout);
}

void sweep() {
  for (const std::uint32_t hosts : {1U, 10U, 100U, 1000U, 9999U}) {
    for (const std::uint32_t metrics : {64U, 512U, 4096U}) {
      FabricRun run;
      run.hosts = hosts;
      run.bytes = metrics * 8;
      run.rounds = 2;
      run.interval_ns = 1e9;
      const FabricOutcome o = FabricCollector(run).measure();
      fmt::print(R"({{"hosts":{},"metrics":{},"round_ns":{:.0f},"p50_ns":{:.0f},"p99_ns":{:.0f},)"
                 R"("queue_bytes":{},"line_share":{:.4f},"failed":{}}})"
                 "\n",
                 hosts, metrics, o.round_ns, o.delay_median_ns, o.delay_p99_ns,
                 o.deepest_queue_bytes, o.line_share, o.failed);
      std::fflush(stdout);
    }
  }
}

void class_row(const std::string& order, const FabricRun& run) {
  const FabricOutcome o = FabricCollector(run).measure();
  fmt::print(
      "{:>6.0f} {:>8} {:<34} {:>9.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>7.1f} "
      "{:>9.0f}\n",
      run.gbps, run.bytes, order, o.round_ns / 1e3, o.high_mean_ns / 1e3, o.other_mean_ns / 1e3,
      (o.other_mean_ns - o.high_mean_ns) / 1e3, o.round_ns / 2e3,
      (o.other_last_ns - o.high_last_ns) / 1e3, 100 * o.line_share,
      static_cast<double>(o.deepest_queue_bytes) / 1024);
  std::fflush(stdout);
}

/// Ways to serve the high class sooner, all of 1,000 hosts with 4 KiB at 100 Gbit/s.
void ways() {
  FabricRun run;
  run.hosts = 1000;
  for (const std::uint32_t every : {100U, 10U, 2U}) {
    run.high_every = every;
    class_row(fmt::format("high first, one host in {}", every), run);
  }
  run.high_every = 10;
  for (const double k : {1.0, 2.0, 4.0}) {
    run.credits.most_k = k;
    class_row(fmt::format("k at most {:.0f}", k), run);
  }
  run.credits.most_k = CreditOptions{}.most_k;
  run.others_wait = true;
  class_row("others wait for the whole class", run);
  run.others_wait = false;
  run.others_after_ns = 270e3;
  class_row("others begin 270 us later", run);
}

/// How much delay the port's queue may add where a host has many bytes.
void large_hosts() {
  for (const double gbps : {25.0, 100.0}) {
    for (const std::uint32_t bytes : {4096U, 16384U, 65536U}) {
      for (const double jobs : {0.0, 0.25, 0.4, 0.5, 1.0}) {
        FabricRun run;
        run.hosts = 1000;
        run.gbps = gbps;
        run.bytes = bytes;
        run.high_every = 10;
        run.credits.queue_target_jobs = jobs;
        class_row(fmt::format("the queue may add {} jobs", jobs), run);
      }
    }
  }
}

/// No order of the same bytes gives more than `most`: all of one class before all of the other.
void classes() {
  fmt::print("{:>6} {:>8} {:<34} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7} {:>9}\n", "Gb/s",
             "bytes", "order", "round us", "high mean", "other mean", "earlier", "most",
             "whole class", "line %", "queue KiB");
  for (const double gbps : {25.0, 100.0}) {
    for (const std::uint32_t bytes : {4096U, 8192U, 12288U, 16384U, 65536U}) {
      for (const bool sorted : {true, false}) {
        FabricRun run;
        run.hosts = 1000;
        run.gbps = gbps;
        run.bytes = bytes;
        run.high_every = 10;
        run.one_queue = !sorted;
        class_row(sorted ? "high first" : "as they come", run);
      }
    }
  }
  ways();
  large_hosts();
}

/// Whether 1,000 hosts fill 95 % of the line with at most 64 KiB in the port's queue, however many
/// bytes each has.
bool check() {
  bool good = true;
  for (const double gbps : {25.0, 100.0}) {
    for (const std::uint32_t bytes : {4096U, 16384U, 65536U}) {
      FabricRun run;
      run.hosts = 1000;
      run.gbps = gbps;
      run.bytes = bytes;
      const FabricOutcome o = FabricCollector(run).measure();
      const bool fine =
          o.line_share >= 0.95 && o.deepest_queue_bytes <= 65536 && o.failed == 0 && o.marked == 0;
      fmt::print("{:>3.0f} Gbit/s, {:>5} bytes a host: {:.1f} % of the line, {:.0f} KiB queued{}\n",
                 gbps, bytes, 100 * o.line_share, static_cast<double>(o.deepest_queue_bytes) / 1024,
                 fine ? "" : ": missed");
      good = good && fine;
    }
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "sweep") {
    sweep();
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "classes") {
    classes();
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "check") return check() ? 0 : 1;
  const auto most = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 10000);
  FabricRun one;
  one.hosts = 1;
  one.rounds = 10;
  const FabricOutcome alone = FabricCollector(one).measure();
  fmt::print("one READ of 512 metrics: {:.2f} us\n\n", alone.delay_median_ns / 1e3);
  fmt::print("{:<26} {:>6} {:>6} {:>7} {:>10} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9} {:>6}\n",
             "sharing", "hosts", "Gb/s", "line %", "queue KiB", "round ms", "failed", "dr+pause",
             "ECN", "p50 us", "p99 us", "k");
  for (const std::uint32_t hosts : {100U, 1000U, 9999U}) {
    if (hosts > most) continue;
    for (const double gbps : {25.0, 100.0}) {
      FabricRun run;
      run.hosts = hosts;
      run.gbps = gbps;
      run.high_every = 10;
      row("credits", run);
      run.sharing = FabricRun::Sharing::kAllAtOnce;
      row("all at once", run);
      run.pfc = true;
      row("all at once, PFC", run);
      run.dcqcn = true;
      row("all at once, ECN (DCQCN)", run);
    }
  }
  return 0;
}
