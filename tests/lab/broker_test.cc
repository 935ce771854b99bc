/// Who may come to the process that holds a lab.

#include "run/broker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace greynic::lab {
namespace {

// Claim:  another user who comes before anybody else is sent away, and the lab waits on for its own.
// Oracle: who comes after it is welcome.
TEST(LabBroker, OutlivesAStranger) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to come as another user";
  constexpr std::chrono::milliseconds kSoon(5000);
  const std::string name = "greynic-lab-test-" + std::to_string(getpid());
  Broker broker(listen_at(name));
  const pid_t stranger = fork();
  if (stranger == 0) _exit(setuid(65534) == 0 && connect_to(name) >= 0 ? 1 : 0);
  EXPECT_TRUE(broker.serve_once(-1, kSoon));
  waitpid(stranger, nullptr, 0);
  const int own = connect_to(name);
  ASSERT_GE(own, 0);
  Message hello{.kind = MessageKind::kHost};
  ASSERT_TRUE(send_message(own, hello));
  for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(broker.serve_once(-1, kSoon)) << turn;
  Message reply;
  Descriptors none;
  EXPECT_TRUE(receive_message(own, reply, none));
  EXPECT_EQ(reply.kind, MessageKind::kWelcome);
  close(own);
  ASSERT_TRUE(broker.serve_once(-1, kSoon));
  EXPECT_FALSE(broker.serve_once(-1, kSoon)) << "all who came have left";
}

}  // namespace
}  // namespace greynic::lab
