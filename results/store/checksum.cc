#include "store/checksum.h"

#include <fmt/core.h>
#include <lzma.h>

#include <bit>
#include <map>
#include <string_view>

namespace greynic::results {
namespace {

/// Every part goes in with its length, so that no two sequences of parts look alike.
class Digest {
 public:
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    crc_ = lzma_crc64(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), crc_);
  }
  void add(std::uint64_t number) {
    std::uint8_t bytes[8];
    for (std::size_t i = 0; i < sizeof bytes; ++i) {
      bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    }
    crc_ = lzma_crc64(bytes, sizeof bytes, crc_);
  }
  void add(double number) {
    // SQLite keeps whole numbers as integers, which have one zero.
    add(std::bit_cast<std::uint64_t>(number == 0.0 ? 0.0 : number));
  }
  void add(const std::optional<double>& number) {
    add(std::uint64_t{number.has_value()});
    if (number) add(*number);
  }
  void add(const Measure& measure) {
    add(measure.value);
    add(measure.standard_error);
  }
  template <typename Value>
  void add(const std::map<std::string, Value>& values) {
    add(static_cast<std::uint64_t>(values.size()));
    for (const auto& [name, value] : values) {
      add(std::string_view(name));
      add(value);
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", crc_); }

 private:
  std::uint64_t crc_ = 0;
};

}  // namespace

std::string checksum_of(const Observation& observation) {
  Digest digest;
  digest.add(observation.asked.name());
  digest.add(observation.granted.name());
  digest.add(static_cast<std::uint64_t>(observation.repeat));
  digest.add(to_string(observation.outcome));
  digest.add(observation.reason);
  digest.add(observation.measures);
  digest.add(observation.counters_before);
  digest.add(observation.counters_after);
  for (const auto& [ns, count] : observation.latency.buckets()) {
    digest.add(ns);
    digest.add(count);
  }
  digest.add(std::uint64_t{observation.steady.has_value()});
  if (observation.steady) {
    digest.add(std::uint64_t{observation.steady->settled});
    digest.add(observation.steady->warmup_share);
    digest.add(observation.steady->test);
  }
  digest.add(observation.seed);
  digest.add(observation.elapsed_seconds);
  digest.add(observation.environment);
  for (const auto& [name, samples] : observation.counter_samples) {
    digest.add(std::string_view(name));
    for (const CounterSample& sample : samples) {
      digest.add(static_cast<std::uint64_t>(sample.time_ns));
      digest.add(sample.value);
    }
  }
  return digest.text();
}

std::string checksum_of(const RunHeader& header) {
  Digest digest;
  digest.add(header.campaign_text);
  digest.add(header.campaign_name);
  digest.add(header.target);
  digest.add(header.seed);
  digest.add(header.settings);
  return digest.text();
}

}  // namespace greynic::results
