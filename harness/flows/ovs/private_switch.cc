#include "ovs/private_switch.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

namespace greynic::flows {
namespace {

constexpr const char* kDpdkSwitch = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
constexpr const char* kSchema = "/usr/share/openvswitch/vswitch.ovsschema";
constexpr const char* kPackages =
    "apt-get install openvswitch-switch-dpdk librte-net-pcap23 librte-net-null23 "
    "librte-mempool-ring23 librte-bus-vdev23";

/// DPDK without huge pages, devices of this host, or files that another process could see. Open
/// vSwitch adds --in-memory of its own unless it is told --legacy-mem, and the two exclude each
/// other when there are no huge pages.
constexpr const char* kDpdkArguments =
    "--no-huge --legacy-mem --no-pci --no-shconf --no-telemetry -m 512";

/// How often what the exact-match cache does not have enters it: one packet in so many.
constexpr const char* kNone = "0";
constexpr const char* kEach = "1";
constexpr const char* kOneInMany = "100";  // the standard

int last_usable_cpu() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (CPU_ISSET(cpu, &usable)) return cpu;
  }
  return 0;
}

/// The bit of one CPU as the hexadecimal mask that pmd-cpu-mask takes.
std::string cpu_mask(int cpu) {
  return fmt::format("{:x}", 1 << (cpu % 4)) + std::string(static_cast<std::size_t>(cpu / 4), '0');
}

/// Tries for ten seconds to connect to a socket that a daemon is about to make.
Result<JsonRpc> connect_soon(const std::string& path, os::Daemon& daemon) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    auto rpc = JsonRpc::connect(path);
    if (rpc || std::chrono::steady_clock::now() > deadline || !daemon.running()) return rpc;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

PrivateSwitch::Obstacle PrivateSwitch::obstacle() {
  if (os::find_program(kDpdkSwitch).empty()) {
    return {"the Open vSwitch that is built with DPDK is not installed", kPackages};
  }
  for (const char* program : {"ovsdb-server", "ovsdb-tool", "ovs-ofctl"}) {
    if (os::find_program(program).empty()) {
      return {fmt::format("{} is not installed", program), kPackages};
    }
  }
  if (access(kSchema, R_OK) != 0) return {fmt::format("{} is not there", kSchema), kPackages};
  if (access("/dev/net/tun", R_OK | W_OK) != 0) {
    return {"/dev/net/tun cannot be opened, and every bridge has a tap device",
            "run as root with the tun module loaded (modprobe tun)"};
  }
  if (auto place = os::NetworkNamespace::create(); !place) {
    return {place.error().message, "run as root, or grant CAP_SYS_ADMIN and CAP_NET_ADMIN"};
  }
  return {};
}

PrivateSwitch::PrivateSwitch(PrivateSwitchOptions options, os::OwnFolder folder,
                             os::NetworkNamespace place)
    : options_(std::move(options)), folder_(std::move(folder)), place_(std::move(place)) {}

PrivateSwitch::~PrivateSwitch() {
  control_.reset();
  database_.reset();
  switch_.stop();
  database_server_.stop();
}

Result<std::unique_ptr<PrivateSwitch>> PrivateSwitch::start(const PrivateSwitchOptions& options) {
  const Obstacle found = obstacle();
  if (!found.why_not.empty()) {
    return fail(ErrorCode::kMissing, fmt::format("a private Open vSwitch cannot be started: {}; {}",
                                                 found.why_not, found.remedy));
  }
  auto place = os::NetworkNamespace::create();
  if (!place) return pass_on(place);
  auto folder = os::OwnFolder::create("greynic-ovs-");
  if (!folder) return pass_on(folder);
  PrivateSwitchOptions used = options;
  if (used.cpu < 0) used.cpu = last_usable_cpu();
  std::unique_ptr<PrivateSwitch> made(
      new PrivateSwitch(std::move(used), std::move(*folder), std::move(*place)));
  if (auto up = made->launch(); !up) return up.error().while_doing("starting Open vSwitch");
  return made;
}

Result<void> PrivateSwitch::launch() {
  const std::map<std::string, std::string> folders = {{"OVS_RUNDIR", folder()},
                                                      {"OVS_LOGDIR", folder()},
                                                      {"OVS_DBDIR", folder()},
                                                      {"OVS_SYSCONFDIR", folder()}};
  const std::string database_file = folder() + "/conf.db";
  auto made = os::run({.words = {"ovsdb-tool", "create", database_file, kSchema}});
  if (!made) return pass_on(made);
  auto server = os::Daemon::start(
      {.words = {"ovsdb-server", database_file, "--remote=punix:" + database_socket(),
                 "--unixctl=" + folder() + "/db.ctl"},
       .environment = folders},
      folder() + "/ovsdb-server.log", place_);
  if (!server) return pass_on(server);
  database_server_ = std::move(*server);
  if (auto up = connect_soon(database_socket(), database_server_); !up) return pass_on(up);
  auto database = Ovsdb::connect(database_socket());
  if (!database) return pass_on(database);
  database_ = std::make_unique<Ovsdb>(std::move(*database));
  auto set = database_->initialise({{"dpdk-init", "true"},
                                    {"dpdk-extra", kDpdkArguments},
                                    {"per-port-memory", "true"},
                                    {"pmd-cpu-mask", cpu_mask(options_.cpu)},
                                    // Without traffic the packet thread sleeps and burns no CPU.
                                    {"pmd-maxsleep", "500"}});
  if (!set) return set;
  auto daemon = os::Daemon::start(
      {.words = {kDpdkSwitch, "unix:" + database_socket(), "--unixctl=" + folder() + "/switch.ctl"},
       .environment = folders},
      folder() + "/ovs-vswitchd.log", place_);
  if (!daemon) return pass_on(daemon);
  switch_ = std::move(*daemon);
  auto control = connect_soon(folder() + "/switch.ctl", switch_);
  if (!control) {
    return fail(ErrorCode::kMissing, fmt::format("ovs-vswitchd did not start: {}", last_words()));
  }
  control_ = std::make_unique<JsonRpc>(std::move(*control));
  auto version = ask("version");
  if (!version) return pass_on(version);
  version_ = version->substr(0, version->find('\n'));
  return database_->add_bridge(options_.bridge);
}

std::string PrivateSwitch::last_words() const {
  std::ifstream log(folder() + "/ovs-vswitchd.log");
  std::string words;
  for (std::string line; std::getline(log, line);) {
    if (line.find("|ERR|") != std::string::npos || line.find("|EMER|") != std::string::npos) {
      words += (words.empty() ? "" : "; ") + line.substr(line.rfind('|') + 1);
    }
  }
  return words.empty() ? "it left no message" : words;
}

Result<void> PrivateSwitch::set_caches(bool exact_match, bool signature_match) {
  auto set = database_->set({{"emc-insert-inv-prob", exact_match ? kOneInMany : kNone},
                             {"smc-enable", signature_match ? "true" : "false"}});
  if (set) exact_match_learns_ = exact_match ? kOneInMany : kNone;
  return set;
}

Result<void> PrivateSwitch::learn_quickly(bool quickly) {
  const char* const wanted = quickly ? kEach : kOneInMany;
  if (exact_match_learns_ == kNone || exact_match_learns_ == wanted) return {};
  auto set = database_->set({{"emc-insert-inv-prob", wanted}});
  if (set) exact_match_learns_ = wanted;
  return set;
}

Result<void> PrivateSwitch::ensure_sink(const std::string& name) {
  if (sinks_.contains(name) || shared_sinks_.contains(name)) return {};
  if (sinks_.size() == kMostSinks) {
    const auto turn = static_cast<std::uint32_t>(shared_sinks_.size() % kMostSinks);
    shared_sinks_[name] = kSourceNumber + 1 + turn;
    return {};
  }
  const int device = static_cast<int>(sinks_.size());
  auto done = database_->add_port(
      options_.bridge, {.name = name,
                        .type = "dpdk",
                        .options = {{"dpdk-devargs", fmt::format("net_null{},no-rx=1", device)}},
                        .openflow_number = static_cast<int>(kSourceNumber) + 1 + device});
  if (done) sinks_[name] = device;
  return done;
}

Result<std::map<std::string, std::uint32_t>> PrivateSwitch::ports() const {
  auto numbers = database_->ports(options_.bridge);
  if (!numbers) return numbers;
  for (const auto& [name, number] : shared_sinks_) numbers->emplace(name, number);
  return numbers;
}

Result<void> PrivateSwitch::start_traffic(const std::string& pcap_path, bool wrapped) {
  if (auto stopped = stop_traffic(); !stopped) return stopped;
  if (wrapped) {
    if (auto joined = connect_underlay(); !joined) return joined;
    source_ = Source::kUnderlay;
  }
  auto done = database_->add_port(
      wrapped ? underlay() : options_.bridge,
      {.name = kSource,
       .type = "dpdk",
       .options = {{"dpdk-devargs", fmt::format("net_pcap0,rx_pcap={},infinite_rx=1", pcap_path)}},
       .openflow_number = static_cast<int>(kSourceNumber)});
  if (done && !wrapped) source_ = Source::kBridge;
  return done;
}

Result<void> PrivateSwitch::stop_traffic() {
  const Source was = std::exchange(source_, Source::kNone);
  if (was == Source::kNone) return {};
  if (was == Source::kBridge) return database_->remove_port(options_.bridge, kSource);
  if (auto removed = database_->remove_port(underlay(), kSource); !removed) return removed;
  return disconnect_underlay();
}

Result<void> PrivateSwitch::forget_megaflows() {
  auto done = ask("revalidator/purge");
  if (!done) return pass_on(done);
  return {};
}

Result<std::string> PrivateSwitch::ask(const std::string& command,
                                       const std::vector<std::string>& arguments) {
  auto answer = control_->call(command, arguments);
  if (!answer && !switch_.running()) {
    return fail(ErrorCode::kMissing, fmt::format("ovs-vswitchd died: {}", last_words()));
  }
  if (!answer) return pass_on(answer);
  return answer->is_string() ? answer->get<std::string>() : answer->dump();
}

Result<PrivateSwitch::ThreadTime> PrivateSwitch::packet_thread_time() const {
  const std::string tasks = fmt::format("/proc/{}/task", switch_.pid());
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!name.starts_with("pmd")) continue;
    ThreadTime time;
    if (std::ifstream(task.path() / "schedstat") >> time.on_cpu_ns >> time.waiting_ns) return time;
    return fail(ErrorCode::kMissing,
                "the kernel keeps no /proc/PID/task/TID/schedstat, so the CPU "
                "time of a packet cannot be measured");
  }
  return fail(ErrorCode::kMissing, "Open vSwitch has no packet thread");
}

}  // namespace greynic::flows
