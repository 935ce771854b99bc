// What a program sees of its broker: the time of a connect, of a round trip of 64 bytes, and the
// rate of a stream. The other side is the installed example: `echo SOCKET serve PORT`. Nothing is
// asserted.
//
// usage: broker_client_bench SOCKET HOST PORT [CONNECTS [TRIPS]]

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "greynic_broker.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void print(const char* what, std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  };
  fmt::print("{:24}  p50 {:9.2f} us  p99 {:9.2f} us  worst {:9.2f} us  ({} times)\n", what, at(0.5),
             at(0.99), at(1), us.size());
}

[[noreturn]] void complain(const char* what) {
  fmt::print(stderr, "{}: {} {}\n", what, std::strerror(errno), greynic_broker_reason());
  std::exit(1);
}

void trip(greynic_broker_connection* c, const char* data, std::size_t bytes) {
  if (greynic_broker_send(c, data, bytes, 0) < 0) complain("send");
  char back[4096];
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = greynic_broker_recv(c, back, sizeof back, 0);
    if (got <= 0) complain("recv");
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  greynic_broker* broker = greynic_broker_open(argv[1], nullptr);
  if (broker == nullptr) complain("open");
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[3]));
  const int connects = argc > 4 ? std::atoi(argv[4]) : 1000;
  const int trips = argc > 5 ? std::atoi(argv[5]) : 5000;
  std::vector<double> connect_us, trip_us;
  for (int i = 0; i < connects; ++i) {
    const auto begin = Clock::now();
    greynic_broker_connection* c = greynic_broker_connect(broker, argv[2], port, 0);
    if (c == nullptr) complain("connect");
    connect_us.push_back(us_since(begin));
    greynic_broker_disconnect(c);
  }
  print("connect", connect_us);
  greynic_broker_connection* c = greynic_broker_connect(broker, argv[2], port, 0);
  if (c == nullptr) complain("connect");
  const char data[64] = {};
  for (int i = 0; i < trips; ++i) {
    const auto begin = Clock::now();
    trip(c, data, sizeof data);
    trip_us.push_back(us_since(begin));
  }
  print("round trip of 64 bytes", trip_us);
  greynic_broker_disconnect(c);
  greynic_broker_close(broker);
}
