#include "counter_arena.h"

#include <algorithm>
#include <optional>

#include "greynic/zero/reader.h"
#include "greynic/zero/region.h"

namespace greynic::loop {
namespace {

class MonitoredCounters final : public target::CounterArena {
 public:
  MonitoredCounters(std::string path, Talk talk) : path_(std::move(path)), talk_(std::move(talk)) {}

  void publish(const target::CounterReading& reading) override {
    const bool same_names = std::ranges::equal(names_, reading.counters, {}, {},
                                               [](const auto& row) { return row.first; });
    if (!same_names) open(reading);
    if (!writer_) {
      kept_ = reading;
      return;
    }
    values_.clear();
    for (const auto& [name, value] : reading.counters) values_.push_back(value);
    writer_->publish(0, reading.time_ns, values_);
  }

  target::CounterReading look() override {
    if (!reader_) return kept_;
    const auto readings = reader_->look();
    if (!readings || readings->empty()) return {};
    target::CounterReading found;
    const zero::Reading& row = readings->front();
    for (const zero::Field& field : row.row->schema->fields) {
      if (field.name == "time_ns") {
        found.time_ns = static_cast<std::int64_t>(zero::bits_of(field, row.bytes));
      } else {
        found.counters.emplace_back(field.name, zero::number_of(field, row.bytes));
      }
    }
    return found;
  }

 private:
  /// The table is made from the names of a reading, and made anew when they change.
  void open(const target::CounterReading& reading) {
    names_.clear();
    reader_.reset();
    writer_.reset();
    zero::Group group{"counters", {}};
    for (const auto& [name, value] : reading.counters) {
      names_.push_back(name);
      group.metrics.push_back({name, ""});
    }
    if (names_.empty()) return;
    auto writer = zero::RegionWriter::create(path_, {group});
    if (!writer) return warn(writer.error());
    auto reader = zero::ArenaReader::open(zero::memory_source(writer->bytes()));
    if (!reader) return warn(reader.error());
    writer_.emplace(std::move(*writer));
    reader_.emplace(std::move(*reader));
  }
  void warn(const Error& error) {
    talk_.line("warning: counters are not published: " + error.message);
  }

  std::string path_;
  Talk talk_;
  std::vector<std::string> names_;
  std::vector<double> values_;
  target::CounterReading kept_;  ///< where there is no arena
  std::optional<zero::RegionWriter> writer_;
  std::optional<zero::ArenaReader> reader_;  // after the writer, to end before it
};

}  // namespace

target::CounterArenas counter_arenas(const Talk& talk) {
  return
      [talk](const std::string& path) { return std::make_unique<MonitoredCounters>(path, talk); };
}

}  // namespace greynic::loop
