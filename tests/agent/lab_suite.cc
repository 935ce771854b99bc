/// A lab's certificates change while an agent runs (on the device in memory).

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "rogue/honest_caller.h"

namespace greynic::agent {
namespace {

class Lab : public testing::Test {
 protected:
  std::string root = testing::TempDir() + "/greynic-lab-suite-" + std::to_string(getpid());
  void SetUp() override { std::filesystem::create_directories(root); }
  void TearDown() override { std::filesystem::remove_all(root); }

  std::string make(const std::string& name, const std::vector<std::string>& clients = {}) {
    const std::string lab = root + "/" + name;
    const auto made = create_certificates(lab, {"127.0.0.1", "localhost"}, clients);
    EXPECT_TRUE(made) << made.error().message;
    return lab;
  }
  static std::unique_ptr<Agent> serve(const std::string& lab) {
    verbs::fake_rdma() = {};
    auto agent =
        Agent::start({.listen = "127.0.0.1:0", .certificates = lab, .device = verbs::kFakeDevice});
    EXPECT_TRUE(agent) << (agent ? "" : agent.error().message);
    return agent ? std::move(*agent) : nullptr;
  }
  /// Measures until the outcome is what is wanted, a generous while; then its reason.
  static std::string soon(const std::string& address, const std::string& lab, bool measured) {
    for (int tries = 0; tries < 100; ++tries) {
      const Observation seen = measured_by(address, lab);
      if ((seen.outcome == Outcome::kMeasured) == measured) return seen.reason + "!";
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return "";
  }
};

// Claim:  when another lab's files are put in place one by one, the agent goes over to them without
//         a restart: who has the new ones is served, and who has the old ones is not any more.
TEST_F(Lab, IsRenewedWhileItsAgentRuns) {
  const std::string old_lab = make("old");
  const std::string new_lab = make("new");
  const std::string served = root + "/served";
  std::filesystem::copy(old_lab, served);
  const auto agent = serve(served);
  ASSERT_NE(agent, nullptr);
  const auto connected = target_at(agent->address(), old_lab);
  EXPECT_EQ(measure_patiently(*connected, short_run("operation=SEND")).outcome, Outcome::kMeasured);
  for (const char* name : {"/agent.key", "/agent.pem", "/ca.pem"}) {
    std::filesystem::copy(new_lab + name, served + name + ".new");
    std::filesystem::rename(served + name + ".new", served + name);
    // What is half in place is not taken: those of the old lab are served.
    if (name != std::string_view("/ca.pem")) {
      EXPECT_NE(soon(agent->address(), old_lab, true), "") << name;
    }
  }
  EXPECT_NE(soon(agent->address(), new_lab, true), "");
  EXPECT_NE(soon(agent->address(), old_lab, false), "");
  EXPECT_EQ(measure_patiently(*connected, short_run("operation=SEND")).outcome, Outcome::kMeasured)
      << "who is connected stays so";
}

// Claim:  a certificate that is revoked is turned away within seconds, also where it is connected
//         already, and no other is.
TEST_F(Lab, TurnsTheRevokedAway) {
  const std::string lab = make("lab", {"alice", "bob"});
  const auto agent = serve(lab);
  ASSERT_NE(agent, nullptr);
  const auto alice = target_at(agent->address(), lab + "/alice");
  EXPECT_EQ(measure_patiently(*alice, short_run("operation=SEND")).outcome, Outcome::kMeasured);
  ASSERT_TRUE(revoke_certificate(lab, lab + "/alice/client.pem"));
  // A run that was under way at that moment is cut; the next is told why.
  EXPECT_NE(soon(agent->address(), lab + "/alice", false), "");
  const Observation next = measured_by(agent->address(), lab + "/alice");
  EXPECT_EQ(next.outcome, Outcome::kFailed);
  EXPECT_NE(next.reason.find("revoked"), std::string::npos) << next.reason;
  EXPECT_NE(measure_patiently(*alice, short_run("operation=SEND")).outcome, Outcome::kMeasured);
  EXPECT_EQ(measured_by(agent->address(), lab + "/bob").outcome, Outcome::kMeasured);
  EXPECT_EQ(measured_by(agent->address(), lab).outcome, Outcome::kMeasured);
}

// Claim:  a client turns an agent away whose certificate is revoked in the client's own directory.
TEST_F(Lab, TurnsARevokedAgentAway) {
  const std::string lab = make("lab", {"alice"});
  const auto agent = serve(lab);
  ASSERT_NE(agent, nullptr);
  EXPECT_EQ(measured_by(agent->address(), lab + "/alice").outcome, Outcome::kMeasured);
  ASSERT_TRUE(revoke_certificate(lab + "/alice", lab + "/agent.pem"));
  const Observation seen = measured_by(agent->address(), lab + "/alice");
  EXPECT_EQ(seen.outcome, Outcome::kFailed);
  EXPECT_NE(seen.reason.find("revoked"), std::string::npos) << seen.reason;
  EXPECT_EQ(measured_by(agent->address(), lab).outcome, Outcome::kMeasured);
}

}  // namespace
}  // namespace greynic::agent
