/* Sends words to a server and prints what comes back.
 *
 *   echo SOCKET serve PORT
 *   echo SOCKET HOST PORT WORD...
 *   echo --ud SOCKET HOST PORT WORD...    each word is a message (--uc: over UC)
 */
#include <greynic_broker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const char* what) {
  perror(what);
  if (*greynic_broker_reason() != '\0') fprintf(stderr, "%s\n", greynic_broker_reason());
  return 1;
}

static int serve(greynic_broker* broker, uint16_t port) {
  greynic_broker_listener* listener = greynic_broker_listen(broker, port, 0);
  if (listener == NULL) return complain("listen");
  printf("listening\n");
  fflush(stdout);
  greynic_broker_connection* connection;
  while ((connection = greynic_broker_accept(listener, 0)) != NULL) {
    char bytes[4096];
    ssize_t got;
    while ((got = greynic_broker_recv(connection, bytes, sizeof bytes, 0)) > 0) {
      if (greynic_broker_send(connection, bytes, (size_t)got, 0) != got) break;
    }
    greynic_broker_disconnect(connection);
  }
  return complain("accept");
}

static int ask(greynic_broker* broker, const char* host, uint16_t port, int flags, char** words) {
  greynic_broker_connection* connection = greynic_broker_connect(broker, host, port, flags);
  if (connection == NULL) return complain("connect");
  for (; *words != NULL; ++words) {
    const size_t bytes = strlen(*words);
    if (greynic_broker_send(connection, *words, bytes, 0) < 0) return complain("send");
    for (size_t done = 0; done < bytes;) {
      char back[4096];
      const ssize_t got = greynic_broker_recv(connection, back, sizeof back, 0);
      if (got <= 0) return complain("recv");
      printf("%.*s", (int)got, back);
      done += (size_t)got;
    }
    printf("\n");
  }
  greynic_broker_disconnect(connection);
  return 0;
}

int main(int count, char** words) {
  int flags = 0;
  if (count > 1 && strcmp(words[1], "--uc") == 0) flags = GREYNIC_BROKER_UC;
  if (count > 1 && strcmp(words[1], "--ud") == 0) flags = GREYNIC_BROKER_UD;
  if (flags != 0) {
    ++words;
    --count;
  }
  if (count < 4) {
    fprintf(stderr, "usage: echo SOCKET serve PORT | echo [--uc|--ud] SOCKET HOST PORT WORD...\n");
    return 2;
  }
  greynic_broker* broker = greynic_broker_open(words[1], NULL);
  if (broker == NULL) return complain("open");
  const uint16_t port = (uint16_t)atoi(words[3]);
  const int code =
      strcmp(words[2], "serve") == 0 ? serve(broker, port)
                                      : ask(broker, words[2], port, flags, words + 4);
  greynic_broker_close(broker);
  return code;
}
