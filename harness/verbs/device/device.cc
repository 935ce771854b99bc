#include "greynic/verbs/device.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "device/verbs_errors.h"

namespace greynic::verbs {
namespace {

constexpr std::string_view kNoDeviceRemedy =
    "Without an RDMA NIC: modprobe crc32_generic rdma_rxe; rdma link add rxe0 type rxe netdev "
    "INTERFACE";

std::filesystem::path sysfs_of(std::string_view device) {
  return std::filesystem::path("/sys/class/infiniband") / device;
}

/// Changes when a device is removed and added again; empty when it is not there. Asked of the door
/// that user space has to it ("uverbs0"): drivers that cannot take a device from a program that
/// holds it open (Soft-RoCE) remove the door, then wait for the program to let go.
std::string identity_of(const std::string& door) {
  struct stat status {};
  if (stat(("/sys/class/infiniband_verbs/" + door).c_str(), &status) != 0) return {};
  return std::to_string(status.st_ino);
}

DeviceLimits limits_of(const ibv_device_attr& attributes, std::uint64_t message_bytes) {
  DeviceLimits limits;
  limits.qp_count = attributes.max_qp;
  limits.queue_depth = attributes.max_qp_wr;
  limits.cq_count = attributes.max_cq;
  limits.cq_depth = attributes.max_cqe;
  limits.mr_count = attributes.max_mr;
  limits.mr_bytes = attributes.max_mr_size;
  limits.sge_count = attributes.max_sge;
  limits.srq_count = attributes.max_srq;
  limits.srq_depth = attributes.max_srq_wr;
  limits.mw_count = attributes.max_mw;
  limits.reads_as_responder = attributes.max_qp_rd_atom;
  limits.reads_as_requester = attributes.max_qp_init_rd_atom;
  limits.message_bytes = message_bytes;
  limits.atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  limits.memory_windows_2b = (attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  limits.xrc = (attributes.device_cap_flags & IBV_DEVICE_XRC) != 0;
  limits.firmware = attributes.fw_ver;
  return limits;
}

double lane_gbps(std::uint8_t speed) {
  switch (speed) {
    case 1:
      return 2.5;
    case 2:
      return 5;
    case 4:
    case 8:
      return 10;
    case 16:
      return 14;
    case 32:
      return 25;
    case 64:
      return 50;
    case 128:
      return 100;
    default:
      return 0;
  }
}

int lanes(std::uint8_t width) {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

/// No attribute tells; to ask for one does.
bool has_thread_domains(ibv_context* context) {
  ibv_td_init_attr none{};
  ibv_td* domain = ibv_alloc_td(context, &none);
  return domain != nullptr && ibv_dealloc_td(domain) == 0;
}

/// Smaller is preferred by "auto".
int preference(const GidEntry& entry) {
  if (entry.type != GidType::kRoceV2) return 3;
  if (entry.is_ipv4()) return 0;
  return entry.is_link_local() ? 2 : 1;
}

std::string describe(const std::vector<GidEntry>& entries) {
  if (entries.empty()) return "the port has no GID; give its interface an address";
  std::vector<std::string> lines;
  for (const GidEntry& entry : entries) {
    lines.push_back(fmt::format("{}: {} {}", entry.index, entry.address(),
                                entry.type == GidType::kRoceV2   ? "RoCE v2"
                                : entry.type == GidType::kRoceV1 ? "RoCE v1"
                                                                 : "InfiniBand"));
  }
  return fmt::format("there are {}", fmt::join(lines, ", "));
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) names.emplace_back(ibv_get_device_name(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  std::sort(names.begin(), names.end());
  return names;
}

bool GidEntry::is_ipv4() const {
  return std::all_of(gid.begin(), gid.begin() + 10, [](auto byte) { return byte == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}

bool GidEntry::is_link_local() const { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::string GidEntry::address() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4()) {
    inet_ntop(AF_INET, gid.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  }
  return text;
}

Result<GidEntry> choose_gid(const std::vector<GidEntry>& entries, std::string_view rule) {
  int index = -1;
  const auto [end, error] = std::from_chars(rule.data(), rule.data() + rule.size(), index);
  const bool is_index = error == std::errc{} && end == rule.data() + rule.size();
  const bool is_address = rule.find('.') != rule.npos || rule.find(':') != rule.npos;
  if (!is_index && !is_address && rule != "auto" && rule != "ipv4" && rule != "ipv6") {
    return fail(ErrorCode::kBadInput,
                fmt::format("gid rule '{}': write auto, ipv4, ipv6, an index or an address", rule));
  }
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : entries) {
    const bool fits = is_index         ? entry.index == index
                      : is_address     ? entry.address() == rule
                      : rule == "ipv4" ? entry.is_ipv4()
                      : rule == "ipv6" ? !entry.is_ipv4()
                                       : true;
    if (fits && (best == nullptr || preference(entry) < preference(*best))) best = &entry;
  }
  if (best == nullptr) {
    return fail(ErrorCode::kMissing,
                fmt::format("no GID fits the rule '{}': {}", rule, describe(entries)));
  }
  return *best;
}

Result<Device> Device::open(std::string_view name, int port) {
  Device device;
  device.name_ = name;
  device.port_ = port;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  int error_number = 0;
  bool found = false;
  for (int i = 0; i < count; ++i) {
    if (name != ibv_get_device_name(list[i])) continue;
    found = true;
    errno = 0;
    context = ibv_open_device(list[i]);
    error_number = errno;
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (!found) {
    const auto names = device_names();
    return fail(
        ErrorCode::kMissing,
        names.empty()
            ? fmt::format("no RDMA device '{}': there is none here. {}", name, kNoDeviceRemedy)
            : fmt::format("no RDMA device '{}'; there are {}", name, fmt::join(names, ", ")));
  }
  if (context == nullptr) {
    return fail(
        ErrorCode::kMissing,
        fmt::format("RDMA device '{}' does not open: {}; is ib_uverbs loaded, and may you "
                    "write to /dev/infiniband/uverbs*?",
                    name, std::error_code(error_number, std::generic_category()).message()));
  }
  device.door_ = context->device->dev_name;
  device.identity_ = identity_of(device.door_);
  device.context_ = std::shared_ptr<ibv_context>(context, [](ibv_context* c) {
    if (ibv_close_device(c) != 0) log_destruction("ibv_close_device", errno);
  });
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context, &attributes); error != 0) {
    return refused("ibv_query_device", error);
  }
  if (port < 1 || port > attributes.phys_port_cnt) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{} has ports 1 to {}, not {}", name, attributes.phys_port_cnt, port));
  }
  ibv_port_attr port_attributes{};
  if (const int error = ibv_query_port(context, port, &port_attributes); error != 0) {
    return refused("ibv_query_port", error);
  }
  device.limits_ = limits_of(attributes, port_attributes.max_msg_sz);
  device.limits_.thread_domains = has_thread_domains(context);
  return device;
}

Result<PortState> Device::port_state() const {
  ibv_port_attr attributes{};
  if (const int error = ibv_query_port(handle(), port_, &attributes); error != 0) {
    return refused("ibv_query_port", error);
  }
  PortState state;
  state.active = attributes.state == IBV_PORT_ACTIVE;
  state.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  state.lid = attributes.lid;
  state.active_mtu_bytes = 128U << attributes.active_mtu;
  state.link_gbps = lanes(attributes.active_width) * lane_gbps(attributes.active_speed);
  return state;
}

Result<std::vector<GidEntry>> Device::gids() const {
  ibv_port_attr port_attributes{};
  if (const int error = ibv_query_port(handle(), port_, &port_attributes); error != 0) {
    return refused("ibv_query_port", error);
  }
  std::vector<ibv_gid_entry> table(static_cast<std::size_t>(port_attributes.gid_tbl_len) + 1);
  const ssize_t count = ibv_query_gid_table(handle(), table.data(), table.size(), 0);
  if (count < 0) return refused("ibv_query_gid_table", static_cast<int>(-count));
  std::vector<GidEntry> entries;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& from = table[i];
    if (from.port_num != static_cast<std::uint32_t>(port_)) continue;
    GidEntry entry;
    entry.index = static_cast<int>(from.gid_index);
    std::copy_n(from.gid.raw, entry.gid.size(), entry.gid.begin());
    entry.type = from.gid_type == IBV_GID_TYPE_IB        ? GidType::kInfiniBand
                 : from.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::kRoceV1
                                                         : GidType::kRoceV2;
    entry.interface =
        read_line(sysfs_of(name_) / fmt::format("ports/{}/gid_attrs/ndevs/{}", port_, entry.index));
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool Device::gone() const { return identity_of(door_) != identity_; }

std::string Device::driver() const {
  std::error_code error;
  const auto link = std::filesystem::read_symlink(sysfs_of(name_) / "device/driver/module", error);
  if (!error) return link.filename();
  // Soft-RoCE and siw hang on no bus device; their names are fixed by `rdma link add`.
  const auto parent = read_line(sysfs_of(name_) / "parent");
  return parent.empty() ? "unknown" : "software on " + parent;
}

}  // namespace greynic::verbs
