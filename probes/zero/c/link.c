#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "arena.h"

/* Hands the arenas of this process to the agent. The socket stays open: by its end the agent knows
 * that the process has ended, and the process that the agent has. */

static struct {
  pthread_mutex_t mutex;
  char path[108];
  int socket;                  /* -1: no agent */
  int wake;                    /* an eventfd that ends the thread */
  bool running;
  uint64_t sent[ZERO_CLASSES]; /* incarnation that the agent has */
  pthread_t thread;
} link_state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .socket = -1, .wake = -1};

static void hang_up(void) {
  if (link_state.socket >= 0) close(link_state.socket);
  link_state.socket = -1;
  memset(link_state.sent, 0, sizeof link_state.sent);
}

/* Root and this user can write this process anyway; another user's agent only reads. */
static bool may_write(void) {
  struct ucred agent;
  socklen_t bytes = sizeof agent;
  return getsockopt(link_state.socket, SOL_SOCKET, SO_PEERCRED, &agent, &bytes) == 0 &&
         (agent.uid == 0 || agent.uid == geteuid());
}

static bool send_arena(const zero_arena* arena) {
  if (!may_write() && zero_seal_writes(arena->file) != 0) return false;
  struct zero_link_message message = {.kind = ZERO_LINK_ARENA,
                                      .incarnation = arena->header->incarnation,
                                      .metric_class = arena->header->metric_class};
  memcpy(message.magic, ZERO_LINK_MAGIC, sizeof message.magic);
  snprintf(message.text, sizeof message.text, "%s", arena->header->name);
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } beside = {0};
  struct iovec bytes = {&message, sizeof message};
  struct msghdr whole = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = beside.room,
                         .msg_controllen = sizeof beside.room};
  struct cmsghdr* const files = CMSG_FIRSTHDR(&whole);
  files->cmsg_level = SOL_SOCKET;
  files->cmsg_type = SCM_RIGHTS;
  files->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(files), &arena->file, sizeof(int));
  return sendmsg(link_state.socket, &whole, MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

/* With the mutex held: connects when need be, and hands over what the agent has not. */
static bool hand_over(void) {
  if (link_state.socket < 0) {
    link_state.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, link_state.path, sizeof address.sun_path);
    /* An agent that stands still must not stop the program. */
    const struct timeval patience = {.tv_usec = 200000};
    if (link_state.socket >= 0) {
      setsockopt(link_state.socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    if (link_state.socket < 0 ||
        connect(link_state.socket, (struct sockaddr*)&address, sizeof address) != 0) {
      hang_up();
      return false;
    }
  }
  for (int i = 0; i < ZERO_CLASSES; ++i) {
    const zero_arena* const arena = zero_of_class((enum zero_class)i, false);
    if (!arena || link_state.sent[i] == arena->header->incarnation) continue;
    if (!send_arena(arena)) {
      hang_up();
      return false;
    }
    link_state.sent[i] = arena->header->incarnation;
  }
  return true;
}

/* Takes an answer; 0, the agent's error number, or -1 when it has gone. */
static int take_answer(void) {
  struct zero_link_message message;
  const ssize_t got = recv(link_state.socket, &message, sizeof message, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got != (ssize_t)sizeof message) return -1;
  message.text[sizeof message.text - 1] = 0;
  return message.error == 0 ? 0 : -zero_refuse((int)message.error, "the agent: %s", message.text);
}

static void* stay_linked(void* unused) {
  (void)unused;
  for (;;) {
    struct pollfd waiting[2] = {{link_state.wake, POLLIN, 0}, {-1, POLLIN, 0}};
    pthread_mutex_lock(&link_state.mutex);
    waiting[1].fd = link_state.socket;
    pthread_mutex_unlock(&link_state.mutex);
    const int happened = poll(waiting, 2, waiting[1].fd < 0 ? 1000 : -1);
    if (waiting[0].revents) return NULL;
    pthread_mutex_lock(&link_state.mutex);
    if (happened > 0 && waiting[1].revents && link_state.socket == waiting[1].fd &&
        take_answer() < 0) {
      hang_up();
    }
    /* Not at once: an agent may turn us away each time. */
    if (happened == 0 && link_state.socket < 0) hand_over();
    pthread_mutex_unlock(&link_state.mutex);
  }
}

/* With the mutex held. The thread takes no signal of the program. */
static int start_thread(void) {
  sigset_t all, before;
  sigfillset(&all);
  link_state.wake = eventfd(0, EFD_CLOEXEC);
  if (link_state.wake < 0) return zero_refuse(errno, "no eventfd: %s", strerror(errno));
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  int error = pthread_create(&link_state.thread, &small, stay_linked, NULL);
  /* A program's own thread-local memory lies on the stack, too. */
  if (error == EINVAL) error = pthread_create(&link_state.thread, NULL, stay_linked, NULL);
  pthread_attr_destroy(&small);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) {
    close(link_state.wake);
    link_state.wake = -1;
    return zero_refuse(error, "no thread: %s", strerror(error));
  }
  pthread_setname_np(link_state.thread, "zero-link");
  link_state.running = true;
  return 0;
}

int zero_connect(const char* path) {
  if (!path) path = getenv("GREYNIC_ZERO_SOCKET");
  if (!path) path = "/run/greynic/zero.sock";
  if (strlen(path) >= sizeof link_state.path) {
    return zero_refuse(ENAMETOOLONG, "a socket's path has at most 107 bytes");
  }
  pthread_mutex_lock(&link_state.mutex);
  int done = 0;
  if (link_state.running) {
    done = strcmp(path, link_state.path) == 0
               ? 0
               : zero_refuse(EBUSY, "linked to %s; zero_disconnect() first", link_state.path);
  } else {
    memset(link_state.path, 0, sizeof link_state.path);
    memcpy(link_state.path, path, strlen(path));
    if (hand_over()) {
      /* A refusal is told here, if the agent is quick. */
      struct pollfd answer = {link_state.socket, POLLIN, 0};
      bool asked = false;
      for (int i = 0; i < ZERO_CLASSES; ++i) asked |= link_state.sent[i] != 0;
      if (asked && poll(&answer, 1, 200) > 0) done = -take_answer();
      if (done > 0) {
        hang_up();
        done = 0;
      }
    }
    if (done == 0) done = start_thread();
    else hang_up();
  }
  pthread_mutex_unlock(&link_state.mutex);
  return done;
}

void zero_disconnect(void) {
  pthread_mutex_lock(&link_state.mutex);
  const bool was_running = link_state.running;
  link_state.running = false;
  pthread_mutex_unlock(&link_state.mutex);
  if (!was_running) return;
  const uint64_t one = 1;
  if (write(link_state.wake, &one, sizeof one) == sizeof one) pthread_join(link_state.thread, NULL);
  pthread_mutex_lock(&link_state.mutex);
  close(link_state.wake);
  link_state.wake = -1;
  hang_up();
  pthread_mutex_unlock(&link_state.mutex);
}

void zero_link_look(void) {
  pthread_mutex_lock(&link_state.mutex);
  if (link_state.running) hand_over();
  pthread_mutex_unlock(&link_state.mutex);
}

void zero_link_after_fork(void) {
  /* The thread and whoever held the mutex stayed with the parent. */
  pthread_mutex_init(&link_state.mutex, NULL);
  const bool was_running = link_state.running;
  link_state.running = false;
  hang_up();
  if (link_state.wake >= 0) close(link_state.wake);
  link_state.wake = -1;
  if (was_running && hand_over()) start_thread();
}
