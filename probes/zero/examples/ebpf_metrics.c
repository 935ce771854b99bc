/* Metrics that the kernel counts by itself: programs of four instructions at tracepoints add to an
 * array that is mapped here and adopted, so a monitor reads the kernel's own words. This process
 * only waits.
 *
 *     cc ebpf_metrics.c -lgreynic_zero -lpthread -o ebpf_metrics
 *     ./ebpf_metrics [seconds, for ever]
 *
 * Needs root (CAP_BPF and CAP_PERFMON), and Linux 5.5 for arrays that can be mapped. */

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "greynic_zero.h"

static const char* const kPoints[] = {"sched_switch", "sys_enter", "net_dev_xmit", "netif_rx",
                                      "softirq_entry"};
enum { POINTS = sizeof kPoints / sizeof *kPoints };

static long ask_bpf(int command, union bpf_attr* attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static int make_array(void) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 8 * POINTS;
  attributes.max_entries = 1;
  attributes.map_flags = BPF_F_MMAPABLE;
  return (int)ask_bpf(BPF_MAP_CREATE, &attributes);
}

/* r1 = the array's word; r2 = 1; lock *r1 += r2; return 0 */
static int load_counter(int array, int word) {
  const struct bpf_insn program[] = {
      {.code = BPF_LD | BPF_DW | BPF_IMM,
       .dst_reg = 1,
       .src_reg = BPF_PSEUDO_MAP_VALUE,
       .imm = array},
      {.imm = 8 * word},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 1},
      {.code = BPF_STX | BPF_DW | BPF_ATOMIC, .dst_reg = 1, .src_reg = 2, .imm = BPF_ADD},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT}};
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  attributes.insns = (uint64_t)(uintptr_t)program;
  attributes.insn_cnt = sizeof program / sizeof *program;
  attributes.license = (uint64_t)(uintptr_t) "";
  return (int)ask_bpf(BPF_PROG_LOAD, &attributes);
}

static int attach(int program, const char* point) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.raw_tracepoint.name = (uint64_t)(uintptr_t)point;
  attributes.raw_tracepoint.prog_fd = (uint32_t)program;
  return (int)ask_bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes);
}

int main(int argc, char** argv) {
  const int array = make_array();
  const void* counts = MAP_FAILED;
  if (array >= 0) counts = mmap(NULL, 4096, PROT_READ, MAP_SHARED, array, 0);
  if (counts == MAP_FAILED) {
    fprintf(stderr, "ebpf_metrics: no array: %s; run as root, on Linux 5.5 or newer\n",
            strerror(errno));
    return 3;
  }
  zero_field fields[POINTS];
  for (int i = 0; i < POINTS; ++i) {
    const int program = load_counter(array, i);
    if (program < 0 || attach(program, kPoints[i]) < 0) {
      fprintf(stderr, "ebpf_metrics: %s: %s\n", kPoints[i], strerror(errno));
      return 3;
    }
    fields[i] =
        (zero_field){kPoints[i], ZERO_U64, ZERO_COUNTER, (uint32_t)(8 * i), 1, 0, "", "", ""};
  }
  const zero_schema schema = {
      "tracepoint", "How often the kernel came by", fields, POINTS, 8 * POINTS, ZERO_PLAIN};
  if (zero_adopt(ZERO_SYSTEM, counts, &schema, "") != 0 || zero_connect(NULL) != 0) {
    fprintf(stderr, "ebpf_metrics: %s\n", zero_error());
    return 1;
  }
  puts("counting");
  fflush(stdout);
  if (argc > 1) sleep((unsigned)atoi(argv[1]));
  while (argc < 2) pause();
  return 0;
}
