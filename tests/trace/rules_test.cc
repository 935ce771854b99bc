#include "greynic/trace/rules.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "discovery/places.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace {
namespace {

/// A host with a bridge, and a container of one address behind a veth.
Topology small_topology() {
  Topology made;
  made.places = {{.inode = 1, .name = "host", .containers = {"host"}, .runtime = "host"},
                 {.inode = 2, .name = "web", .containers = {"web", "0123456789ab"}}};
  made.devices = {{.place = 0, .index = 2, .name = "port", .kind = "veth"},
                  {.place = 0, .index = 3, .name = "br0", .kind = "bridge"},
                  {.place = 1, .index = 2, .name = "eth0", .kind = "veth"}};
  made.devices[2].addresses = {parse_prefix("10.0.0.2")->address};
  return made;
}

Result<Plan> planned(const std::string& rule) {
  const auto rules = parse_rules(R"({"version":1,"rules":[)" + rule + "]}", "rules.json");
  if (!rules) return pass_on(rules);
  return make_plan(*rules, small_topology());
}

std::string refused(const std::string& rule) {
  const auto plan = planned(rule);
  return plan ? "" : plan.error().message;
}

TEST(TraceRules, NameTheFileAndThePlaceOfWhatIsNotThere) {
  EXPECT_EQ(refused(R"({"points":[{"device":"host/nothing"}]})")
                .find("rules.json: at /rules/0/points/0/device"),
            0U);
  EXPECT_NE(refused(R"({"match":{"container":"mail"}})").find("/rules/0/match/container"),
            std::string::npos);
  EXPECT_NE(refused(R"({"points":[{"hook":"no_such_hook"}]})").find("/rules/0/points/0/hook"),
            std::string::npos);
  EXPECT_NE(refused(R"({"match":{"source":"10.0.0.0/33"}})").find("/rules/0/match/source"),
            std::string::npos);
  EXPECT_NE(refused(R"({"match":{"port":"9-3"}})").find("/rules/0/match/port"), std::string::npos);
  EXPECT_NE(refused(R"({"nonsense":1})").find("nonsense"), std::string::npos);
  EXPECT_NE(refused(R"({"name":"a"},{"name":"a"})").find("/rules/1/name"), std::string::npos);
}

// Claim:  what greynic ships are rules, and each fits a host with a container.
TEST(TraceRules, Templates) {
  std::size_t templates = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(GREYNIC_SOURCE_DIR "/configs/trace")) {
    const auto rules = read_rules(file.path());
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_TRUE(make_plan(*rules, small_topology())) << file.path();
    EXPECT_FALSE(rules->rules.empty()) << file.path();
    ++templates;
  }
  EXPECT_EQ(templates, 5U);
}

// Claim:  a window is open from `after` on, for as long as it says, and none is always open. Agents that put
//         rules in force once more, later, keep its end.
TEST(TraceRules, HaveAWindow) {
  using std::chrono::seconds;
  const auto window = [](const std::string& text) {
    return parse_rules(R"({"version":1,"rules":[],"window":)" + text + "}", "rules.json");
  };
  const Window both = window(R"({"after":"10s","for":"1min"})")->window;
  for (const int second : {0, 9, 70, 1000}) EXPECT_FALSE(both.open(seconds(second))) << second;
  for (const int second : {10, 69}) EXPECT_TRUE(both.open(seconds(second))) << second;
  EXPECT_TRUE(Window().open(seconds(0)) && !Window().over(std::chrono::hours(9)));
  EXPECT_FALSE(window(R"({"after":"10s"})")->window.over(std::chrono::hours(9)));
  for (int by = 0; by < 90; by += 5) {
    const Window later = both.later(seconds(by));
    for (int second = by; second < 90; second += 5) {
      EXPECT_EQ(later.open(seconds(second - by)), both.open(seconds(second))) << by << second;
      EXPECT_EQ(later.over(seconds(second - by)), both.over(seconds(second))) << by << second;
    }
  }
  for (const char* wrong : {R"({"after":"10"})", R"({"for":"soon"})", R"({"for":"99999999s"})"}) {
    const auto refused = window(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message.find("rules.json: at /window/"), 0U)
        << refused.error().message;
  }
  EXPECT_FALSE(window("{}"));
}

// Claim:  "either side" becomes both ways to fulfil it, and contradictions become none.
TEST(TraceRules, UnfoldIntoWhatTheKernelMatches) {
  EXPECT_EQ(planned("{}")->matches.size(), 1U);
  EXPECT_EQ(planned(R"({"match":{"port":80}})")->matches.size(), 2U);
  EXPECT_EQ(planned(R"({"match":{"port":80,"address":"10.0.0.0/8"}})")->matches.size(), 4U);
  EXPECT_EQ(planned(R"({"match":{"container":"0123456789ab"}})")->matches.size(), 2U);
  // The container is the source, so the other address is not in 10.0.0.0/8's complement: one way.
  EXPECT_EQ(planned(R"({"match":{"container":"web","source":"192.168.0.0/16"}})")->matches.size(),
            1U);
  EXPECT_EQ(
      planned(R"({"match":{"source":"10.0.0.0/8","address":"10.0.0.2"}})")->matches[0].source.bits,
      128);
}

TEST(TraceRules, SelectPointsByDeviceAndDirection) {
  const auto plan = planned(R"({"points":[{"device":"port","direction":"receive"},
                                          {"device":"web/*","direction":"queue"}]})");
  ASSERT_TRUE(plan) << plan.error().message;
  using Bits = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(plan->points, (std::vector<Bits>{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(planned(R"({"points":[{"hook":"net_dev_queue"}]})")->points,
            (std::vector<Bits>{{0, 1}, {0, 1}, {0, 1}}));
}

// Claim:  containers are named by the cgroup of a process, whatever started them.
TEST(TraceContainers, AreNamedByTheirCgroups) {
  const std::string id(64, 'a');
  const auto named = [](const std::string& path) {
    const ContainerName found = container_of("0::" + path + "\n");
    return found.names.empty() ? "" : found.runtime + " " + found.names[0];
  };
  EXPECT_EQ(named("/system.slice/docker-" + id + ".scope"), "docker aaaaaaaaaaaa");
  EXPECT_EQ(named("/docker/" + id), "docker aaaaaaaaaaaa");
  EXPECT_EQ(named("/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope"),
            "containerd aaaaaaaaaaaa");
  EXPECT_EQ(named("/kubepods.slice/crio-" + id + ".scope"), "cri-o aaaaaaaaaaaa");
  EXPECT_EQ(named("/machine.slice/systemd-nspawn@mail.service"), "nspawn mail");
  EXPECT_EQ(named("/machine.slice/machine-mail.scope"), "nspawn mail");
  EXPECT_EQ(named("/system.slice/ssh.service"), "");
  // The group: as far as the container's own part; of a pod, the pod.
  const auto group = [](const std::string& lines) { return container_of(lines).cgroup; };
  EXPECT_EQ(group("9:memory:/docker/" + id + "/init\n0::/\n"), "/docker/" + id);
  EXPECT_EQ(group("0::/system.slice/docker-" + id + ".scope/a/b\n"),
            "/system.slice/docker-" + id + ".scope");
  EXPECT_EQ(group("0::/kubepods.slice/pod1.slice/cri-containerd-" + id + ".scope\n"),
            "/kubepods.slice/pod1.slice");
}

// Claim:  a quantile is off by half a bucket at most, and a bucket is 1/16 of its value at most.
TEST(TraceDelays, AreKnownToASixteenth) {
  for (std::size_t bucket = 0; bucket < 544; ++bucket) {
    const auto [first, behind] = DelayHistogram::bounds(bucket);
    EXPECT_EQ(DelayHistogram::bounds(bucket + 1).first, behind);
    EXPECT_LE(static_cast<double>(behind - first), std::max(1.0, static_cast<double>(first) / 16));
  }
  DelayHistogram delays;
  delays.add(5, 98);
  delays.add(100, 2);
  EXPECT_EQ(delays.quantile_ns(0.5), 5.0);
  EXPECT_GE(delays.quantile_ns(0.99), static_cast<double>(DelayHistogram::bounds(100).first));
  EXPECT_EQ(DelayHistogram().quantile_ns(0.5), 0.0);
}

}  // namespace
}  // namespace greynic::trace
