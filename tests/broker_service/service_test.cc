// Whole brokers in a lab: two daemons, their applications, and what dies. Payloads are known byte
// by byte; what they are is broker_program.cc's part.

#include <filesystem>
#include <fstream>

#include "lab_brokers.h"

namespace greynic::broker {
namespace {

using Words = std::vector<std::string>;

std::string whole(int connections, std::uint64_t bytes) {
  return "whole " + std::to_string(connections) + " reset 0 other 0 wrong 0 bytes " +
         std::to_string(bytes * static_cast<std::uint64_t>(connections));
}

// Claim:  applications on two hosts exchange streams over two shared QPs, whatever verb carries
//         them, and nothing is left when they end.
// Oracle: the byte that belongs at each place; the brokers' own counts at the end.
TEST(BrokerService, CarriesStreamsBetweenTwoHosts) {
  const Lab lab;
  const auto a = lab.start("a", 0), b = lab.start("b", 1);
  const auto echo = echo_at(b.socket, "7");
  for (const char* verb : {"auto", "send", "write", "read"}) {
    Process load({BROKER_PROGRAM, "load", a.socket, b.address, "7", "40", "150000", "1", verb});
    EXPECT_EQ(load.join(), 0) << load.text();
    EXPECT_NE(load.text().find(whole(40, 150000)), std::string::npos) << verb << load.text();
  }
  for (const auto* one : {&a, &b}) {
    EXPECT_TRUE(eventually([&] { return one->status()["connections"] == 0; })) << one->status();
    const nlohmann::json status = one->status();
    EXPECT_EQ(status["qps"], 6) << "two to the other host, and two each way to itself";
    EXPECT_EQ(status["cut_off"], 0) << status;
    EXPECT_EQ(status["failures"]["rebuilds"], 0) << status;
    EXPECT_EQ(status["failures"]["garbled"], 0) << status;
  }
  const nlohmann::json status = a.status();
  EXPECT_GT(status["decisions"]["read"], 0) << status;
  EXPECT_GT(status["decisions"]["write"], 0) << status;
}

TEST(BrokerService, JoinsProgramsOfOneHost) {
  const Lab lab;
  const auto a = lab.start("a", 0);
  const auto echo = echo_at(a.socket, "7");
  Process load({BROKER_PROGRAM, "load", a.socket, "localhost", "7", "20", "100000", "3"});
  EXPECT_EQ(load.join(), 0) << load.text();
  EXPECT_NE(load.text().find(whole(20, 100000)), std::string::npos) << load.text();
}

// Claim:  the example that is installed works.
TEST(BrokerService, RunsTheExample) {
  const Lab lab;
  const auto a = lab.start("a", 0), b = lab.start("b", 1);
  Process server({BROKER_ECHO, b.socket, "serve", "9"});
  ASSERT_TRUE(server.says("listening")) << server.text();
  Process client({BROKER_ECHO, a.socket, b.address, "9", "many", "words"});
  EXPECT_EQ(client.join(), 0) << client.text();
  EXPECT_EQ(client.text(), "many\nwords\n");
  for (const char* transport : {"--uc", "--ud"}) {
    Process messages({BROKER_ECHO, transport, a.socket, b.address, "9", "many", "words"});
    EXPECT_EQ(messages.join(), 0) << messages.text();
    EXPECT_EQ(messages.text(), "many\nwords\n");
  }
  EXPECT_EQ(a.status()["messages"]["sent"], 4) << a.status();
  Process refused({BROKER_ECHO, a.socket, b.address, "10", "nobody"});
  EXPECT_EQ(refused.join(), 1);
  EXPECT_NE(refused.text().find("Connection refused"), std::string::npos) << refused.text();
}

// Claim:  a target may be a LID that the broker was told of; others are nowhere.
TEST(BrokerService, KnowsTargetsByTheirLids) {
  const Lab lab;
  const auto b = lab.start("b", 1), a = lab.start("a", 0, {"--lid", "0x0c=" + b.address});
  Process server({BROKER_ECHO, b.socket, "serve", "9"});
  ASSERT_TRUE(server.says("listening")) << server.text();
  Process client({BROKER_ECHO, a.socket, "lid:0xc", "9", "word"});
  EXPECT_EQ(client.join(), 0) << client.text();
  EXPECT_EQ(client.text(), "word\n");
  for (const auto& [lid, why] : {std::pair{"lid:13", "No route to host"},
                                 {"lid:0", "Invalid argument"},
                                 {"lid:49152", "Invalid argument"}}) {
    Process lost({BROKER_ECHO, a.socket, lid, "9", "word"});
    EXPECT_EQ(lost.join(), 1);
    EXPECT_NE(lost.text().find(why), std::string::npos) << lost.text();
  }
}

// Claim:  a program hears how much of its segment lies on huge pages, and why not all of it.
TEST(BrokerService, TellsOfHugePages) {
  const Lab lab;
  const auto a = lab.start("a", 0);
  Process one({BROKER_PROGRAM, "huge", a.socket});
  EXPECT_EQ(one.join(), 0) << one.text();
  EXPECT_NE(one.text().find("bytes on huge pages"), std::string::npos) << one.text();
}

// Claim:  C++ programs do the same by handles and exceptions; one that asked for it goes on with
//         the broker that comes in the place of one that was killed.
TEST(BrokerService, ServesProgramsInCxx) {
  const Lab lab;
  auto a = lab.start("a", 0);
  const auto b = lab.start("b", 1);
  Process server({BROKER_ECHO, b.socket, "serve", "9"});
  ASSERT_TRUE(server.says("listening")) << server.text();
  Process refused({BROKER_PROGRAM, "wrapped", a.socket, b.address, "10", "nobody"});
  EXPECT_EQ(refused.join(), 4);
  EXPECT_NE(refused.text().find("connect: Connection refused"), std::string::npos)
      << refused.text();
  Process client({BROKER_PROGRAM, "wrapped", a.socket, b.address, "9", "twice", "again"});
  ASSERT_TRUE(client.says("twice")) << client.text();
  const std::string address = a.address;
  kill(a.pid(), SIGKILL);
  a.process->join();
  ASSERT_TRUE(client.says("reset by peer")) << client.text();
  a = lab.start("a", 0, {}, address);
  EXPECT_EQ(client.join(), 0) << client.text();
  EXPECT_TRUE(client.text().ends_with("reset by peer\ntwice\n")) << client.text();
}

// Claim:  status tells how long connects took; each is counted once at either end.
TEST(BrokerService, TellsHowLongConnectsTake) {
  const Lab lab;
  const auto a = lab.start("a", 0), b = lab.start("b", 1);
  const auto echo = echo_at(b.socket, "7");
  Process load({BROKER_PROGRAM, "load", a.socket, b.address, "7", "40", "1000", "1"});
  EXPECT_EQ(load.join(), 0) << load.text();
  EXPECT_EQ(a.status()["connect_ns"]["heard_to_told"]["count"], 40) << a.status();
  EXPECT_EQ(b.status()["connect_ns"]["heard_to_told"]["count"], 40) << b.status();
  EXPECT_LE(a.status()["connect_ns"]["asked_to_posted"]["count"], 40) << "the first were cold";
}

// Claim:  an application that breaks the rules of its segment is refused or cut off with a reason;
//         the broker and another application's streams go on.
TEST(BrokerService, CutsOffWhoBreaksTheRules) {
  const Lab lab;
  const auto a = lab.start("a", 0);
  const auto echo = echo_at(a.socket, "7");
  int cut = 0, refused = 0;
  for (const char* kind :
       {"garbage",        "forged",       "length",         "backwards",
        "taken",          "rings",        "own_rings",      "request_place",
        "event_place",    "never_reads",  "lends_unsealed", "lends_less",
        "lends_a_file",   "lends_twice",  "sends_beyond",   "sends_beyond_all",
        "sends_too_much", "sends_unlent", "sends_two",      "takes_back_twice"}) {
    Process load({BROKER_PROGRAM, "load", a.socket, "localhost", "7", "5", "200000", "9"});
    Process one({BROKER_PROGRAM, "hostile", a.socket, kind});
    EXPECT_EQ(one.join(), 0) << kind << ": " << one.text();
    EXPECT_EQ(load.join(), 0) << kind << ": " << load.text();
    EXPECT_NE(load.text().find(whole(5, 200000)), std::string::npos) << kind << load.text();
    EXPECT_EQ(a.status()["cut_off"], ++cut) << kind << ": " << one.text();
  }
  for (const char* kind :
       {"no_memory", "a_file", "unsealed", "shorter", "tiny", "huge", "lingers"}) {
    Process one({BROKER_PROGRAM, "hostile", a.socket, kind});
    EXPECT_EQ(one.join(), 0) << kind << ": " << one.text();
    EXPECT_EQ(a.status()["refused"], ++refused) << kind << ": " << one.text();
  }
  EXPECT_TRUE(eventually([&] {
    const nlohmann::json status = a.status();
    return status["connections"] == 0 && status["application_count"] == 1;
  })) << a.status();
}

// Claim:  whoever sends descriptors with an empty packet is cut off, and the broker keeps none of them.
TEST(BrokerService, KeepsNoDescriptorOfAnEmptyPacket) {
  const Lab lab;
  const auto a = lab.start("a", 0);
  const auto descriptors = [folder = "/proc/" + std::to_string(a.pid()) + "/fd"] {
    std::vector<std::string> all;
    std::error_code gone;  // some are closed while they are listed
    for (const auto& one : std::filesystem::directory_iterator(folder)) {
      all.push_back(std::filesystem::read_symlink(one, gone).string());
    }
    return all;
  };
  const auto lie = [&] {
    Process one({BROKER_PROGRAM, "hostile", a.socket, "empty"});
    EXPECT_EQ(one.join(), 0) << one.text();
  };
  lie();
  const auto before = descriptors();
  constexpr std::size_t kLies = 10;
  for (std::size_t i = 0; i < kLies; ++i) lie();
  // Each kept descriptor would be one more for each lie; the lab opens some when it first needs them.
  EXPECT_TRUE(eventually([&] { return descriptors().size() < before.size() + kLies; }))
      << testing::PrintToString(descriptors()) << testing::PrintToString(before);
}

// Claim:  large sends of lent memory are registered on the fly, once for as long as there is room, and
//         not copied; what comes back is whole; a broker that comes after has the memory too; what is
//         taken back, or belongs to a program that is gone, is registered no more.
// Oracle: every byte; the broker's counts.
TEST(BrokerService, SendsLentMemoryFromWhereItLies) {
  const Lab lab;
  auto a = lab.start("a", 0, {"--register-from", "300KiB"});
  const auto b = lab.start("b", 1);
  const auto echo = echo_at(b.socket, "7");
  const auto memory = [&] { return a.status()["memory"]; };
  EXPECT_EQ(memory()["register_from_bytes"], 300 << 10);
  EXPECT_GT(b.status()["memory"]["copy_page_ns"], 0) << "measured, and it is some time";
  {
    Process program({BROKER_PROGRAM, "lend", a.socket, b.address, "7", "8", "1000000", "again"});
    ASSERT_TRUE(program.says("wrong 0\n")) << program.text();
    // A mebibyte is registered at first sight, and serves its own half as well.
    EXPECT_EQ(memory()["registered"], 1) << memory();
    EXPECT_EQ(memory()["reused"], 7) << memory();
    EXPECT_EQ(memory()["lent_bytes"], 6000000) << memory();
    EXPECT_EQ(memory()["copied_bytes"], 0) << memory();
    const auto list = nlohmann::json::parse(*ask_decisions(a.socket))["decisions"];
    EXPECT_LE(list.size(), 256U);
    EXPECT_GT(list.size(), 6000000U / 65536) << "pieces of a segment at most";
    for (const auto& one : list) EXPECT_NE(one["from"], "copied") << one;
    const std::string address = a.address;
    kill(a.pid(), SIGKILL);
    a.process->join();
    a = lab.start("a", 0, {"--register-from", "300KiB"}, address);
    ASSERT_TRUE(program.says("taken back")) << program.text();
    EXPECT_GT(memory()["lent_bytes"], 0) << memory();
    EXPECT_EQ(memory()["kept"], 0) << memory();
    EXPECT_EQ(a.status()["applications"][0]["lent_bytes"], 0) << a.status();
  }
  Process much({BROKER_PROGRAM, "lend_much", a.socket});
  EXPECT_EQ(much.join(), 0);
  EXPECT_EQ(much.text(), "64: Too many open files\nagain\nDisk quota exceeded\n");
  const integration::Outcome table =
      integration::greynic(lab.folder(), "broker status --decisions --socket " + b.socket);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("prefers"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("WRITE"), std::string::npos) << table.out;
}

TEST(BrokerService, HoldsUsersToTheirQuotas) {
  const Lab lab;
  const auto a = lab.start("a", 0, {"--quota-connections", "10", "--quota-memory", "130MiB"});
  const auto echo = echo_at(a.socket, "7");
  Process many({BROKER_PROGRAM, "load", a.socket, "localhost", "7", "30", "1000", "1"});
  EXPECT_EQ(many.join(), 0) << many.text();
  EXPECT_NE(many.text().find("Too many open files"), std::string::npos) << many.text();
  Process third({BROKER_PROGRAM, "hostile", a.socket, "huge"});
  EXPECT_NE((third.join(), third.text().find("together")), std::string::npos) << third.text();
}

/// What dies under load, and how often; the nightly run takes 20 of each.
int rounds() { return std::getenv("GREYNIC_NIGHTLY") != nullptr ? 20 : 2; }

/// Waits until the load has moved bytes, then kills.
void kill_under_load(const Lab::Broker& watched, pid_t pid) {
  EXPECT_TRUE(eventually([&] { return watched.status()["connections"].get<int>() > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(pid, SIGKILL);
}

// Claim:  the far side of a client that is killed hears of it, others lose nothing, and what the
//         dead one had is free.
TEST(BrokerService, OutlivesItsClients) {
  const Lab lab;
  const auto a = lab.start("a", 0), b = lab.start("b", 1);
  const auto echo = echo_at(b.socket, "7");
  for (int round = 0; round < rounds(); ++round) {
    Process dying({BROKER_PROGRAM, "load", a.socket, b.address, "7", "20", "500000000", "5"});
    Process other({BROKER_PROGRAM, "load", a.socket, b.address, "7", "20", "400000", "6"});
    kill_under_load(b, dying.pid());
    EXPECT_EQ(other.join(), 0) << other.text();
    EXPECT_NE(other.text().find(whole(20, 400000)), std::string::npos) << other.text();
    for (const auto* one : {&a, &b}) {
      EXPECT_TRUE(eventually([&] { return one->status()["connections"] == 0; })) << one->status();
    }
    EXPECT_TRUE(eventually([&] { return a.status()["application_count"] == 0; })) << a.status();
  }
  EXPECT_EQ(b.status()["application_count"], 1) << "the echo lives";
  EXPECT_EQ(a.status()["qps"], 6);
}

// Claim:  when a broker is killed, its clients and those of the other side get ECONNRESET, no byte
//         that was received is wrong, and a new broker in its place serves again.
TEST(BrokerService, DiesWithClearErrors) {
  for (const bool far : {false, true}) {
    const Lab lab;
    auto a = lab.start("a", 0), b = lab.start("b", 1);
    auto echo = echo_at(b.socket, "7");
    for (int round = 0; round < rounds(); ++round) {
      Process load({BROKER_PROGRAM, "load", a.socket, b.address, "7", "20", "500000000", "5"});
      auto& dying = far ? b : a;
      const std::string address = dying.address;
      kill_under_load(b, dying.pid());
      EXPECT_EQ(load.join(), 0) << load.text();
      EXPECT_NE(load.text().find("whole 0 reset 20 other 0 wrong 0"), std::string::npos)
          << load.text();
      dying.process->join();
      dying = lab.start(far ? "b" : "a", far ? 1 : 0, {}, address);
      if (far) {
        EXPECT_EQ(echo->join(), 3) << "its broker has died";
        echo = echo_at(b.socket, "7");
      }
      Process again({BROKER_PROGRAM, "load", a.socket, b.address, "7", "5", "100000", "7"});
      EXPECT_EQ(again.join(), 0) << again.text();
      EXPECT_NE(again.text().find(whole(5, 100000)), std::string::npos) << again.text();
    }
    EXPECT_TRUE(eventually([&] { return b.status()["connections"] == 0; })) << b.status();
  }
}

// Claim:  brokers of one lab meet under mutual TLS; one of another lab, or one without
//         certificates, is turned away with a reason.
TEST(BrokerService, MeetsOnlyItsOwnLab) {
  const Lab lab;
  const auto make = [&](const std::string& name) {
    const integration::Outcome made = integration::greynic(
        lab.folder(), "agent init " + (lab.folder() / name) + " --name 127.0.0.1");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return lab.folder() / name;
  };
  const std::string ours = make("ours"), theirs = make("theirs");
  const auto a = lab.start("a", 0, {"--certificates", ours});
  const auto b = lab.start("b", 1, {"--certificates", ours});
  const auto echo = echo_at(b.socket, "7");
  Process load({BROKER_PROGRAM, "load", a.socket, b.address, "7", "10", "100000", "1"});
  EXPECT_EQ(load.join(), 0) << load.text();
  EXPECT_NE(load.text().find(whole(10, 100000)), std::string::npos) << load.text();
  const auto stranger = lab.start("stranger", 2, {"--certificates", theirs});
  const auto plain = lab.start("plain", 3);
  for (const auto* one : {&stranger, &plain}) {
    Process refused({BROKER_PROGRAM, "load", one->socket, b.address, "7", "1", "1000", "1"});
    EXPECT_EQ(refused.join(), 0) << refused.text();
    EXPECT_NE(refused.text().find("whole 0"), std::string::npos) << refused.text();
    EXPECT_EQ(one->status()["peers"].size(), 0U) << one->status();
  }
}

TEST(BrokerService, SaysWhatIsWrong) {
  const integration::Folder folder;
  const auto says = [&](const std::string& words, int code, const std::string& text) {
    const integration::Outcome run = integration::greynic(folder, words);
    EXPECT_EQ(run.exit_code, code) << words << run.err;
    EXPECT_NE(run.err.find(text), std::string::npos) << words << run.err;
  };
  const std::string session = "lab-run --session wrong" + std::to_string(getpid()) + " -- ";
  const std::string broker = session + GREYNIC_BINARY + " broker --socket " + (folder / "s");
  says("broker", 2, "--device DEVICE");
  says("broker --device none", 3, "none");
  says("broker status --socket " + (folder / "s"), 3, "start `greynic broker`");
  says(broker + " --device twin0 --listen 0.0.0.0:0", 2, "--certificates");
  says("broker --device none --listen 10.0.0.7", 2, "is no ADDRESS:PORT");
  says(broker + " --device twin0 --listen 127.0.0.1:0 --certificates /nowhere", 3,
       "cannot be read");
  says(broker + " --device twin0 --advice /nowhere", 2, "/nowhere");
  says(broker + " --device twin0 --lid 0=127.0.0.1:1", 2, "LID=ADDRESS:PORT");
  says(broker + " --device twin0 --lid 7=nowhere", 2, "ADDRESS:PORT in numbers");
  says(broker + " --device twin0 --advice " +
           (std::filesystem::path(GREYNIC_SOURCE_DIR) / "configs/examples/connections.json")
               .string(),
       2, "connections.json");
  says(broker + " --device twin0 --cpu -3", 2, "--cpu");
  says(broker + " --device twin0 --quota-memory much", 2, "--quota-memory");
  says(broker + " --device twin0 --register-from soon", 2, "--register-from (auto, never");
  says(broker + "/no/such --device twin0", 3, "choose another --socket");
  // Whatever is no socket of a broker stays.
  std::ofstream(folder / "s") << "kept";
  says(broker + " --device twin0", 2, "is no socket");
  std::string kept;
  std::ifstream(folder / "s") >> kept;
  EXPECT_EQ(kept, "kept");
}

}  // namespace
}  // namespace greynic::broker
