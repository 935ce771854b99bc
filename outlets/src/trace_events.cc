#include "greynic/outlets/trace_events.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "greynic/core/text.h"

namespace greynic::outlets {
namespace {

constexpr std::size_t kPiece = 64 << 10;

void add_text(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(at));
    const char c = text[at];
    if (bytes == 0) {
      out += '?';
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes == 0 ? 1 : bytes;
  }
  out += '"';
}

/// The format counts in microseconds; three places keep every nanosecond.
void add_time(std::string& out, std::int64_t ns) {
  const std::int64_t whole = ns / 1000;
  const std::int64_t part = std::abs(ns % 1000);
  fmt::format_to(std::back_inserter(out), "{}{}.{:03}", ns < 0 && whole == 0 ? "-" : "", whole,
                 part);
}

/// JSON has no infinity and no NaN.
void add_number(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "null";
  }
}

}  // namespace

TraceEvents::TraceEvents(Sink sink)
    : sink_(std::move(sink)), text_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") {}

void TraceEvents::give(std::size_t at_least) {
  if (text_.size() < at_least) return;
  sink_(text_);
  text_.clear();
}

void TraceEvents::begin(std::string_view phase, std::string_view name, Track track,
                        std::int64_t time_ns) {
  give(kPiece);
  fmt::format_to(std::back_inserter(text_),
                 "{}{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"name\":", first_ ? "\n" : ",\n", phase,
                 track.process, track.track);
  first_ = false;
  add_text(text_, name);
  text_ += ",\"ts\":";
  add_time(text_, time_ns);
}

void TraceEvents::end(const Details& details) {
  if (!details.empty()) {
    text_ += ",\"args\":{";
    bool first = true;
    for (const auto& [key, value] : details) {
      if (!std::exchange(first, false)) text_ += ',';
      add_text(text_, key);
      text_ += ':';
      if (const auto* number = std::get_if<double>(&value)) {
        add_number(text_, *number);
      } else {
        add_text(text_, std::get<std::string>(value));
      }
    }
    text_ += '}';
  }
  text_ += '}';
}

void TraceEvents::name(std::string_view what, Track track, std::string_view name) {
  begin("M", what, track, 0);
  end({{"name", std::string(name)}});
}

void TraceEvents::name_process(std::uint32_t process, std::string_view process_name) {
  name("process_name", {process, 0}, process_name);
}

void TraceEvents::name_track(Track track, std::string_view track_name) {
  name("thread_name", track, track_name);
}

void TraceEvents::slice(Track track, std::string_view slice_name, std::int64_t start_ns,
                        std::int64_t length_ns, const Details& details) {
  begin("X", slice_name, track, start_ns);
  text_ += ",\"dur\":";
  add_time(text_, length_ns);
  end(details);
}

void TraceEvents::instant(Track track, std::string_view instant_name, std::int64_t time_ns,
                          const Details& details) {
  begin("i", instant_name, track, time_ns);
  text_ += ",\"s\":\"t\"";
  end(details);
}

void TraceEvents::counter(std::uint32_t process, std::string_view counter_name,
                          std::int64_t time_ns,
                          const std::vector<std::pair<std::string, double>>& series) {
  begin("C", counter_name, {process, 0}, time_ns);
  end(Details(series.begin(), series.end()));
}

void TraceEvents::arrow(std::uint64_t number, std::string_view arrow_name, Track from,
                        std::int64_t from_ns, Track to, std::int64_t to_ns) {
  const auto point = [&](std::string_view phase, Track track, std::int64_t time_ns) {
    begin(phase, arrow_name, track, time_ns);
    fmt::format_to(std::back_inserter(text_), ",\"cat\":\"arrow\",\"id\":{},\"bp\":\"e\"", number);
    end({});
  };
  point("s", from, from_ns);
  point("f", to, to_ns);
}

void TraceEvents::finish() {
  text_ += "\n]}\n";
  give(0);
}

}  // namespace greynic::outlets
