#pragma once

/// The pipeline law written down a second time, plainly, from docs/models/pipeline.md: an oracle
/// that shares no code with model/.

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/model/model.h"

namespace greynic::model {

struct PlainLaw {
  double line = 200, pcie = 260, post = 140, message = 8, unit = 92, encap_packets = 34,
         decap_packets = 40, window = 38, stage = 0.45, encap = 100, decap = 150, base = 2.8,
         fetch = 0.6, byte = 0.13, gap = 0.3, burst_walk = 1, sharpness = 12, send_gap = 3,
         queue = 5.9, unit_mask = 1, depth = 128, inlined = 100;

  [[nodiscard]] double sum(std::vector<double> times) const {
    const double top = *std::max_element(times.begin(), times.end());
    double total = 0.0;
    for (const double t : times) {
      if (t > 0.25 * top) total += std::pow(t / top, sharpness);
    }
    return top * std::pow(total, 1.0 / sharpness);
  }

  [[nodiscard]] double gbps(double bytes, double qps, double e, double d, double back_e = 0,
                            double back_d = 0) const {
    const double n = std::max(1.0, std::ceil(bytes / 1024));
    const double we = e * encap * 1e-3;
    const double wd = d * decap * 1e-3;
    const double us =
        sum({(bytes + 132 * n) * 8e-3 / line + send_gap * 1e-3,
             (queue + we + wd + (back_e * encap + back_d * decap) * 1e-3) / (qps * depth),
             bytes * 8e-3 / pcie, post * 1e-3, message * 1e-3,
             (unit + e * unit_mask) * n * 1e-3 / qps, n * (stage + we + wd) / window / qps,
             n * (stage + we) / encap_packets, n * (stage + wd) / decap_packets});
    return bytes * 8e-3 / us;
  }

  [[nodiscard]] double one_way(double bytes, double e, double d) const {
    const double n = std::max(1.0, std::ceil(bytes / 1024));
    const double we = e * encap * 1e-3;
    const double wd = d * decap * 1e-3;
    double t = we + wd + byte * 1e-3 * std::min(bytes, 4096.0) + (bytes > inlined ? fetch : 0);
    if (n <= 4) return t;
    const double slowed = unit + e * unit_mask;
    const double arriving = slowed * 1e-3 * (n - 4);
    const double hold = gap + burst_walk * std::max(we, wd);
    const double wait = hold - 0.5 * std::min(arriving, hold);
    const double pace =
        sum({slowed * 1e-3, (stage + we) / encap_packets, (stage + wd) / decap_packets,
             (stage + we + wd) / window, 1156 * 8e-3 / line});
    const double backlog = std::max(0.0, n - window) * (pace - slowed * 1e-3);
    return t + arriving + std::max(wait, backlog);
  }

  [[nodiscard]] double us(double bytes, double ce, double sd, double se, double cd) const {
    return base + 0.5 * (one_way(bytes, ce, sd) + one_way(bytes, se, cd));
  }
};

/// Observations of the law at random settings, each with its own scatter, told as standard error.
inline std::vector<Observation> plant(const PlainLaw& law, int count, double scatter,
                                      std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto pick = [&](const std::vector<double>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
  };
  const std::vector<double> masks = {0, 0, 5, 10, 20, 40};
  std::vector<Observation> observations;
  for (int i = 0; i < count; ++i) {
    const double ce = pick(masks);
    const double sd = pick(masks);
    const double se = pick(masks);
    const double cd = pick(masks);
    const double bytes = pick({64, 1024, 4096, 8192, 65536, 1048576, 8388608});
    const double qps = pick({1, 4, 16});
    Observation o;
    o.asked = {{"client_encap_masks", ce},   {"server_decap_masks", sd}, {"server_encap_masks", se},
               {"client_decap_masks", cd},   {"message_bytes", bytes},   {"qp_count", qps},
               {"inline_bytes", law.inlined}};
    o.outcome = Outcome::kMeasured;
    const auto put = [&](std::string_view name, double truth) {
      const double value = truth * std::exp(scatter * normal(random));
      o.measures[std::string(name)] = {value, scatter * value};
    };
    put(measure::kBandwidth, law.gbps(bytes, qps, ce, sd, se, cd));
    put(measure::kLatencyP50, law.us(bytes, ce, sd, se, cd));
    observations.push_back(std::move(o));
  }
  return observations;
}

/// A fit of the pipeline law with nothing around it.
inline FitOptions quick() {
  FitOptions options;
  options.form = Form::kPipeline;
  options.cross_validate = false;
  options.starts = 1;
  options.intervals = Intervals::kCovariance;
  return options;
}

}  // namespace greynic::model
