#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 4711;

/// Oracle: the M/D/1 queue, in units of its service time.
struct MD1 {
  double load;
  [[nodiscard]] double mean_wait() const { return load / (2 * (1 - load)); }
  /// P(wait <= x). A. K. Erlang, 1909.
  [[nodiscard]] double waits_at_most(double x) const {
    long double sum = 0;
    long double factorial = 1;
    for (int k = 0; k <= static_cast<int>(x); ++k) {
      if (k > 0) factorial *= k;
      const long double y = load * (k - x);
      sum += std::pow(y, k) / factorial * std::exp(-y);
    }
    return static_cast<double>((1 - load) * sum);
  }
  [[nodiscard]] double quantile(double q) const {
    double low = 0;
    double high = 20;  // beyond it the sum above loses its digits
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (waits_at_most(middle) < q ? low : high) = middle;
    }
    return low;
  }
};

struct Loaded {
  BandwidthResult rate;
  LatencyResult latency;
};

/// So many messages, whatever is known by then.
Loaded run(HostLoad w, double rate, double messages = 1e6) {
  w.offered_rate = rate;
  Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
  RunLimits limits;
  limits.duration = messages * 1e9 / rate;
  limits.whole_duration = true;
  Loaded out;
  out.rate = engine.run_bandwidth(limits);
  out.latency = engine.latency();
  EXPECT_EQ(engine.broken_law(), "");
  return out;
}

HostLoad small_writes() {
  HostLoad w;
  w.operation = Operation::kWrite;
  w.message_bytes = {64};
  return w;
}

// Claim:  messages that come at random times wait for their thread as in M/D/1.
// Oracle: closed forms of the mean (Pollaczek, Khinchine) and of the distribution (Erlang).
// Method: one thread, one QP, 64-byte WRITE; a message takes post_request_ns + completion_ns of
//         the thread, more than of any other stage. What the way takes besides is one constant,
//         taken from half load, where it is 0.1 us of jitter sure; loads 0.7 and 0.9, a million
//         messages each. p99.9 is asked for where Erlang's sum still has digits.
TEST(OpenLoop, WaitsForTheThreadAsInMD1) {
  const Parameters p = load_model("cx6", "")->parameters;
  const double service = p.post_request_ns + p.completion_ns;
  const auto at = [&](double load) { return run(small_writes(), load * 1e9 / service); };
  const Loaded half = at(0.5);
  const double way = half.latency.mean_ns - service * MD1{0.5}.mean_wait();
  for (const double load : {0.7, 0.9}) {
    const Loaded seen = at(load);
    const MD1 queue{load};
    EXPECT_TRUE(seen.latency.steady.settled);
    EXPECT_NEAR(seen.rate.messages_per_second, load * 1e9 / service, 0.01 * 1e9 / service);
    EXPECT_NEAR((seen.latency.mean_ns - way) / service, queue.mean_wait(), 0.05 * queue.mean_wait())
        << "load " << load << ", seed " << kSeed;
    for (const double q : {0.9, 0.99, 0.999}) {
      const double wait = queue.quantile(q);
      if (wait > 18) continue;
      EXPECT_NEAR((seen.latency.histogram.quantile_ns(q) - way) / service, wait, 0.06 * wait + 0.15)
          << "load " << load << ", quantile " << q << ", seed " << kSeed;
    }
  }
}

// Claim:  what many threads send waits for the wire as in M/D/1.
// Oracle: the same; the wire takes 1156 + 16 bytes of 200 Gbit/s, and each thread is a small
//         M/D/1 queue before it.
// Method: 16 threads and QPs, 1 KiB WRITE, a completion for each hundredth; the mean at load 0.9
//         less that at 0.6. Threads space their messages, which makes the stream a little more
//         regular than a Poisson process.
TEST(OpenLoop, WaitsForTheWireAsInMD1) {
  const Parameters p = load_model("cx6", "")->parameters;
  HostLoad w = small_writes();
  w.message_bytes = {1024};
  w.qp_count = w.thread_count = 16;
  w.signal_every = 100;
  w.doorbells = Doorbells::kOwn;
  const double wire = (1156 + header::kReth) * 8 / p.link_rate_gbps;
  const double thread = p.post_request_ns + p.completion_ns / w.signal_every;
  const auto wait = [&](double load) {
    return wire * MD1{load}.mean_wait() + thread * MD1{load * thread / (16 * wire)}.mean_wait();
  };
  const double seen = run(w, 0.9e9 / wire).latency.mean_ns - run(w, 0.6e9 / wire).latency.mean_ns;
  EXPECT_NEAR(seen, wait(0.9) - wait(0.6), 0.12 * (wait(0.9) - wait(0.6))) << "seed " << kSeed;
}

// Claim:  at a vanishing load a READ takes a round trip.
// Oracle: the closed loop of one request at a time.
// Method: 64-byte READ, a thousand a second.
TEST(OpenLoop, TakesARoundTripWhereNothingWaits) {
  HostLoad w = small_writes();
  w.operation = Operation::kRead;
  Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
  const double whole = engine.run_latency(RunLimits{}, 2000).mean_ns;
  EXPECT_NEAR(run(w, 1000, 20000).latency.mean_ns, whole, 0.08 * whole);
}

Observation measured(const std::string& settings) {
  auto twin = create("twin:cx6");
  target::MeasureRequest request;
  request.configuration = parse_configuration(settings).value();
  request.seed = kSeed;
  return target::measure_one(**twin, request).value();
}

// Claim:  asked for less than it can, a twin carries what is offered and settles; asked for more,
//         it carries what the closed loop does, and says that it did not settle.
// Oracle: the offered rate, and the same twin without one.
TEST(OpenLoop, CarriesWhatIsOfferedUpToWhatItCan) {
  const std::string settings = "operation=WRITE,message_bytes=4096,qp_count=8,thread_count=8";
  const double most = *measured(settings).value(measure::kMessageRate);
  for (const double share : {0.2, 0.8}) {
    const Observation seen =
        measured(settings + ",offered_rate=" + std::to_string(share * most * 1e6));
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
    EXPECT_TRUE(seen.steady->settled) << share;
    EXPECT_NEAR(*seen.value(measure::kMessageRate), share * most, 0.03 * share * most);
    EXPECT_LT(*seen.value(measure::kLatencyP50), *seen.value(measure::kLatencyP99));
    EXPECT_LE(*seen.value(measure::kLatencyP99), *seen.value(measure::kLatencyP999));
    EXPECT_GE(seen.latency.count(), 25000U);
  }
  const Observation over = measured(settings + ",offered_rate=" + std::to_string(2 * most * 1e6));
  EXPECT_FALSE(over.steady->settled);
  EXPECT_NEAR(*over.value(measure::kMessageRate), most, 0.02 * most);
}

}  // namespace
}  // namespace greynic::twin
