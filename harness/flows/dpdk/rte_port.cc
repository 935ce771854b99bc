#include "dpdk/rte_port.h"

#include <fmt/core.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include <thread>
#include <vector>

namespace greynic::flows {
namespace {

/// Starts DPDK without huge pages, without files that others see, and with this one device.
Result<void> start_dpdk(const std::string& device) {
  static bool started = false;
  if (started) {
    return fail(ErrorCode::kUnsupported, "DPDK can drive one device a process, and has one");
  }
  started = true;
  const bool virtual_device = device.starts_with("net_");
  std::vector<std::string> words = {"greynic",
                                    "--no-huge",
                                    "--no-shconf",
                                    "--no-telemetry",
                                    "-m",
                                    "64",
                                    "--log-level",
                                    "error",
                                    virtual_device ? "--vdev" : "-a",
                                    device};
  if (virtual_device) words.emplace_back("--no-pci");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int result = 0;
  int error = 0;
  // On a thread of its own, because DPDK pins the one that starts it to a CPU.
  std::thread([&] {
    result = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
    error = rte_errno;
  }).join();
  if (result >= 0) return {};
  return fail(ErrorCode::kMissing,
              fmt::format("DPDK does not start with {}: {}", device, rte_strerror(error)));
}

tl::unexpected<Error> failed(std::string_view what, int error) {
  return fail(ErrorCode::kMissing, fmt::format("the DPDK port cannot be {}: {}", what,
                                               rte_strerror(error < 0 ? -error : error)));
}

/// One queue each way is all that a port needs to take rules.
Result<void> configure(std::uint16_t port) {
  constexpr unsigned kBuffers = 255;
  constexpr std::uint16_t kDepth = 64;
  rte_mempool* pool =
      rte_pktmbuf_pool_create("greynic", kBuffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == nullptr) return failed("given buffers", rte_errno);
  const rte_eth_conf configuration{};
  if (const int bad = rte_eth_dev_configure(port, 1, 1, &configuration); bad != 0) {
    return failed("configured", bad);
  }
  if (const int bad = rte_eth_rx_queue_setup(port, 0, kDepth, SOCKET_ID_ANY, nullptr, pool);
      bad != 0) {
    return failed("given a receive queue", bad);
  }
  if (const int bad = rte_eth_tx_queue_setup(port, 0, kDepth, SOCKET_ID_ANY, nullptr); bad != 0) {
    return failed("given a send queue", bad);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<RtePort>> RtePort::open(const std::string& device) {
  if (auto started = start_dpdk(device); !started) return pass_on(started);
  const std::uint16_t number = static_cast<std::uint16_t>(rte_eth_find_next(0));
  if (number >= RTE_MAX_ETHPORTS) {
    return fail(ErrorCode::kMissing,
                fmt::format("DPDK drives no port of {}; dpdk-devbind.py --status lists the devices "
                            "and their drivers, --bind=vfio-pci gives one to DPDK",
                            device));
  }
  std::unique_ptr<RtePort> port(new RtePort(number));
  if (auto ready = configure(number); !ready) return pass_on(ready);
  return port;
}

Result<void> RtePort::start() {
  if (const int bad = rte_eth_dev_start(number_); bad != 0) return failed("started", bad);
  // From here on what a port refuses comes back as an error, and probing asks for a lot: DPDK's own
  // lines about each would fill the terminal.
  rte_log_set_level_regexp("pmd.*", RTE_LOG_CRIT);
  return {};
}

std::string RtePort::driver_name() const {
  rte_eth_dev_info about{};
  const bool known = rte_eth_dev_info_get(number_, &about) == 0 && about.driver_name != nullptr;
  return known ? about.driver_name : "";
}

RtePort::~RtePort() {
  rte_eth_dev_stop(number_);
  rte_eth_dev_close(number_);
}

}  // namespace greynic::flows
