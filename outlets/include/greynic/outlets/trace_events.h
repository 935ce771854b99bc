#pragma once

/// A timeline in the JSON trace event format, which ui.perfetto.dev and chrome://tracing open:
/// processes (a host, a switch) with tracks (a device, a queue, a flow) of slices, instants,
/// counters, and arrows between slices.
///
/// Text goes to the sink as it is made, in pieces of some 64 KiB, so a timeline may be longer than
/// memory. The destructor does not end it: call finish().

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace greynic::outlets {

class TraceEvents {
 public:
  using Sink = std::function<void(std::string_view)>;
  /// Shown with an event when it is clicked on.
  using Details = std::vector<std::pair<std::string, std::variant<double, std::string>>>;
  struct Track {
    std::uint32_t process = 0, track = 0;
  };

  explicit TraceEvents(Sink sink);

  /// Names; in any order with the events.
  void name_process(std::uint32_t process, std::string_view name);
  void name_track(Track track, std::string_view name);

  /// Times and lengths in nanoseconds from any origin.
  void slice(Track track, std::string_view name, std::int64_t start_ns, std::int64_t length_ns,
             const Details& details = {});
  void instant(Track track, std::string_view name, std::int64_t time_ns,
               const Details& details = {});
  /// One line a series, stacked, under the counter's name.
  void counter(std::uint32_t process, std::string_view name, std::int64_t time_ns,
               const std::vector<std::pair<std::string, double>>& series);
  /// An arrow from the slice that is open at one place to the slice open at another. An arrow's
  /// number is its own.
  void arrow(std::uint64_t number, std::string_view name, Track from, std::int64_t from_ns,
             Track to, std::int64_t to_ns);

  /// Ends the text.
  void finish();

 private:
  void begin(std::string_view phase, std::string_view name, Track track, std::int64_t time_ns);
  void end(const Details& details);
  void name(std::string_view what, Track track, std::string_view name);
  void give(std::size_t at_least);

  Sink sink_;
  std::string text_;
  bool first_ = true;
};

}  // namespace greynic::outlets
