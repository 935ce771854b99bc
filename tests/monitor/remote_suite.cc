#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "greynic_zero.h"
#include "remote_fixture.h"

namespace greynic::monitor {
namespace {

// Claim: over mutual TLS a collector sees what one on the host itself sees, last values of what
//        lived for milliseconds among them, and an agent that is started anew is read again.
TEST_F(RemoteHost, IsReadLikeOneOfThisMachine) {
  make_lab({"alice"});
  start_agent();
  open_door();
  for (const series::Summary& one :
       read_like_here(behind_door("far", of_client("alice")), "not reached")) {
    if (one.name.starts_with("call_")) EXPECT_NE(one.last, "0") << one.labels;
  }
}

// Claim: who is named sees its classes and no other; who is not named sees nothing and is told so.
TEST_F(RemoteHost, ShowsAClientItsClassesOnly) {
  make_lab({"alice", "bob", "carol"});
  start_agent();
  open_door({"alice=persistent", "carol=tidal,system", "carol=persistent"});
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  start_remote_collector({behind_door("alice", of_client("alice")),
                          behind_door("bob", of_client("bob")),
                          behind_door("carol", of_client("carol"))});
  std::map<std::string, std::set<int>> classes;
  const auto look = [&] {
    collector_->latest([&](const series::Group& group, std::int64_t, auto) {
      classes[group.host].insert(group.metric_class);
    });
  };
  ASSERT_TRUE(wait_for([&] {
    look();
    return classes["carol"].size() == 2 && !classes["alice"].empty();
  })) << told();
  EXPECT_TRUE(goes_down(1, "--allow")) << collector_->hosts()[1].reason;
  look();
  EXPECT_EQ(classes["alice"], std::set<int>{ZERO_PERSISTENT});
  EXPECT_TRUE(classes["bob"].empty());
}

// Claim: a client of another lab, one without certificates and one that is revoked are turned away
//        with a reason, and nothing else than loopback is listened at without certificates.
TEST_F(RemoteHost, TurnsStrangersAway) {
  make_lab({"alice"});
  ASSERT_TRUE(agent::create_certificates(folder_ + "/other", {"127.0.0.1"}));
  start_agent();
  open_door();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  start_remote_collector({behind_door("alice", of_client("alice")),
                          behind_door("stranger", folder_ + "/other"), behind_door("plain", "")});
  ASSERT_TRUE(wait_for([&] { return latest()["alice" + kRequests] > 1; })) << told();
  EXPECT_TRUE(goes_down(1, "not reached")) << collector_->hosts()[1].reason;
  EXPECT_TRUE(goes_down(2, "not reached")) << collector_->hosts()[2].reason;
  ASSERT_TRUE(agent::revoke_certificate(lab(), of_client("alice") + "/client.pem"));
  EXPECT_TRUE(goes_down(0, "revoked")) << collector_->hosts()[0].reason;
  for (const auto& [name, value] : latest()) {
    EXPECT_FALSE(name.starts_with("stranger") || name.starts_with("plain")) << name;
  }
  // A directory without the files of a client is told before anything is tried.
  const std::vector<HostSpec> empty = {behind_door("empty", folder_)};
  const auto links = remote::links_to(empty);
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().code, ErrorCode::kMissing);
  EXPECT_NE(links.error().message.find("agent init"), std::string::npos) << links.error().message;
  remote::DoorOptions open;
  open.socket = socket();
  open.listen = "0.0.0.0:0";
  const auto refused = remote::Door::open(open);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  std::map<std::string, std::uint32_t> allowed;
  for (const char* bad : {"alice", "=tidal", "alice=", "alice=all", "alice=tidal,"}) {
    EXPECT_FALSE(remote::allow(bad, allowed)) << bad;
  }
}

// Claim: when another lab's files are put in place one by one, the door goes over to them without a
//        restart: who has the new ones is served, who was connected stays so.
TEST_F(RemoteHost, IsRenewedWhileItRuns) {
  make_lab({"alice"});
  const std::string next = folder_ + "/next";
  ASSERT_TRUE(agent::create_certificates(next, {"localhost", "127.0.0.1"}, {"bob"}));
  start_agent();
  open_door();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  start_remote_collector(
      {behind_door("alice", of_client("alice")), behind_door("bob", next + "/bob")});
  ASSERT_TRUE(wait_for([&] { return latest()["alice" + kRequests] > 1; })) << told();
  EXPECT_TRUE(goes_down(1, "not reached")) << collector_->hosts()[1].reason;
  for (const char* name : {"/agent.key", "/agent.pem", "/ca.pem"}) {
    std::filesystem::copy(next + name, lab() + name + ".new");
    std::filesystem::rename(lab() + name + ".new", lab() + name);
  }
  EXPECT_TRUE(wait_for([&] { return latest()["bob" + kRequests] > 1; })) << told();
  const double before = latest()["alice" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["alice" + kRequests] > before + 3; })) << told();
}

// Claim: collectors that are killed again and again keep none of their lab out: the door allows 16
//        sessions of one certificate, which would else stay for a minute.
TEST_F(RemoteHost, ForgetsWhoWasKilledWhenOthersCome) {
  make_lab({"alice"});
  start_agent();
  open_door();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  const HostSpec spec = behind_door("alice", of_client("alice"));
  std::vector<std::unique_ptr<HostLink>> held;
  const auto links = remote::links_to({}, links_);
  ASSERT_TRUE(links);
  const auto attach = [&] {
    auto link = (*links)(spec);
    if (link) held.push_back(std::move(*link));
    return link.has_value();
  };
  for (int i = 0; i < 17; ++i) {
    ASSERT_TRUE(wait_for(attach)) << i << told();
    held.clear();  // the end of a killed one: no goodbye is said
  }
  // Those who are connected keep what they have.
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(wait_for(attach)) << i << told();
  const auto refused = (*links)(spec);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no more are given"), std::string::npos)
      << refused.error().message;
}

// Claim: hosts that take a connection and never answer cost no other host its turn.
TEST_F(RemoteHost, ThatHangsHoldsNoOther) {
  const int hung = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(bind(hung, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(hung, 64), 0);
  ASSERT_EQ(getsockname(hung, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  make_lab({});
  start_agent();
  open_door();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  std::vector<HostSpec> hosts = {behind_door("good", lab())};
  for (int i = 0; i < 8; ++i) {
    hosts.push_back(behind_door(fmt::format("hung{}", i), lab()));
    hosts.back().remote = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  }
  start_remote_collector(hosts);
  ASSERT_TRUE(wait_for([&] { return latest()["good" + kRequests] > 1; })) << told();
  EXPECT_TRUE(goes_down(1, "does not answer")) << collector_->hosts()[1].reason;
  // Its looks go on while the others are tried again and again.
  const double before = latest()["good" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["good" + kRequests] > before + 50; }));
  EXPECT_TRUE(collector_->hosts()[0].up);
  stop_collector();
  close(hung);
}

}  // namespace
}  // namespace greynic::monitor
