#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "greynic/agent/agent.h"

namespace greynic::agent {
namespace {

class Certificates : public testing::Test {
 protected:
  std::string lab = testing::TempDir() + "/greynic-lab-" + std::to_string(getpid());
  void SetUp() override { std::filesystem::remove_all(lab); }
  void TearDown() override { std::filesystem::remove_all(lab); }
};

// Claim:  the certificates are valid for their purposes, and their names are those asked for.
// Oracle: the openssl command.
TEST_F(Certificates, PassTheOpensslCommand) {
  if (std::system("command -v openssl > /dev/null") != 0) GTEST_SKIP() << "apt-get install openssl";
  ASSERT_TRUE(create_certificates(lab, {"localhost", "127.0.0.1", "nic7.lab"}));
  const auto ok = [&](const std::string& arguments) {
    return std::system(("cd " + lab + " && openssl " + arguments + " > /dev/null 2>&1").c_str()) ==
           0;
  };
  EXPECT_TRUE(ok("verify -CAfile ca.pem -purpose sslserver -verify_hostname nic7.lab agent.pem"));
  EXPECT_TRUE(ok("verify -CAfile ca.pem -purpose sslserver -verify_ip 127.0.0.1 agent.pem"));
  EXPECT_TRUE(ok("verify -CAfile ca.pem -purpose sslclient client.pem"));
  EXPECT_FALSE(ok("verify -CAfile ca.pem -purpose sslclient agent.pem"));
  EXPECT_FALSE(ok("verify -CAfile ca.pem -purpose sslserver -verify_hostname other.lab agent.pem"));
  EXPECT_TRUE(ok("pkey -in agent.key -check"));
}

TEST_F(Certificates, KeepKeysToTheirOwner) {
  ASSERT_TRUE(create_certificates(lab, {"localhost"}));
  for (const char* name : {"/agent.key", "/client.key"}) {
    struct stat status {};
    ASSERT_EQ(stat((lab + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << name;
  }
}

TEST_F(Certificates, AreNeverOverwritten) {
  ASSERT_TRUE(create_certificates(lab, {"localhost"}));
  const auto again = create_certificates(lab, {"localhost"});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kBadInput);
}

// Claim:  without certificates nobody outside this machine can reach an agent.
TEST(Agent, ListensOnLoopbackOnlyWithoutCertificates) {
  const auto agent = Agent::start({.listen = "0.0.0.0:0", .device = "none"});
  ASSERT_FALSE(agent);
  EXPECT_EQ(agent.error().code, ErrorCode::kBadInput);
  EXPECT_NE(agent.error().message.find("agent init"), std::string::npos);
}

TEST(Agent, NamesTheMissingDevice) {
  const auto agent = Agent::start({.listen = "127.0.0.1:0", .device = "no_such_device"});
  ASSERT_FALSE(agent);
  EXPECT_EQ(agent.error().code, ErrorCode::kMissing);
  EXPECT_NE(agent.error().message.find("no_such_device"), std::string::npos);
}

TEST(RemotePeer, SaysThatNobodyIsThere) {
  const auto peer = remote_peer("127.0.0.1:1", {});
  ASSERT_TRUE(peer);
  const auto opened = (*peer)->open({}, std::chrono::seconds(1));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("greynic agent"), std::string::npos);
}

}  // namespace
}  // namespace greynic::agent
