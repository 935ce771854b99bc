// Devices, ports and their addresses.

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "preload/calls.h"
#include "preload/gid.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

constexpr const char* kDeviceFolder = "/greynic/twin0";

/// libibverbs' own structure goes on behind what programs see; drivers look there for their mark.
struct Device {
  ibv_device seen{};
  std::array<void*, 32> of_drivers{};
};

Device& the_device() {
  static Device device = [] {
    Device made;
    made.seen.node_type = IBV_NODE_CA;
    made.seen.transport_type = IBV_TRANSPORT_IB;
    std::snprintf(made.seen.name, sizeof made.seen.name, "twin0");
    std::snprintf(made.seen.dev_name, sizeof made.seen.dev_name, "uverbs0");
    std::snprintf(made.seen.dev_path, sizeof made.seen.dev_path, "%s/uverbs0", kDeviceFolder);
    std::snprintf(made.seen.ibdev_path, sizeof made.seen.ibdev_path, "%s", kDeviceFolder);
    return made;
  }();
  return device;
}

std::uint64_t guid() {
  const Nic& nic = Nic::instance();
  const Gid gid = local_gid(nic.network, nic.host);
  std::uint64_t value = 0;
  std::memcpy(&value, gid.raw + 8, sizeof value);
  return value;
}

void fill(ibv_device_attr& attributes) {
  const DeviceCard& card = Nic::instance().card;
  attributes = {};
  std::snprintf(attributes.fw_ver, sizeof attributes.fw_ver, "greynic twin");
  attributes.node_guid = attributes.sys_image_guid = guid();
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xFFFFF000;
  attributes.vendor_id = 0x02C9;
  attributes.vendor_part_id = card.part;
  attributes.max_qp = (1 << kIndexBits) - 16;
  attributes.max_qp_wr = 1 << 15;
  attributes.device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
                                IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_PORT_ACTIVE_EVENT |
                                IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                                IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                                IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE;
  attributes.max_sge = attributes.max_sge_rd = attributes.max_srq_sge = 30;
  attributes.max_cq = 1 << 20;
  attributes.max_cqe = 1 << 22;
  attributes.max_mr = 1 << 21;
  attributes.max_pd = 1 << 20;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = 16;
  attributes.max_res_rd_atom = attributes.max_qp * attributes.max_qp_rd_atom;
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_mw = 1 << 20;
  attributes.max_ah = INT32_MAX;
  attributes.max_srq = 1 << 14;
  attributes.max_srq_wr = (1 << 15) - 1;
  attributes.max_pkeys = 1;
  attributes.local_ca_ack_delay = 16;
  attributes.phys_port_cnt = 1;
}

/// Width and speed codes whose product is nearest to the link, from above.
void fill_speed(ibv_port_attr& port, std::uint32_t gbps) {
  struct Rate {
    std::uint32_t gbps;
    std::uint8_t width, speed;  // widths: 1x = 1, 4x = 2; speeds: EDR = 32, HDR = 64, NDR = 128
  };
  static constexpr Rate kRates[] = {{10, 1, 4},   {25, 1, 32},   {40, 2, 4},
                                    {50, 1, 64},  {56, 2, 16},   {100, 2, 32},
                                    {200, 2, 64}, {400, 2, 128}};
  const Rate* const found = std::find_if(std::begin(kRates), std::end(kRates) - 1,
                                         [&](const Rate& rate) { return rate.gbps >= gbps; });
  port.active_width = found->width;
  port.active_speed = found->speed;
}

int fill(ibv_port_attr& port, std::uint8_t number) {
  if (number != 1) return EINVAL;
  const Nic& nic = Nic::instance();
  port = {};
  port.state = IBV_PORT_ACTIVE;
  port.max_mtu = port.active_mtu = IBV_MTU_4096;
  port.gid_tbl_len = kGidCount;
  port.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  port.max_msg_sz = 1U << 30;
  port.pkey_tbl_len = 1;
  port.lid = static_cast<std::uint16_t>(nic.host + 1);
  port.phys_state = 5;  // link up
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.flags = IBV_QPF_GRH_REQUIRED;
  fill_speed(port, nic.card.link_gbps);
  return 0;
}

int fill(ibv_gid_entry& entry, std::uint32_t port, std::uint32_t index) {
  if (port != 1 || index >= kGidCount) return EINVAL;
  const Nic& nic = Nic::instance();
  entry = {};
  entry.gid = index < 2 ? local_gid(nic.network, nic.host) : address_gid(nic.network, nic.host);
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = index % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  return 0;
}

template <typename Value>
void copy_out(void* to, const Value& from, std::size_t bytes) {
  std::memset(to, 0, bytes);
  std::memcpy(to, &from, std::min(bytes, sizeof from));
}

}  // namespace

int query_port(ibv_context*, std::uint8_t number, ibv_port_attr* port, std::size_t bytes) {
  ibv_port_attr filled{};
  if (const int error = fill(filled, number)) return error;
  copy_out(port, filled, bytes);
  return 0;
}

int query_device_ex(ibv_context*, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t bytes) {
  if (input && input->comp_mask) return EINVAL;
  ibv_device_attr_ex all{};
  fill(all.orig_attr);
  all.completion_timestamp_mask = UINT64_MAX;
  all.hca_core_clock = 1'000'000;  // kHz
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
  all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
  copy_out(out, all, bytes);
  return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const std::uint64_t now = now_ns();
  if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = static_cast<long>(now);
  }
  values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  Nic& nic = Nic::instance();
  const bool there = nic.join() && turns::join(nic.host);
  auto** const list = static_cast<ibv_device**>(std::calloc(2, sizeof(ibv_device*)));
  if (!list) return nullptr;
  if (there) list[0] = &the_device().seen;
  if (count) *count = there ? 1 : 0;
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
int ibv_get_device_index(ibv_device*) { return 0; }
__be64 ibv_get_device_guid(ibv_device*) { return guid(); }
__attribute__((visibility("default"))) const char* ibv_get_sysfs_path() { return "/greynic"; }

ibv_context* ibv_open_device(ibv_device* device) {
  Nic& nic = Nic::instance();
  if (!nic.join()) {
    errno = ENODEV;
    return nullptr;
  }
  nic.start_thread();
  auto* const context = new Context;
  context->base().device = device;
  context->base().cmd_fd = context->base().async_fd = context->bell.fd();
  context->base().num_comp_vectors = 8;
  pthread_mutex_init(&context->base().mutex, nullptr);
  fill_calls(context->seen);
  return &context->base();
}

int ibv_close_device(ibv_context* context) {
  delete &context_of(context);
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  fill(*attributes);
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t number, _compat_ibv_port_attr* port) {
  return query_port(nullptr, number, reinterpret_cast<ibv_port_attr*>(port),
                    offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context*, std::uint8_t port, int index, ibv_gid* gid) {
  ibv_gid_entry entry;
  if (index < 0 || fill(entry, port, static_cast<std::uint32_t>(index)) != 0) {
    errno = EINVAL;
    return -1;
  }
  *gid = entry.gid;
  return 0;
}

int _ibv_query_gid_ex(ibv_context*, std::uint32_t port, std::uint32_t index, ibv_gid_entry* out,
                      std::uint32_t flags, std::size_t bytes) {
  if (flags != 0) return EINVAL;
  ibv_gid_entry entry;
  if (const int error = fill(entry, port, index)) return error;
  copy_out(out, entry, bytes);
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t most,
                             std::uint32_t flags, std::size_t bytes) {
  if (flags != 0 || most < kGidCount) return -EINVAL;
  std::size_t count = 0;
  for (; count < kGidCount; ++count) {
    ibv_gid_entry entry;
    fill(entry, 1, static_cast<std::uint32_t>(count));
    copy_out(reinterpret_cast<std::byte*>(entries) + count * bytes, entry, bytes);
  }
  return static_cast<ssize_t>(count);
}

int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return not_offered("ibv_resolve_eth_l2_from_gid");
}

/// Private to rdma-core, but ibv_devinfo asks it: 0 is "IB or RoCE v1", 1 is RoCE v2.
__attribute__((visibility("default"))) int ibv_query_gid_type(ibv_context*, std::uint8_t port,
                                                              unsigned index, unsigned* type) {
  ibv_gid_entry entry;
  if (fill(entry, port, index) != 0) {
    errno = EINVAL;
    return -1;
  }
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
  return 0;
}

int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* key) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *key = 0xFFFF;
  return 0;
}

int ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 key) {
  return port == 1 && key == 0xFFFF ? 0 : -1;
}

/// Files of the device, for programs that look into sysfs by libibverbs.
__attribute__((visibility("default"))) int ibv_read_sysfs_file(const char* folder, const char* file,
                                                               char* text, std::size_t bytes) {
  if (bytes == 0) return -1;
  if (std::string_view(folder).rfind(kDeviceFolder, 0) == 0) {
    if (std::string_view(file) != "board_id" && std::string_view(file) != "hca_type") return -1;
    return std::snprintf(text, bytes, "%s", Nic::instance().card.model.data());
  }
  char path[512];
  std::snprintf(path, sizeof path, "%s/%s", folder, file);
  std::FILE* const stream = std::fopen(path, "re");
  if (!stream) return -1;
  const std::size_t got = std::fread(text, 1, bytes - 1, stream);
  std::fclose(stream);
  text[got] = 0;
  if (got > 0 && text[got - 1] == '\n') text[got - 1] = 0;
  return static_cast<int>(got);
}

}  // extern "C"
