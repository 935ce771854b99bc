#include "src/space/port_runs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/space/packet_space.h"

namespace greynic::verify {
namespace {

using Spans = std::vector<PortSpan>;
using Rectangle = std::pair<PortSpan, PortSpan>;  ///< source, destination

/// Sorted, none next to another.
Spans put_together(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans whole;
  for (const PortSpan& span : spans) {
    if (!whole.empty() && span.low <= whole.back().high + 1) {
      whole.back().high = std::max(whole.back().high, span.high);
    } else {
      whole.push_back(span);
    }
  }
  return whole;
}

void set_span(Match& match, MatchField field, const PortSpan& span) {
  match.set(field, 0, 0);
  if (span.low > 0 || span.high < kLastPort) match.set_range(field, span.low, span.high);
}

class Runs {
 public:
  void add(const Match& match, std::uint32_t effect, std::uint32_t number) {
    const auto source = span_of(match, MatchField::kL4SrcPort);
    const auto destination = span_of(match, MatchField::kL4DstPort);
    if (!source || !destination) {
      end();
      made_.push_back({match, number});
      return;
    }
    Match rest = match;
    rest.set(MatchField::kL4SrcPort, 0, 0);
    rest.set(MatchField::kL4DstPort, 0, 0);
    if (ports_.empty() || effect != effect_ || !(rest == rest_)) {
      end();
      rest_ = std::move(rest);
      effect_ = effect;
      first_ = number;
      given_ = match;
    }
    ports_.emplace_back(*source, *destination);
  }

  std::vector<PortRun> run() {
    end();
    return std::move(made_);
  }

 private:
  void end() {
    if (ports_.size() == 1) made_.push_back({std::move(given_), first_});
    if (ports_.size() > 1) {
      std::map<PortSpan, Spans> by_source;
      for (const auto& [source, destination] : ports_) by_source[source].push_back(destination);
      std::map<Spans, Spans> by_destinations;
      for (auto& [source, destinations] : by_source) {
        by_destinations[put_together(std::move(destinations))].push_back(source);
      }
      for (const auto& [destinations, sources] : by_destinations) {
        for (const PortSpan& source : put_together(sources)) {
          for (const PortSpan& destination : destinations) {
            set_span(rest_, MatchField::kL4SrcPort, source);
            set_span(rest_, MatchField::kL4DstPort, destination);
            made_.push_back({rest_, first_});
          }
        }
      }
    }
    ports_.clear();
  }

  std::vector<PortRun> made_;
  std::vector<Rectangle> ports_;  ///< of the run at hand
  Match rest_;                    ///< what they have in common
  Match given_;                   ///< the first of them
  std::uint32_t effect_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace

std::vector<PortRun> port_runs(const std::vector<const Match*>& matches,
                               const std::vector<std::uint32_t>& effects) {
  Runs runs;
  for (std::uint32_t i = 0; i < matches.size(); ++i) runs.add(*matches[i], effects[i], i);
  return runs.run();
}

}  // namespace greynic::verify
