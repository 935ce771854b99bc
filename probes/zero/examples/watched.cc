// The same in C++: c++ -std=c++20 watched.cc -lgreynic_zero -lpthread -o watched && ./watched 60
#include <greynic/zero/metrics.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace zero = greynic::zero;

namespace {

struct Usage {
  std::uint64_t bytes;
};
const zero_field kUsageFields[] = {
    {"bytes", ZERO_U64, ZERO_COUNTER, offsetof(Usage, bytes), 1, 0, "B", "Bytes handled", ""}};
const zero_schema kUsage = {"call", "A function call", kUsageFields, 1, sizeof(Usage), ZERO_PLAIN};

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) * 1000 : 10000;
  zero::Counter requests({.name = "requests", .help = "Requests", .labels = "port=\"80\""});
  zero::Gauge load({.name = "load", .unit = "ratio", .help = "Busy share"});
  zero::Histogram delay({.name = "delay", .unit = "ns", .help = "Time a request took"});
  if (!requests.published() || zero_connect(nullptr) != 0) {
    std::fprintf(stderr, "watched: %s\n", zero_error());
    return 1;
  }
  std::puts("counting");
  std::fflush(stdout);
  for (int turn = 0; turn < turns; ++turn) {
    requests.add();
    load.set(turn % 100 / 100.0);
    delay.record(1000 + static_cast<std::uint64_t>(turn) % 5000);
    if (turn % 100 == 0) {
      zero::Call<Usage> call(kUsage, ("id=\"" + std::to_string(turn) + "\"").c_str());
      if (call) call->bytes = 4096;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
