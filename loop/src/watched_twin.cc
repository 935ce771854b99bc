#ifdef GREYNIC_WITH_TWIN

#include "watched_twin.h"

#include <memory>
#include <mutex>
#include <optional>

#include "counter_arena.h"
#include "greynic/twin/twin.h"
#include "greynic/zero/region.h"

namespace greynic::loop {
namespace {

/// One region for all measurements of a twin. Its table is made from the first snapshot, and made
/// anew when a later measurement has other counters.
class Publisher {
 public:
  Publisher(std::string path, Talk talk) : path_(std::move(path)), talk_(std::move(talk)) {}

  void publish(const twin::CounterSnapshot& snapshot) {
    const std::lock_guard lock(mutex_);
    if (!same_names(snapshot)) open(snapshot);
    if (!writer_) return;
    values_.clear();
    for (const auto& [name, value] : snapshot.counters) values_.push_back(value);
    writer_->publish(0, snapshot.virtual_time.count(), values_);
  }

 private:
  bool same_names(const twin::CounterSnapshot& snapshot) const {
    if (names_.size() != snapshot.counters.size()) return false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != snapshot.counters[i].first) return false;
    }
    return true;
  }
  void open(const twin::CounterSnapshot& snapshot) {
    names_.clear();
    zero::Group group{"counters", {}};
    for (const auto& [name, value] : snapshot.counters) {
      names_.push_back(name);
      group.metrics.push_back({name, ""});
    }
    auto writer = zero::RegionWriter::create(path_, {group});
    if (writer) {
      writer_.emplace(std::move(*writer));
    } else {
      writer_.reset();
      talk_.line("warning: counters are not published: " + writer.error().message);
    }
  }

  std::mutex mutex_;
  std::string path_;
  Talk talk_;
  std::vector<std::string> names_;
  std::optional<zero::RegionWriter> writer_;
  std::vector<double> values_;
};

Result<std::unique_ptr<target::Target>> open_watched(const target::Spec& asked, const Talk& talk) {
  target::Spec spec = asked;
  std::shared_ptr<Publisher> publisher;
  if (const auto option = spec.options.find("counters"); option != spec.options.end()) {
    publisher = std::make_shared<Publisher>(option->second, talk);
    spec.options.erase(option);
  }
  auto device = twin::create(spec);
  if (!device) return pass_on(device);
  (*device)->set_counter_arenas(counter_arenas(talk));
  if (publisher) {
    (*device)->set_counter_sink(
        [publisher](const twin::CounterSnapshot& snapshot) { publisher->publish(snapshot); });
  }
  return std::unique_ptr<target::Target>(std::move(*device));
}

}  // namespace

target::Kind watched_twin_kind(const Talk& talk) {
  target::Kind kind = twin::kind();
  kind.open = [talk](const target::Spec& spec) { return open_watched(spec, talk); };
  return kind;
}

}  // namespace greynic::loop

#endif
