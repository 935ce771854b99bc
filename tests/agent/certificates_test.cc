#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent.grpc.pb.h"
#include "credentials.h"
#include "greynic/agent/agent.h"
#include "greynic/agent/lab.h"
#include "greynic/agent/lab_files.h"

// Of an address sanitizer.
extern "C" __attribute__((weak)) void __lsan_do_leak_check();

namespace greynic::agent {
namespace {

/// What OpenSSL keeps for a thread of gRPC that ends after OpenSSL itself is lost, at the end of a process. So an
/// address sanitizer looks for leaks before that end.
class LeaksAreLookedForInTime : public testing::Environment {
  void TearDown() override {
    if (__lsan_do_leak_check != nullptr) __lsan_do_leak_check();
  }
};
[[maybe_unused]] const auto* const kLeaks =
    testing::AddGlobalTestEnvironment(new LeaksAreLookedForInTime);

class Certificates : public testing::Test {
 protected:
  std::string lab = testing::TempDir() + "/greynic-lab-" + std::to_string(getpid());
  void SetUp() override { std::filesystem::remove_all(lab); }
  void TearDown() override { std::filesystem::remove_all(lab); }
};

// Claim:  the certificates are valid for their purposes, and their names are those asked for.
// Oracle: the openssl command.
TEST_F(Certificates, PassTheOpensslCommand) {
  if (std::system("command -v openssl > /dev/null") != 0)
    GTEST_SKIP() << "there is no openssl command; apt-get install openssl";
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

// Claim:  whatever the umask, the lab's directories and keys are for their owner only, and what is
//         public can be read by others.
TEST_F(Certificates, DoNotFollowTheUmask) {
  for (const mode_t mask : {0000U, 0022U, 0077U, 0777U}) {
    std::filesystem::remove_all(lab);
    const mode_t before = umask(mask);
    const auto made = create_certificates(lab, {"localhost"}, {"alice"});
    umask(before);
    ASSERT_TRUE(made) << made.error().message;
    const auto mode_of = [&](const std::string& name) {
      struct stat status {};
      EXPECT_EQ(stat((lab + name).c_str(), &status), 0) << name;
      return status.st_mode & 0777;
    };
    EXPECT_EQ(mode_of(""), 0700U) << mask;
    EXPECT_EQ(mode_of("/alice"), 0700U) << mask;
    for (const char* key : {"/agent.key", "/client.key", "/alice/client.key"}) {
      EXPECT_EQ(mode_of(key), 0600U) << key << " under " << mask;
    }
    EXPECT_EQ(mode_of("/ca.pem"), 0644U) << mask;
  }
}

// Claim:  a key that others may read is refused by its name, with what to do.
TEST_F(Certificates, WithAnOpenKeyAreRefused) {
  ASSERT_TRUE(create_certificates(lab, {"127.0.0.1"}));
  for (const mode_t mode : {0644U, 0640U, 0604U, 0660U, 0602U}) {
    chmod((lab + "/agent.key").c_str(), mode);
    const auto refused = server_credentials(lab);
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
    EXPECT_NE(refused.error().message.find("agent.key"), std::string::npos);
    EXPECT_NE(refused.error().message.find("chmod 600"), std::string::npos);
  }
  chmod((lab + "/agent.key").c_str(), 0400);
  EXPECT_TRUE(server_credentials(lab));
  chmod((lab + "/client.key").c_str(), 0644);
  EXPECT_FALSE(client_credentials(lab));
}

// Claim:  a key of another certificate, or none at all, is named as such, and not found out by a
//         server that does not start.
TEST_F(Certificates, WithAnothersKeyAreRefused) {
  ASSERT_TRUE(create_certificates(lab, {"127.0.0.1"}));
  std::filesystem::copy_file(lab + "/client.key", lab + "/agent.key",
                             std::filesystem::copy_options::overwrite_existing);
  const auto mixed = server_credentials(lab);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().message.find("is not the key of"), std::string::npos)
      << mixed.error().message;
  std::ofstream(lab + "/agent.key") << "no key";
  const auto none = server_credentials(lab);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("is no private key"), std::string::npos)
      << none.error().message;
}

// Claim:  `revoked` holds fingerprints as the openssl command tells them; what is none is an error,
//         because it may have been meant to be one.
TEST_F(Certificates, AreRevokedByFingerprint) {
  ASSERT_TRUE(create_certificates(lab, {"127.0.0.1"}));
  EXPECT_TRUE(read_revoked(lab).value().empty());
  ASSERT_TRUE(revoke_certificate(lab, lab + "/client.pem"));
  ASSERT_TRUE(revoke_certificate(lab, lab + "/client.pem"));
  ASSERT_EQ(read_revoked(lab).value().size(), 1U);
  std::ifstream pem(lab + "/client.pem");
  const std::string text{std::istreambuf_iterator<char>(pem), {}};
  EXPECT_EQ(*read_revoked(lab).value().begin(), fingerprint_of(text));
  if (std::system("command -v openssl > /dev/null") == 0) {
    ASSERT_EQ(std::system(("openssl x509 -in " + lab +
                           "/agent.pem -noout -fingerprint -sha256 | "
                           "sed 's/.*=//' >> " +
                           lab + "/revoked")
                              .c_str()),
              0);
    EXPECT_EQ(read_revoked(lab).value().size(), 2U);
  }
  EXPECT_FALSE(revoke_certificate(lab, lab + "/client.key"));
  EXPECT_FALSE(revoke_certificate(lab + "/none", lab + "/client.pem"));
  std::ofstream(lab + "/revoked", std::ios::app) << "abc\n";
  const auto bad = read_revoked(lab);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("line 3"), std::string::npos) << bad.error().message;
}

// Claim:  where the list of the revoked is there and cannot be read, nobody is trusted, and what is no
//         certificate is revoked in words.
// Method: a folder, which root cannot read as a file either, and a device without an end.
TEST_F(Certificates, AreNotTrustedWhereTheRevokedAreUnknown) {
  ASSERT_TRUE(create_certificates(lab, {"127.0.0.1"}));
  EXPECT_TRUE(read_revoked(lab).value().empty());
  for (const std::string& nothing : {lab, std::string("/dev/zero"), lab + "/none"}) {
    const auto refused = revoke_certificate(lab, nothing);
    ASSERT_FALSE(refused) << nothing;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
    EXPECT_NE(refused.error().message.find(nothing), std::string::npos) << refused.error().message;
  }
  std::filesystem::create_directory(lab + "/revoked");
  const auto unknown = read_revoked(lab);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find(lab + "/revoked"), std::string::npos);
  EXPECT_FALSE(LabClient::open("127.0.0.1:1", lab));
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
  EXPECT_NE(opened.error().message.find("nobody listens there; start `greynic agent`"),
            std::string::npos)
      << opened.error().message;
}

/// A server with one lab's certificates that knows no call.
struct Listener {
  explicit Listener(const std::string& lab) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", *server_credentials(lab), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }
  ~Listener() { server->Shutdown(std::chrono::system_clock::now()); }
  [[nodiscard]] std::string address(const std::string& host = "127.0.0.1") const {
    return host + ":" + std::to_string(port);
  }
  wire::Agent::Service service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

std::string failure_of(const std::string& address, const std::string& lab) {
  std::map<std::string, std::string> options;
  if (!lab.empty()) options["certificates"] = lab;
  auto peer = remote_peer(address, options);
  if (!peer) return peer.error().message;
  const auto opened = (*peer)->open({}, std::chrono::seconds(1));
  return opened ? "" : opened.error().message;
}

// Claim:  a peer that cannot be reached is told with the cause that it has, and what to do.
// Oracle: each cause made for real: another lab, another name, no certificates on one side.
TEST_F(Certificates, AreNamedAsTheCauseWhenTheyAre) {
  const std::string other = lab + "-other";
  const std::string elsewhere = lab + "-elsewhere";
  for (const std::string& made : {other, elsewhere}) std::filesystem::remove_all(made);
  ASSERT_TRUE(create_certificates(lab, {"localhost", "127.0.0.1"}));
  ASSERT_TRUE(create_certificates(other, {"localhost", "127.0.0.1"}));
  ASSERT_TRUE(create_certificates(elsewhere, {"lab9.example"}));
  const Listener ours(lab);
  const Listener open("");
  const Listener strange(elsewhere);
  const auto expect = [](const std::string& message, std::string_view words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect(failure_of(ours.address(), other), "of another lab");
  expect(failure_of(strange.address(), elsewhere), "does not have that name");
  expect(failure_of(open.address(), lab), "the other has none");
  expect(failure_of(ours.address(), ""), "of the same lab, or none");
  for (const std::string& made : {other, elsewhere}) std::filesystem::remove_all(made);
}

// Claim:  a certificate that is out of date, or none at all, is told beforehand, by its file.
// Oracle: one that the openssl command made to end yesterday.
TEST_F(Certificates, AreLookedAtBeforehand) {
  if (std::system("command -v openssl > /dev/null") != 0)
    GTEST_SKIP() << "there is no openssl command; apt-get install openssl";
  ASSERT_TRUE(create_certificates(lab, {"127.0.0.1"}));
  ASSERT_EQ(std::system(("cd " + lab +
                         " && openssl req -new -key client.key -subj /CN=old -out old "
                         "&& openssl x509 -req -in old -signkey client.key -days -1 "
                         "-out client.pem 2> /dev/null")
                            .c_str()),
            0);
  const std::string old = failure_of("127.0.0.1:1", lab);
  EXPECT_NE(old.find("client.pem: is out of date"), std::string::npos) << old;
  std::ofstream(lab + "/client.pem") << "no certificate";
  const std::string none = failure_of("127.0.0.1:1", lab);
  EXPECT_NE(none.find("client.pem: is no certificate"), std::string::npos) << none;
}

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, Freed<X509_free>>;

/// A lab whose agent's certificate ends soon: `greynic agent init` makes none.
class ShortLab {
 public:
  ShortLab(std::string directory, long seconds_of_agent) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
    ca_key_.reset(EVP_EC_gen("P-256"));
    ca_ = signed_by_us(ca_key_.get(), "lab", 3600, true);
    write("ca", nullptr, ca_.get());
    for (const auto& [name, seconds] : {std::pair{"client", 3600L}, {"agent", seconds_of_agent}}) {
      const Key key(EVP_EC_gen("P-256"));
      const X509Pointer made = signed_by_us(key.get(), name, seconds, false);
      write(name, key.get(), made.get());
    }
  }

 private:
  X509Pointer signed_by_us(EVP_PKEY* key, const char* name, long seconds, bool authority) {
    X509Pointer made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* const issuer = ca_ ? ca_.get() : made.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    const auto extend = [&](int kind, const char* value) {
      X509V3_CTX context;
      X509V3_set_ctx(&context, issuer, made.get(), nullptr, nullptr, 0);
      const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
          X509V3_EXT_conf_nid(nullptr, &context, kind, value));
      X509_add_ext(made.get(), extension.get(), -1);
    };
    extend(NID_basic_constraints, authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!authority) extend(NID_subject_alt_name, "IP:127.0.0.1");
    X509_sign(made.get(), ca_key_.get(), EVP_sha256());
    return made;
  }
  void write(const std::string& name, EVP_PKEY* key, X509* certificate) {
    using File = std::unique_ptr<FILE, Freed<fclose>>;
    const File pem(fopen((directory_ + "/" + name + ".pem").c_str(), "w"));
    PEM_write_X509(pem.get(), certificate);
    if (key == nullptr) return;
    const std::string path = directory_ + "/" + name + ".key";
    const File secret(fopen(path.c_str(), "w"));
    chmod(path.c_str(), 0600);
    PEM_write_PrivateKey(secret.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  }

  std::string directory_;
  Key ca_key_;
  X509Pointer ca_;
  long serial_ = 0;
};

// Claim:  an agent whose certificate ends while it runs goes on serving who is connected; who comes
//         later is told that it is out of date, and so is who starts another agent with it.
// Oracle: a certificate of three seconds, waited out.
TEST_F(Certificates, ThatEndWhileAnAgentRunsAreToldToTheNextOne) {
  const ShortLab made(lab, 3);
  const Listener agent(lab);
  auto connected = remote_peer(agent.address(), {{"certificates", lab}});
  ASSERT_TRUE(connected) << connected.error().message;
  const auto answer = [&] {
    const auto opened = (*connected)->open({}, std::chrono::seconds(1));
    return opened ? std::string() : opened.error().message;
  };
  const std::string served = answer();
  EXPECT_EQ(served.find("certificate"), std::string::npos) << served;
  while (server_credentials(lab)) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::string old = server_credentials(lab).error().message;
  EXPECT_NE(old.find("agent.pem: is out of date"), std::string::npos) << old;
  EXPECT_EQ(answer(), served) << "who is connected stays so";
  const std::string next = failure_of(agent.address(), lab);
  EXPECT_NE(next.find("out of date"), std::string::npos) << next;
}

// Claim:  what is no address to listen at is told so, and a name that only looks like loopback is
//         not taken for it.
TEST(Agent, ListensAtAddressesOnly) {
  for (const char* listen : {"foo", ":80", "lab7:", "lab7:http", "lab7:70000", "::1:80"}) {
    const auto agent = Agent::start({.listen = listen, .device = "none"});
    ASSERT_FALSE(agent) << listen;
    EXPECT_NE(agent.error().message.find("not ADDRESS:PORT"), std::string::npos) << listen;
  }
  for (const char* listen : {"127.lab.example:1", "[::]:1", "127.0.0.1.example:1"}) {
    const auto agent = Agent::start({.listen = listen, .device = "none"});
    ASSERT_FALSE(agent) << listen;
    EXPECT_NE(agent.error().message.find("listens on loopback only"), std::string::npos) << listen;
  }
}

}  // namespace
}  // namespace greynic::agent
