#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"
#include "greynic/statistics/random.h"
#include "greynic/twin/bursts.h"

/// Workload files: each piece of traffic makes its messages, by a seed of its own.

namespace greynic::twin {
namespace {

using nlohmann::json;
using statistics::Random;

constexpr Time kSlotNs = 25e3;

// The likelihood ratios are published. What follows from them and from the shares of time that are
// hot (under 1 %, some 3 %, some 12 %) is stay_hot; the rest is our reading.
constexpr OnOffShape kShapes[] = {
    {"web", 120.0, 0.375, 0.55, 1.30, 0.04, 16, 2048, 300},
    {"cache", 45.0, 0.60, 0.55, 1.30, 0.10, 8, 4096, 700},
    {"hadoop", 16.0, 0.70, 0.70, 1.40, 0.20, 3, 65536, 1500},
};

struct Piece {
  const json& spec;
  std::uint32_t stream;
  double link_gbps;
  BurstWorkload& workload;
  Random random;
  std::size_t most;
  std::size_t tried = 0;

  [[nodiscard]] double number(const char* name, double standard) const {
    return spec.value(name, standard);
  }
  [[nodiscard]] Time from() const { return number("start_us", 0) * 1e3; }
  [[nodiscard]] Time until() const {
    return std::min(workload.duration, number("end_us", workload.duration / 1e3) * 1e3);
  }
  [[nodiscard]] HostId to() const { return spec.at("to").get<HostId>(); }
  /// The hosts that send: those named, or the first so many that are not the receiver.
  [[nodiscard]] std::vector<HostId> senders(std::size_t standard) const {
    if (spec.contains("from")) {
      if (spec["from"].is_array()) return spec["from"].get<std::vector<HostId>>();
      return {spec["from"].get<HostId>()};
    }
    const std::size_t count = spec.value("senders", standard);
    std::vector<HostId> all;
    for (HostId host = 0; host < workload.fabric.host_count && all.size() < count; ++host) {
      if (host != to()) all.push_back(host);
    }
    return all;
  }
  /// More is refused in the end, and must not be made before.
  [[nodiscard]] bool is_full() const { return tried > most || workload.messages.size() > most; }
  void send(Time at, HostId sender, std::uint64_t bytes) {
    ++tried;
    if (at >= from() && at < until()) {
      workload.messages.push_back({at, sender, to(), stream, std::max<std::uint64_t>(bytes, 1)});
    }
  }
};

void make_incast(Piece& piece) {
  const auto senders = piece.senders(piece.workload.fabric.host_count - 1);
  const auto bytes = static_cast<std::uint64_t>(piece.number("message_bytes", 65536));
  const Time every = piece.number("every_us", 500) * 1e3;
  const Time spread = piece.number("spread_us", 1) * 1e3;
  for (Time t = piece.from(); t < piece.until() && !piece.is_full(); t += every) {
    for (const HostId sender : senders)
      piece.send(t + piece.random.uniform() * spread, sender, bytes);
  }
}

/// A train is what segmentation in hardware makes of one large send: packets back to back.
void make_trains(Piece& piece) {
  const auto bytes = static_cast<std::uint64_t>(piece.number("message_bytes", 65536));
  const Time every = piece.number("every_us", 100) * 1e3;
  for (const HostId sender : piece.senders(1)) {
    for (Time t = piece.from() + piece.random.uniform() * every;
         t < piece.until() && !piece.is_full(); t += piece.random.exponential(every)) {
      piece.send(t, sender, bytes);
    }
  }
}

void make_steady(Piece& piece) {
  const auto bytes = static_cast<std::uint64_t>(piece.number("message_bytes", 4096));
  const Time every = static_cast<double>(bytes) * 8 / piece.number("gbps", 1);
  for (const HostId sender : piece.senders(1)) {
    for (Time t = piece.from() + piece.random.uniform() * every;
         t < piece.until() && !piece.is_full(); t += every) {
      piece.send(t, sender, bytes);
    }
  }
}

void make_on_off(Piece& piece) {
  const OnOffShape& shape = *on_off_shape(piece.spec.at("shape").get<std::string>());
  const auto senders = piece.senders(piece.workload.fabric.host_count - 1);
  const double slot_bytes = kSlotNs * piece.link_gbps / 8;
  bool hot = false;
  for (Time slot = piece.from(); slot < piece.until() && !piece.is_full(); slot += kSlotNs) {
    hot = piece.random.uniform() < (hot ? shape.stay_hot : shape.stay_hot / shape.likelihood_ratio);
    const double load =
        hot ? shape.hot_low + piece.random.uniform() * (shape.hot_high - shape.hot_low)
            : shape.cold * 2 * piece.random.uniform();
    const std::uint32_t message = hot ? shape.hot_message_bytes : shape.cold_message_bytes;
    const auto most = static_cast<std::uint32_t>(senders.size());
    const std::uint32_t active = hot ? 1 + piece.random.below(std::min(shape.fan_in, most)) : most;
    const std::uint32_t first = piece.random.below(most);
    const auto count = static_cast<std::uint32_t>(
        std::floor(load * slot_bytes / message + piece.random.uniform()));
    for (std::uint32_t i = 0; i < count && !piece.is_full(); ++i) {
      const HostId sender = senders[(first + piece.random.below(active)) % most];
      piece.send(slot + piece.random.uniform() * kSlotNs, sender, message);
    }
  }
}

Result<void> check_hosts(const Piece& piece, const std::string& source, const std::string& place) {
  const auto count = piece.workload.fabric.host_count;
  const auto bad = [&](HostId host, const char* field) {
    return files::bad_value(source, place + field,
                            fmt::format("there is no host {}; they are 0 to {}", host, count - 1));
  };
  if (piece.spec.at("kind") == "on_off" && !piece.spec.contains("shape")) {
    return files::bad_value(source, place, "on_off traffic needs a shape: web, cache or hadoop");
  }
  if (piece.to() >= count) return bad(piece.to(), "/to");
  for (const HostId host : piece.senders(1)) {
    if (host >= count) return bad(host, "/from");
    if (host == piece.to()) {
      return files::bad_value(source, place + "/from",
                              fmt::format("host {} would send to itself; name another", host));
    }
  }
  return {};
}

/// As fast as the fabric's links are.
Result<double> link_gbps(const FabricSpec& spec) {
  FabricSpec pair = spec;
  pair.host_count = 2;
  pair.hosts_per_leaf = 0;
  auto made = Fabric::create(pair);
  if (!made) return pass_on(made);
  return (*made)->port_gbps({.device = 0, .port = 0});
}

void read_fabric(const json& document, BurstWorkload& workload) {
  FabricSpec& fabric = workload.fabric;
  fabric.host_count = document.at("hosts").get<std::uint32_t>();
  fabric.hosts_per_leaf = document.value("hosts_per_leaf", 0U);
  fabric.spine_count = document.value("spines", 2U);
  fabric.host.link_gbps = document.value("link_gbps", 0.0);
  fabric.host.overlay = HostSpec::Overlay::kOff;
  fabric.host.thread_count = 4;
  fabric.pfc = document.value("pfc", true);
  fabric.dcqcn = document.value("dcqcn", false);
  fabric.seed = document.value("seed", std::uint64_t{1});
  workload.mtu_bytes = document.value("mtu_bytes", 1024U);
  workload.duration = document.at("duration_us").get<double>() * 1e3;
}

}  // namespace

const OnOffShape* on_off_shape(std::string_view name) {
  const auto* const found = std::ranges::find(kShapes, name, &OnOffShape::name);
  return found == std::end(kShapes) ? nullptr : found;
}

Result<BurstWorkload> read_burst_workload(const std::string& path, const std::string& rnic,
                                          std::size_t most_messages) {
  auto document = files::read_json(path, "burst_workload");
  if (!document) return pass_on(document);
  BurstWorkload workload;
  read_fabric(*document, workload);
  if (!rnic.empty()) workload.fabric.host.rnic = rnic;
  const auto link = link_gbps(workload.fabric);
  if (!link) return link.error().while_doing(path);
  const json& traffic = document->at("traffic");
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    Piece piece{traffic[i],
                static_cast<std::uint32_t>(i),
                *link,
                workload,
                Random(statistics::split_mix(workload.fabric.seed + i * 7919)),
                most_messages};
    const std::string place = fmt::format("/traffic/{}", i);
    if (auto good = check_hosts(piece, path, place); !good) return pass_on(good);
    const std::string kind = traffic[i].at("kind");
    if (kind == "incast") make_incast(piece);
    if (kind == "trains") make_trains(piece);
    if (kind == "steady") make_steady(piece);
    if (kind == "on_off") make_on_off(piece);
    if (piece.is_full()) {
      return files::bad_value(
          path, place,
          fmt::format("more than {} messages; make duration_us shorter", most_messages));
    }
  }
  std::ranges::stable_sort(workload.messages, {}, &TimedMessage::at);
  return workload;
}

}  // namespace greynic::twin
