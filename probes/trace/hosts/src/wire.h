#pragma once

/// Reports and journeys as messages, and back. What is read came from outside: text is made plain, and
/// a number that no report can hold is left out.

#include "greynic/core/result.h"
#include "greynic/trace/tracer.h"
#include "trace_hosts.pb.h"

namespace greynic::trace_hosts {

inline constexpr int kProtocol = 1;
inline constexpr int kMostMessageBytes = 64 << 20;

void write(const Error& error, wire::Fault& out);
[[nodiscard]] Error read(const wire::Fault& in);
void write(const trace::Report& report, wire::ReadReply& out);
[[nodiscard]] trace::Report read_report(const wire::ReadReply& in);
void write(const trace::JourneyEvent& event, wire::Event& out);
[[nodiscard]] trace::JourneyEvent read(const wire::Event& in);
/// A time of another host's CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t read_time(std::int64_t ns);

}  // namespace greynic::trace_hosts
