#include "attach_tc.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "words.h"

namespace greynic::bpf {
namespace {

// enum bpf_attach_type of Linux 6.6, newer than the headers of Debian 12.
constexpr std::uint32_t kTcxIngress = 46;
constexpr std::uint32_t kTcxEgress = 47;

bpf_tc_attach_point side(Direction direction) {
  return direction == Direction::kIngress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
}

/// The child that removes the filter when the other end of its pipe closes: because the link went,
/// or because we died. It holds nothing else open, so that it keeps no other link alive.
pid_t start_keeper(int life, bpf_tc_hook hook, bpf_tc_opts filter, bool remove_qdisc) {
  const pid_t child = fork();
  if (child != 0) return child;
  setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  dup2(life, 0);
  syscall(SYS_close_range, 1U, ~0U, 0U);
  char byte = 0;
  while (read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  filter.flags = 0;
  filter.prog_fd = 0;
  filter.prog_id = 0;
  bpf_tc_detach(&hook, &filter);
  if (remove_qdisc) {
    hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    bpf_tc_hook_destroy(&hook);
  }
  _exit(0);
}

}  // namespace

Result<Link> attach_tcx(int program, int interface_number, Direction direction) {
  union bpf_attr request = {};
  request.link_create.prog_fd = static_cast<std::uint32_t>(program);
  request.link_create.target_ifindex = static_cast<std::uint32_t>(interface_number);
  request.link_create.attach_type = direction == Direction::kIngress ? kTcxIngress : kTcxEgress;
  const long made = syscall(SYS_bpf, BPF_LINK_CREATE, &request, sizeof request);
  if (made >= 0) return Link(static_cast<int>(made));
  if (errno == EINVAL) return fail(ErrorCode::kUnsupported, "this kernel has no TCX links");
  return kernel_said_no("attaching a tc program", errno);
}

Result<Link> attach_clsact(int program, int interface_number, Direction direction) {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface_number, .attach_point = side(direction));
  LIBBPF_OPTS(bpf_tc_opts, filter, .prog_fd = program);
  int made_qdisc = 0;
  int error = 0;
  const std::string warnings = warnings_of([&] {
    made_qdisc = -bpf_tc_hook_create(&hook);
    if (made_qdisc != 0 && made_qdisc != EEXIST) return;
    // In front of all others, as a TCX link is: a filter whose verdict is final hides packets from
    // those behind it. A filter of another kind may have that place.
    filter.priority = 1;
    error = -bpf_tc_attach(&hook, &filter);
    if (error == 0) return;
    filter.priority = 0;
    error = -bpf_tc_attach(&hook, &filter);
  });
  if (made_qdisc != 0 && made_qdisc != EEXIST) {
    return kernel_said_no("adding clsact to a device", made_qdisc, warnings);
  }
  if (error != 0) return kernel_said_no("attaching a tc program to clsact", error, warnings);
  int pipe_ends[2] = {-1, -1};
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return kernel_said_no("opening a pipe", errno);
  const pid_t keeper = start_keeper(pipe_ends[0], hook, filter, made_qdisc == 0);
  close(pipe_ends[0]);
  const int life = pipe_ends[1];
  return Link(-1, [life, keeper] {
    close(life);
    waitpid(keeper, nullptr, 0);
  });
}

Result<Link> Object::attach_tc(std::string_view program_name, int interface_number,
                               Direction direction) const {
  const auto found = program(program_name);
  if (!found) return pass_on(found);
  const int descriptor = bpf_program__fd(*found);
  auto link = attach_tcx(descriptor, interface_number, direction);
  if (!link && link.error().code == ErrorCode::kUnsupported) {
    link = attach_clsact(descriptor, interface_number, direction);
  }
  return link;
}

}  // namespace greynic::bpf
