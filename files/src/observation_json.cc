#include <limits>

#include "greynic/files/core_json.h"
#include "greynic/files/histogram_json.h"
#include "greynic/files/json_file.h"

namespace greynic::files {

using nlohmann::json;

namespace {

json numbers(const std::map<std::string, double>& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

Result<std::map<std::string, double>> numbers_from_json(const json& object,
                                                        const std::string& source,
                                                        const std::string& json_path) {
  std::map<std::string, double> values;
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of numbers");
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number()) {
      return bad_value(source, json_path + "/" + name, "must be a number");
    }
    values[name] = value.get<double>();
  }
  return values;
}

/// Up to the largest T. A number of more than 64 bits is kept as a fraction, which no conversion takes.
template <typename T>
Result<T> count_from_json(const json& value, const std::string& source,
                          const std::string& json_path) {
  constexpr T kMost = std::numeric_limits<T>::max();
  const bool whole =
      value.is_number_unsigned() ||
      (value.is_number_integer() && value.get<std::int64_t>() >= 0);  // as our own writers have it
  if (!whole || value.get<std::uint64_t>() > std::uint64_t{kMost}) {
    return bad_value(source, json_path,
                     "must be a whole number from 0 to " + std::to_string(kMost));
  }
  return static_cast<T>(value.get<std::uint64_t>());
}

}  // namespace

Result<LatencyHistogram> histogram_from_json(const json& list, const std::string& source,
                                             const std::string& json_path) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;
  const bool is_list = list.is_array();
  for (const auto& bucket : is_list ? list : json::array({nullptr})) {
    if (!bucket.is_array() || bucket.size() != 2 || !bucket[0].is_number_unsigned() ||
        !bucket[1].is_number_unsigned()) {
      return bad_value(source, json_path, "must be a list of [nanoseconds, count]");
    }
    buckets.emplace_back(bucket[0].get<std::uint64_t>(), bucket[1].get<std::uint64_t>());
  }
  return LatencyHistogram::from_buckets(buckets);
}

json to_json(const Observation& observation) {
  json object = {{"configuration", to_json(observation.asked)},
                 {"repeat", observation.repeat},
                 {"outcome", to_string(observation.outcome)},
                 {"seed", observation.seed},
                 {"elapsed_seconds", observation.elapsed_seconds}};
  if (!observation.granted.empty()) object["granted"] = to_json(observation.granted);
  if (!observation.reason.empty()) object["reason"] = observation.reason;
  json errors = json::object();
  for (const auto& [name, measure] : observation.measures) {
    object[name] = measure.value;
    if (measure.standard_error) errors[name] = *measure.standard_error;
  }
  if (!errors.empty()) object["standard_errors"] = std::move(errors);
  if (!observation.counters_before.empty()) {
    object["counters_before"] = numbers(observation.counters_before);
  }
  if (!observation.counters_after.empty()) object["counters"] = numbers(observation.counters_after);
  if (!observation.latency.empty()) object["latency_ns_buckets"] = observation.latency.buckets();
  if (observation.steady) {
    object["steady"] = {{"settled", observation.steady->settled},
                        {"warmup_share", observation.steady->warmup_share},
                        {"test", observation.steady->test}};
  }
  if (!observation.environment.empty()) object["environment"] = observation.environment;
  return object;
}

Result<Observation> observation_from_json(const json& object, const std::string& source,
                                          const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object");
  Observation result;
  result.outcome = Outcome::kMeasured;
  try {
    for (const auto& [key, value] : object.items()) {
      const std::string here = json_path + "/" + key;
      if (key == "configuration" || key == "granted") {
        auto configuration = configuration_from_json(value, source, here);
        if (!configuration) return pass_on(configuration);
        (key == "granted" ? result.granted : result.asked) = std::move(*configuration);
      } else if (key == "outcome") {
        const auto outcome = outcome_named(value.get<std::string>());
        if (!outcome) {
          return bad_value(source, here,
                           "must be measured, refused, failed, timed_out or too_short");
        }
        result.outcome = *outcome;
      } else if (key == "reason") {
        result.reason = value.get<std::string>();
      } else if (key == "repeat") {
        const auto repeat = count_from_json<int>(value, source, here);
        if (!repeat) return pass_on(repeat);
        result.repeat = *repeat;
      } else if (key == "seed") {
        const auto seed = count_from_json<std::uint64_t>(value, source, here);
        if (!seed) return pass_on(seed);
        result.seed = *seed;
      } else if (key == "elapsed_seconds") {
        result.elapsed_seconds = value.get<double>();
      } else if (key == "counters" || key == "counters_before") {
        auto values = numbers_from_json(value, source, here);
        if (!values) return pass_on(values);
        (key == "counters" ? result.counters_after : result.counters_before) = std::move(*values);
      } else if (key == "standard_errors") {
        auto values = numbers_from_json(value, source, here);
        if (!values) return pass_on(values);
        for (const auto& [name, error] : *values) result.measures[name].standard_error = error;
      } else if (key == "latency_ns_buckets") {
        auto latency = histogram_from_json(value, source, here);
        if (!latency) return pass_on(latency);
        result.latency = std::move(*latency);
      } else if (key == "steady") {
        result.steady = SteadyState{value.value("settled", false), value.value("warmup_share", 0.0),
                                    value.value("test", std::string())};
      } else if (key == "environment") {
        result.environment = value.get<std::map<std::string, std::string>>();
      } else if (value.is_number()) {
        result.measures[key].value = value.get<double>();
      } else if (key != "id") {
        return bad_value(source, here, "must be a number: every other field is a measure");
      }
    }
  } catch (const json::exception& error) {
    return bad_value(source, json_path, error.what());
  }
  for (const auto& [name, measure] : result.measures) {
    if (measure.standard_error && !object.contains(name)) {
      return bad_value(source, json_path + "/standard_errors/" + name,
                       "has no measure of its name");
    }
  }
  return result;
}

}  // namespace greynic::files
