#include "greynic/rnic/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "greynic/zero/reader.h"

namespace greynic::rnic {
namespace {

namespace fs = std::filesystem;

/// A copy of what sysfs holds of two devices.
class Counters : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_rnic_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    put("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000");
    put("class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets", "7");
    put("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "3");
    put("class/infiniband/mlx5_0/ports/1/hw_counters/lifespan", "10");
    put("class/infiniband/mlx5_0/ports/1/hw_counters/odd", "none");
    put("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth7");
    put("class/net/eth7/statistics/rx_bytes", "18446744073709551615");
    put("class/net/eth7/statistics/rx_queue_0_packets", "5");
    put("class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "40");
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  Result<Sampler> sampler(const std::string& device = "*",
                          Selection selection = Selection::usual()) const {
    return Sampler::open({device, std::move(selection), root_.string(), false});
  }
  Selection selection_of(const std::string& text) const {
    std::ofstream(root_ / "select") << text;
    auto read = Selection::read((root_ / "select").string());
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  /// All that this process publishes, as a monitor sees it: "name{labels}".
  static std::map<std::string, std::uint64_t> published() {
    std::map<std::string, std::uint64_t> values;
    const auto arenas = zero::find_arenas(getpid());
    EXPECT_TRUE(arenas);
    for (const zero::FoundArena& arena : *arenas) {
      auto reader = zero::ArenaReader::open(zero::process_source(getpid(), arena));
      EXPECT_TRUE(reader) << reader.error().message;
      const auto readings = reader->look();
      EXPECT_TRUE(readings);
      for (const zero::Reading& reading : *readings) {
        if (reading.row->ended) continue;
        for (const zero::Field& field : reading.row->schema->fields) {
          const zero::Series series = zero::series_of(*reading.row, field, 0);
          values[series.name + "{" + series.labels + "}"] = zero::bits_of(field, reading.bytes);
        }
      }
    }
    return values;
  }

  fs::path root_;
};

const std::string kPort = "device=\"mlx5_0\",port=\"1\"";

// Claim:  what sysfs says is what a monitor reads, at each sample; what is no number, or was not
//         selected, is absent.
// Oracle: the files, which the test writes.
TEST_F(Counters, AreWhatSysfsSays) {
  auto made = sampler();
  ASSERT_TRUE(made) << made.error().message;
  const std::string net = kPort + ",interface=\"eth7\"";
  std::map<std::string, std::uint64_t> expected = {
      {"rdma_port_port_xmit_data{" + kPort + "}", 4000},
      {"rdma_port_port_xmit_packets{" + kPort + "}", 7},
      {"rdma_hw_out_of_sequence{" + kPort + "}", 3},
      {"rdma_net_rx_bytes{" + net + ",component=\"interface\",kind=\"traffic\"}", UINT64_MAX},
      {"rdma_hw_sent_pkts{device=\"rxe0\",port=\"1\"}", 40}};
  EXPECT_EQ(published(), expected);
  put("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "12345678901");
  put("class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "41");
  EXPECT_EQ(published(), expected) << "nothing moves by itself";
  made->sample_ports();
  expected["rdma_hw_out_of_sequence{" + kPort + "}"] = 12345678901;
  expected["rdma_hw_sent_pkts{device=\"rxe0\",port=\"1\"}"] = 41;
  EXPECT_EQ(published(), expected);
  EXPECT_EQ(made->names().size(), expected.size());
}

// Claim: a list of patterns selects, the last that fits decides, and a bad one is told with its line.
TEST_F(Counters, AreSelectedByAList) {
  {
    auto made =
        sampler("mlx5_*", selection_of("# traffic\n hw.*\n!hw.out*\nport.*_packets # few\n"));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->names(), std::vector<std::string>{"mlx5_0/1 port.port_xmit_packets"});
  }
  EXPECT_TRUE(published().empty()) << "its rows end with a sampler";
  const auto none = sampler("*", selection_of("hw.nothing\n"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kMissing);
  const auto absent = sampler("bnxt*");
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("no RDMA device 'bnxt*'"), std::string::npos);
  for (const auto& [text, part] :
       {std::pair{"hw.*\nfoo.*\n", ":2: 'foo.*'"}, std::pair{"# none\n", "no pattern"}}) {
    std::ofstream(root_ / "bad") << text;
    const auto bad = Selection::read((root_ / "bad").string());
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::kBadInput);
    EXPECT_NE(bad.error().message.find(part), std::string::npos) << bad.error().message;
  }
}

// Claim: what drivers call their counters falls into the groups of their manuals.
TEST(NetGroups, FollowTheDriversNames) {
  const auto text_of = [](std::string_view name) {
    const NetGroup group = group_of(name);
    return std::string(group.component) + "/" + std::string(group.kind);
  };
  EXPECT_EQ(text_of("rx_prio3_pause"), "priority/congestion");
  EXPECT_EQ(text_of("rx_vport_rdma_unicast_bytes"), "vport/traffic");
  EXPECT_EQ(text_of("rx_discards_phy"), "physical_port/error");
  EXPECT_EQ(text_of("tx12_tso_packets"), "ring/acceleration");
  EXPECT_EQ(text_of("tx_global_pause"), "global_pause/congestion");
  EXPECT_EQ(text_of("rx_ecn_mark"), "interface/congestion");
  EXPECT_EQ(text_of("rx_bytes"), "interface/traffic");
}

// Claim: the container of a process is found in the forms that runtimes write.
TEST(Containers, AreFoundInCgroups) {
  const std::string id = "4f9a1c2d3e4b5a6978879695a4b3c2d1e0f1a2b3c4d5e6f708192a3b4c5d6e7f";
  for (const std::string& text :
       {"0::/system.slice/docker-" + id + ".scope\n",
        "0::/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789012.slice/"
        "cri-containerd-" +
            id + ".scope\n",
        "12:memory:/docker/" + id + "\n"}) {
    EXPECT_EQ(container_in(text), id.substr(0, 12)) << text;
  }
  EXPECT_EQ(container_in("0::/user.slice/user-0.slice/session-3.scope\n"), "");
}

}  // namespace
}  // namespace greynic::rnic
