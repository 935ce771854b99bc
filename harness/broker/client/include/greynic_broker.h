#ifndef GREYNIC_BROKER_H
#define GREYNIC_BROKER_H

/* Connections over RDMA for programs that own no QP: `greynic broker` carries those of all programs
 * of a host over few shared QPs.
 *
 *   greynic_broker* broker = greynic_broker_open(NULL, NULL);
 *   greynic_broker_connection* c = greynic_broker_connect(broker, "10.0.0.7", 7000, 0);
 *   greynic_broker_send(c, "hello", 5, 0);
 *   greynic_broker_recv(c, answer, sizeof answer, 0);
 *   greynic_broker_disconnect(c);
 *   greynic_broker_close(broker);
 *
 * A connection is a stream of bytes each way, like TCP's: bytes arrive once and in order. With UC
 * or UD it is a sequence of messages, like UDP's. Calls
 * that fail set errno and return NULL or -1. Calls may come from any thread; two calls that receive
 * on one connection at a time, or two that send, must not.
 *
 * ECONNRESET: the other program, its broker or ours has died. What was sent and not acknowledged by
 * a program's own means may or may not have arrived; what was received is whole. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct greynic_broker greynic_broker;
typedef struct greynic_broker_connection greynic_broker_connection;
typedef struct greynic_broker_listener greynic_broker_listener;

/* Of any call below that takes flags: */
#define GREYNIC_BROKER_NONBLOCK 1 /* EAGAIN, or EINPROGRESS of connect, instead of waiting */
/* Of connect and accept, which verb carries large pieces of what this side sends. None of them: the
 * broker chooses by the load of both ends. Small pieces are always SENT. */
#define GREYNIC_BROKER_SEND 16
#define GREYNIC_BROKER_WRITE 32
#define GREYNIC_BROKER_READ 64

/* Of connect, by what the connection is carried; who accepts takes what was asked for. None of them:
 * RC, a stream. UC and UD carry messages: each send is one and each recv gives one, whole and once, in
 * the order in which they were sent, or not at all: what the network loses is lost, and so is what
 * comes when the receiver's ring is full. They are SENT. A longer one is EMSGSIZE. */
#define GREYNIC_BROKER_UC 128
#define GREYNIC_BROKER_UD 256
#define GREYNIC_BROKER_UC_BYTES 4096
#define GREYNIC_BROKER_UD_BYTES 1024

struct greynic_broker_options {
  size_t segment_bytes; /* memory shared with the broker, for all connections; 0: 64 MiB */
  size_t ring_bytes;    /* for each direction of a connection; 0: 256 KiB */
  int reconnect;        /* not 0: when the broker dies, connect, listen and accept wait for a new
                           one, up to 10 s; listeners listen again. Connections end all the same */
  int huge_pages;       /* not 0: lay the segment on huge pages, as far as there are any */
};

/* Attaches to the broker at a unix socket. NULL: /run/greynic/broker.sock. When the broker refuses,
 * greynic_broker_reason() says why. */
greynic_broker* greynic_broker_open(const char* socket,
                                    const struct greynic_broker_options* options);
/* Ends all its connections and listeners; their handles are void. It waits up to 5 s for what was
 * sent on connections that were disconnected before. */
void greynic_broker_close(greynic_broker* broker);
/* Bytes of the segment that lie on huge pages. Fewer than all: greynic_broker_reason() says why. */
size_t greynic_broker_huge_bytes(greynic_broker* broker);
/* Why the last open of this thread, or the last attachment, was refused or cut off; never NULL. */
const char* greynic_broker_reason(void);

/* Port 1 to 65535, of brokers, not of TCP. EADDRINUSE: another program of this host has it. */
greynic_broker_listener* greynic_broker_listen(greynic_broker* broker, uint16_t port, int flags);
greynic_broker_connection* greynic_broker_accept(greynic_broker_listener* listener, int flags);
void greynic_broker_unlisten(greynic_broker_listener* listener);

/* `host`: the address of the broker there, in numbers: "10.0.0.7", "fd00::7" (also a GID, which is
 * an IPv6 address), with its port where it is not the usual one: "10.0.0.7:18701",
 * "[fd00::7]:18701", or the LID of its port on InfiniBand: "lid:12". "localhost" is a program of this
 * host. With NONBLOCK it returns at once, and
 * the first call that sends or receives says EAGAIN until the connection is open. */
greynic_broker_connection* greynic_broker_connect(greynic_broker* broker, const char* host,
                                                  uint16_t port, int flags);

/* 1: it is open, 0: not yet, -1: it is over, with errno. */
int greynic_broker_state(greynic_broker_connection* connection);
/* How many bytes were taken: all of them, or with NONBLOCK as many as there was room for. */
ssize_t greynic_broker_send(greynic_broker_connection* connection, const void* data, size_t bytes,
                            int flags);
/* At least one byte and at most so many; 0: the other side sends no more. Of a message that is longer
 * than `bytes` the rest is thrown away. */
ssize_t greynic_broker_recv(greynic_broker_connection* connection, void* data, size_t bytes,
                            int flags);

/* Memory that the RNIC fills itself. greynic_broker_register takes it out of the segment; a
 * connection made with it receives there, as into a ring: recv_zero_copy tells where the next bytes
 * lie, at most so many, and they stay until the next call that receives on this connection. Streams
 * only: with UC and UD it is EOPNOTSUPP. */
void* greynic_broker_register(greynic_broker* broker, size_t bytes);
void greynic_broker_unregister(greynic_broker* broker, void* memory);
greynic_broker_connection* greynic_broker_connect_into(greynic_broker* broker, const char* host,
                                                       uint16_t port, void* memory, size_t bytes,
                                                       int flags);
greynic_broker_connection* greynic_broker_accept_into(greynic_broker_listener* listener,
                                                      void* memory, size_t bytes, int flags);
ssize_t greynic_broker_recv_zero_copy(greynic_broker_connection* connection, const void** data,
                                      size_t bytes, int flags);

/* Memory beside the segment, from which large pieces need not be copied: a send that waits, of bytes
 * that lie whole in it, leaves them where they are, and returns when they have arrived. Whether it does
 * is decided by what registering them with the RNIC costs and what copying them does, as the broker has
 * measured; registrations are kept for the next time. Sends of registered memory (above) do so from
 * 16 KiB on. A send with NONBLOCK copies. The memory comes from greynic_broker_lend and goes by
 * greynic_broker_take_back, never by munmap, and not while a send from it waits. */
void* greynic_broker_lend(greynic_broker* broker, size_t bytes);
int greynic_broker_take_back(greynic_broker* broker, void* memory);

/* Room in the ring of a stream, to be filled in place: how many bytes, -1 with EAGAIN when there are
 * none now. greynic_broker_filled sends the first so many of them. Neither waits. */
ssize_t greynic_broker_room(greynic_broker_connection* connection, void** place);
int greynic_broker_filled(greynic_broker_connection* connection, size_t bytes);

/* The address of the broker at the other end of an accepted connection, as text. -1 with ENOTCONN
 * for a connection that was not accepted. */
int greynic_broker_peer(greynic_broker_connection* connection, char* text, size_t bytes);
/* Bytes that lie at the other broker for good, of all that were sent. Over UC and UD: that have left,
 * and 4 for each message. */
uint64_t greynic_broker_sent(greynic_broker_connection* connection);
/* Sends no more; the other side's recv says 0 after the last byte. */
int greynic_broker_finish(greynic_broker_connection* connection);
/* The handle is void. What was sent still goes out; if bytes still come, the other side gets
 * ECONNRESET. */
void greynic_broker_disconnect(greynic_broker_connection* connection);

/* For epoll: readable when something may be ready. Then call greynic_broker_ready until it says 0;
 * only after a 0, and until the next call that waits, does the descriptor tell of what comes next. So
 * a program whose other threads wait in calls opens its broker once more for epoll. */
int greynic_broker_fd(greynic_broker* broker);

#define GREYNIC_BROKER_IN 1  /* bytes, an end, or a connection to accept */
#define GREYNIC_BROKER_OUT 2 /* it is open now, or there is room again */
struct greynic_broker_readiness {
  greynic_broker_connection* connection; /* or NULL */
  greynic_broker_listener* listener;     /* or NULL */
  int what;
};
/* What has changed since it was last told, at most `most`: each is told once, so receive and send
 * until EAGAIN. -1 with ECONNRESET: the broker has died. Never waits. */
int greynic_broker_ready(greynic_broker* broker, struct greynic_broker_readiness* ready, int most);

/* For the program's own pointer to what it keeps for a connection. */
void greynic_broker_set_context(greynic_broker_connection* connection, void* context);
void* greynic_broker_context(greynic_broker_connection* connection);

#ifdef __cplusplus
}
#endif
#endif
