#include "conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "greynic/core/text.h"
#include "greynic/core/units.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastLineBytes = 64;    ///< a short line costs as much work as a longer one
constexpr std::uint64_t kMostComplaints = 20;  ///< on stderr: a command may print without end

std::string shortened(std::string_view line) {
  constexpr std::size_t kMost = 60;
  return line.size() <= kMost ? std::string(line) : std::string(line.substr(0, kMost)) + "...";
}

}  // namespace

void Conversation::report(const std::string& complaint) {
  if (++complaints_ > kMostComplaints + 1) return;
  const bool last = complaints_ > kMostComplaints;
  fmt::print(stderr, "greynic: {}\n",
             last ? "more such lines of the command are left out" : printable(complaint));
}

void Conversation::begin() {
  complaints_ = 0;
  line_number_ = 0;
  answers_ = 0;
  chatters_ = false;
  abandoned_.clear();
}

void Conversation::ask(std::span<const target::MeasureRequest> requests,
                       std::map<std::string, std::string> environment) {
  requests_ = requests;
  environment_ = std::move(environment);
  next_ = 0;
  idle_bytes_ = 0;
  last_delivery_ = Clock::now();
}

bool Conversation::next_request(std::string& lines) {
  if (next_ == requests_.size()) return false;
  const target::MeasureRequest& request = requests_[next_];
  const double seconds = std::chrono::duration<double>(request.duration).count();
  lines += fmt::format(R"({{"id":{},"configuration":{},"repeat":{},"seconds":{},"seed":{}}})",
                       ++last_id_, files::to_json(request.configuration).dump(), request.repeat,
                       number_to_string(seconds), request.seed);
  lines += '\n';
  owed_[last_id_] = {.index = next_++, .complaint = {}};
  return true;
}

Observation Conversation::empty_observation(std::size_t index) const {
  Observation observation;
  observation.asked = requests_[index].configuration;
  observation.repeat = requests_[index].repeat;
  observation.seed = requests_[index].seed;
  observation.environment = environment_;
  return observation;
}

bool Conversation::deliver(std::uint64_t id, Observation observation,
                           const target::ObservationSink& sink) {
  const auto found = owed_.find(id);
  const std::size_t index = found->second.index;
  owed_.erase(found);
  last_delivery_ = Clock::now();
  idle_bytes_ = 0;
  return sink(index, std::move(observation));
}

void Conversation::blame(const std::string& complaint) {
  report(complaint);
  const auto waiting = std::find_if(owed_.begin(), owed_.end(),
                                    [](const auto& owed) { return owed.second.complaint.empty(); });
  if (waiting != owed_.end()) waiting->second.complaint = complaint;
}

bool Conversation::answer(std::string_view line, const target::ObservationSink& sink) {
  ++line_number_;
  idle_bytes_ += std::max(line.size() + 1, kLeastLineBytes);
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
  const std::string source = fmt::format("line {} of the command's answers", line_number_);
  auto json = files::parse_json(line, source);
  if (!json || !json->is_object()) {
    blame(fmt::format("{}: not a JSON object: {}", source, shortened(line)));
    return true;
  }
  const auto id_field = json->find("id");
  if (id_field == json->end() || !id_field->is_number_unsigned()) {
    blame(fmt::format("{}: at /id: must be the id of a request: {}", source, shortened(line)));
    return true;
  }
  const auto id = id_field->get<std::uint64_t>();
  const auto found = owed_.find(id);
  if (found == owed_.end()) {
    if (abandoned_.erase(id) == 0) {
      report(fmt::format("{}: no request with id {} waits for an answer; left out", source, id));
    }
    return true;
  }
  ++answers_;
  if (!found->second.complaint.empty()) chatters_ = true;
  Observation observation = empty_observation(found->second.index);
  json->erase("id");
  auto read = files::observation_from_json(*json, source, "");
  if (read && read->outcome == Outcome::kMeasured && read->measures.empty()) {
    read = files::bad_value(source, "", "holds no measure, such as \"bandwidth_gbps\":91.2");
  }
  if (read && read->outcome == Outcome::kNotRun) {
    read = files::bad_value(source, "/outcome",
                            "must be measured, refused, failed, timed_out or too_short");
  }
  if (!read) {
    report(read.error().message);
    observation.outcome = Outcome::kFailed;
    observation.reason = read.error().message;
    return deliver(id, std::move(observation), sink);
  }
  const Configuration asked = observation.asked;
  const std::map<std::string, std::string> environment = observation.environment;
  const int repeat = observation.repeat;
  const std::uint64_t seed = observation.seed;
  observation = std::move(*read);
  // A command that spells out the configuration it set says what was granted.
  if (observation.granted.empty() && observation.asked != asked) {
    observation.granted = observation.asked;
  }
  observation.asked = asked;
  observation.repeat = repeat;
  observation.seed = seed;
  observation.environment.insert(environment.begin(), environment.end());
  if (!json->contains("elapsed_seconds")) {
    observation.elapsed_seconds =
        std::chrono::duration<double>(Clock::now() - last_delivery_).count();
  }
  if (observation.outcome != Outcome::kMeasured && observation.reason.empty()) {
    observation.reason = "the command gave no reason";
  }
  return deliver(id, std::move(observation), sink);
}

void Conversation::give_up(Outcome outcome, const std::string& reason,
                           const target::ObservationSink& sink) {
  // What was never given out is owed too: nobody is left to take it.
  std::string unsent;
  while (next_request(unsent)) unsent.clear();
  while (!owed_.empty()) {
    Observation observation = empty_observation(owed_.begin()->second.index);
    observation.outcome = outcome;
    observation.reason = reason;
    if (!deliver(owed_.begin()->first, std::move(observation), sink)) return;
  }
}

bool Conversation::only_malformed_left() const {
  if (chatters_ || owed_.empty() || next_ != requests_.size()) return false;
  return std::all_of(owed_.begin(), owed_.end(),
                     [](const auto& owed) { return !owed.second.complaint.empty(); });
}

void Conversation::settle_malformed(const target::ObservationSink& sink) {
  for (auto owed = owed_.begin(); owed != owed_.end();) {
    const auto current = owed++;
    if (current->second.complaint.empty()) continue;
    Observation observation = empty_observation(current->second.index);
    observation.outcome = Outcome::kFailed;
    observation.reason = current->second.complaint;
    // A late answer to it is then no surprise.
    abandoned_.insert(current->first);
    if (!deliver(current->first, std::move(observation), sink)) return;
  }
}

void Conversation::abandon() {
  for (const auto& [id, owed] : owed_) abandoned_.insert(id);
  owed_.clear();
  requests_ = {};
  next_ = 0;
}

}  // namespace greynic::exec
