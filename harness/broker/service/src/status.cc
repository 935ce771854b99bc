// What a broker tells of itself, and how it is asked.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "crossover.h"
#include "server.h"

namespace greynic::broker {
namespace {

constexpr std::size_t kMostApplications = 200;
constexpr std::size_t kMostStatusBytes = 1 << 17;

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

nlohmann::ordered_json times_of(const LatencyHistogram& times) {
  return {
      {"count", times.count()}, {"p50", times.quantile_ns(0.5)}, {"p99", times.quantile_ns(0.99)}};
}

double rounded(double share) { return std::round(share * 1000) / 1000; }

constexpr std::array<const char*, 3> kVerbs = {"SEND", "WRITE", "READ"};
constexpr std::array<const char*, 3> kReasons = {"small", "asked", "load"};
constexpr std::array<const char*, 4> kPlaces = {"copied", "segment", "reused", "registered"};

}  // namespace

std::string Server::decisions() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Decision& one : core_->decisions()) {
    list.push_back({{"number", one.number},
                    {"connection", one.connection},
                    {"peer", one.peer},
                    {"bytes", one.bytes},
                    {"waiting_bytes", one.waiting},
                    {"verb", kVerbs[static_cast<std::size_t>(one.verb)]},
                    {"why", kReasons[static_cast<std::size_t>(one.why)]},
                    {"load_share", rounded(one.own.processor)},
                    {"memory_load_share", rounded(one.own.memory)},
                    {"far_load_share", rounded(one.far.processor)},
                    {"far_memory_load_share", rounded(one.far.memory)},
                    {"prefers", one.prefers_read ? "READ" : "WRITE"},
                    {"class", one.bulk ? "bulk" : "latency"},
                    {"lane", one.lane},
                    {"qp", one.qp},
                    {"from", kPlaces[static_cast<std::size_t>(one.from)]}});
  }
  return nlohmann::ordered_json{{"decisions", list}}.dump();
}

std::string Server::status() const {
  using nlohmann::ordered_json;
  const Counters& c = core_->counters();
  ordered_json out;
  out["device"] = device_->description();
  out["listen"] = address_;
  out["seconds"] = std::chrono::duration<double>(Clock::now() - began_).count();
  out["cpu_seconds"] = cpu_seconds();
  out["load_share"] = load_.processor;
  out["memory_load_share"] = load_.memory;
  ordered_json serving{{"role", "worker and poller"},
                       {"turns", turns_},
                       {"sleeps", sleeps_},
                       {"requests", taken_},
                       {"completions", polled_}};
  serving["cpu"] = options_.cpu < 0 ? ordered_json(nullptr) : ordered_json(options_.cpu);
  out["threads"] = ordered_json::array({serving});
  if (door_) out["threads"].push_back({{"role", "door"}});
  out["connections"] = core_->connection_count();
  out["qps"] = core_->qp_count();
  out["own_bytes"] = core_->own_bytes();
  out["applications"] = ordered_json::array();
  for (const auto& [id, app] : applications_) {
    if (out["applications"].size() == kMostApplications) break;
    out["applications"].push_back({{"process", app->pid()},
                                   {"user", app->uid()},
                                   {"connections", app->connection_count()},
                                   {"segment_bytes", app->segment().size()},
                                   {"lent_bytes", app->lent_bytes()},
                                   {"requests", app->request_count()},
                                   {"wakes", app->wake_count()},
                                   {"leaving", app->socket() < 0}});
  }
  out["application_count"] = applications_.size();
  out["peers"] = ordered_json::array();
  for (const auto& [name, peer] : peers_->list()) out["peers"].push_back({{"address", name}});
  out["decisions"] = {{"send", c.chose_send},         {"write", c.chose_write},
                      {"read", c.chose_read},         {"switches", c.switches},
                      {"small_turns", c.small_turns}, {"bulk_turns", c.bulk_turns}};
  const auto crossover = crossover_bytes(costs_);
  const auto [kept, kept_bytes] = core_->registrations();
  out["memory"] = {
      {"register_from_bytes", crossover ? ordered_json(*crossover) : ordered_json(nullptr)},
      {"register_ns", costs_.register_ns},
      {"register_page_ns", costs_.register_page_ns},
      {"copy_page_ns", costs_.copy_page_ns},
      {"copied_bytes", c.ring_bytes},
      {"lent_bytes", c.lent_bytes},
      {"registered", c.registered},
      {"reused", c.reused},
      {"evicted", c.evicted},
      {"not_registered", c.not_registered},
      {"kept", kept},
      {"kept_bytes", kept_bytes}};
  out["messages"] = {{"sent", c.messages}, {"no_room", c.no_room}};
  out["posted"] = {{"send", c.verbs[0]},
                   {"write", c.verbs[1]},
                   {"read", c.verbs[2]},
                   {"doorbells", c.doorbells},
                   {"controls", c.controls}};
  out["failures"] = {{"rebuilds", c.rebuilds}, {"replayed", c.replayed}, {"guilty", c.guilty},
                     {"stale", c.stale},       {"forged", c.forged},     {"garbled", c.garbled}};
  out["connect_ns"] = {{"asked_to_posted", times_of(to_post_)},
                       {"heard_to_told", times_of(to_tell_)}};
  out["attached"] = attached_;
  out["refused"] = refusals_;
  out["cut_off"] = cut_offs_;
  out["last_cut_off"] = last_cut_off_;
  return out.dump();
}

namespace {

Result<std::string> ask(const std::string& path, local::Attach::Kind kind) {
  const auto missing = [&](const std::string& why) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}: {}; start `greynic broker`, or name its --socket", path, why));
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kBadInput, path + ": is too long for a socket");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const timeval patience{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string why = std::strerror(errno);
    close(fd);
    return missing(why);
  }
  const local::Attach wish{.kind = kind};
  std::string text(kMostStatusBytes, '\0');
  ssize_t got = ::send(fd, &wish, sizeof wish, MSG_NOSIGNAL);
  if (got > 0) got = ::recv(fd, text.data(), text.size(), 0);
  close(fd);
  if (got <= 0) return missing("no answer came in 5 s");
  text.resize(static_cast<std::size_t>(got));
  if (text.front() == '{') return text;
  local::Attached reply;
  std::memcpy(&reply, text.data(), std::min(text.size(), sizeof reply));
  reply.reason.back() = '\0';
  return fail(ErrorCode::kMissing, fmt::format("{}: {}", path, reply.reason.data()));
}

}  // namespace

Result<std::string> ask_status(const std::string& path) {
  return ask(path, local::Attach::Kind::kStatus);
}

Result<std::string> ask_decisions(const std::string& path) {
  return ask(path, local::Attach::Kind::kDecisions);
}

std::string decisions_table(const std::string& json) {
  const auto list = nlohmann::json::parse(json).at("decisions");
  std::string table =
      fmt::format("{:>9} {:>10} {:>8} {:>10} {:<5} {:<5} {:>4} {:>4} {:<7} {:<7} {:>6} {}",
                  "number", "connection", "bytes", "waiting", "verb", "why", "load", "far",
                  "prefers", "class", "QP", "memory");
  for (const auto& one : list) {
    table += fmt::format(
        "\n{:>9} {:>10x} {:>8} {:>10} {:<5} {:<5} {:>4.2f} {:>4.2f} {:<7} {:<7} {:>6} {}",
        one.at("number").get<std::uint64_t>(), one.at("connection").get<std::uint32_t>(),
        one.at("bytes").get<std::uint64_t>(), one.at("waiting_bytes").get<std::uint64_t>(),
        one.at("verb").get<std::string>(), one.at("why").get<std::string>(),
        one.at("load_share").get<double>(), one.at("far_load_share").get<double>(),
        one.at("prefers").get<std::string>(), one.at("class").get<std::string>(),
        one.at("qp").get<std::uint32_t>(), one.at("from").get<std::string>());
  }
  return table;
}

}  // namespace greynic::broker
