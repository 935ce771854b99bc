// What a broker tells of itself, and how it is asked.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

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

}  // namespace

std::string Server::status() const {
  using nlohmann::ordered_json;
  const Counters& c = core_->counters();
  ordered_json out;
  out["device"] = device_->description();
  out["listen"] = address_;
  out["seconds"] = std::chrono::duration<double>(Clock::now() - began_).count();
  out["cpu_seconds"] = cpu_seconds();
  out["load_share"] = load_;
  ordered_json serving{{"role", "worker and poller"}, {"turns", turns_}, {"sleeps", sleeps_}};
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

Result<std::string> ask_status(const std::string& path) {
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
  const local::Attach wish{.kind = local::Attach::Kind::kStatus};
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

}  // namespace greynic::broker
