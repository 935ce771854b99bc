/// Readers of what people write for twins, tracing and monitoring, and of a driver's own journal.

#include "common/journal.h"
#include "conversation.h"
#include "fleet/fleet.h"
#include "fuzz.h"
#include "greynic/core/text.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/twin/bursts.h"
#include "parameters/parameters.h"
#include "switch/switch_parameters.h"
#ifdef GREYNIC_FUZZ_TRACE
#include "greynic/trace/rules.h"
#endif
#ifdef GREYNIC_FUZZ_TRACE_HOSTS
#include "greynic/trace_hosts/collector.h"
#endif

namespace greynic::fuzz {
namespace {

Target hosts() {
  return {"zero_hosts",
          {tree_file("configs/examples/zero_hosts.json"),
           R"({"version":1,"hosts":[{"name":"a","agent":"/run/a","classes":["tidal"],)"
           R"("interval":"5ms"},{"name":"b","pid":7,"priority":"low"}]})"},
          [](std::string_view text) {
            const auto read = monitor::read_hosts(file_of(text, "hosts.json"));
            claim_sound(read);
            if (!read) return;
            for (const auto& host : *read) {
              claim(host.interval >= std::chrono::milliseconds(1), "an interval has a length");
              claim(!bad_utf8(host.name), "a name is text");
            }
          }};
}

Target burst_workload() {
  return {"burst_workload",
          {tree_file("configs/examples/burst_incast.json"),
           R"({"version":1,"hosts":4,"hosts_per_leaf":2,"spines":1,"duration_us":50,"traffic":[)"
           R"({"kind":"on_off","shape":"cache","to":3},)"
           R"({"kind":"trains","to":0,"senders":2,"message_bytes":65536,"every_us":10}]})"},
          [](std::string_view text) {
            const auto read = twin::read_burst_workload(file_of(text, "bursts.json"), "cx6", 2000);
            claim_sound(read);
            if (!read) return;
            twin::Time last = 0;
            for (const twin::TimedMessage& message : read->messages) {
              claim(message.from < read->fabric.host_count && message.to < read->fabric.host_count,
                    "messages go from host to host");
              claim(message.from != message.to && message.bytes > 0, "a message goes somewhere");
              claim(message.at >= last && message.at <= read->duration, "messages are in order");
              last = message.at;
            }
          }};
}

template <typename Read>
Target model_file(const char* name, const std::string& seed, Read read) {
  return {name, {tree_file(seed)}, [read](std::string_view text) {
            claim_sound(read(file_of(text, "model.json")));
          }};
}

Target journal() {
  return {"journal",
          {R"({"version":1,"finished":false,"original":"{}","before":"{}"})"},
          [](std::string_view text) {
            (void)file_of(text, "tc_eth0.journal.json");
            claim_sound(flows::Journal::on_disk("tc:eth0", folder()).read());
          }};
}

/// What a command says of three requests.
Target exec_answers() {
  return {"exec_answers",
          {"{\"id\":1,\"bandwidth_gbps\":91.2,\"latency_us_p50\":3.1,\"counters\":{\"rx\":17}}\n"
           "{\"id\":3,\"outcome\":\"refused\",\"reason\":\"no such mode\"}\n",
           "{\"id\":2,\"latency_ns_buckets\":[[3100,7]],\"configuration\":{\"qp_count\":2}}\nx\n"},
          [](std::string_view text) {
            std::vector<target::MeasureRequest> requests(3);
            for (std::size_t i = 0; i < requests.size(); ++i) {
              requests[i].configuration = {{"qp_count", static_cast<double>(i)}};
            }
            std::vector<int> told(requests.size());
            const auto take = [&](std::size_t index, const Observation& observation) {
              ++told.at(index);
              claim_sound(observation);
              return true;
            };
            exec::Conversation conversation;
            conversation.begin();
            conversation.ask(requests, {{"host", "h"}});
            std::string lines;
            while (conversation.next_request(lines)) continue;
            for (std::size_t at = 0; at < text.size();) {
              const std::size_t end = std::min(text.find('\n', at), text.size());
              (void)conversation.answer(text.substr(at, end - at), take);
              at = end + 1;
            }
            conversation.settle_malformed(take);
            conversation.give_up(Outcome::kTimedOut, "no answer", take);
            claim(told == std::vector<int>{1, 1, 1}, "each request has one outcome");
          }};
}

#ifdef GREYNIC_FUZZ_TRACE
Target trace_rules() {
  return {"trace_rules",
          {tree_file("configs/trace/vxlan.json"), tree_file("configs/trace/soft_roce.json"),
           R"({"version":1,"cpu_budget":"5%","slow":"100us","rules":[{"name":"a","match":{)"
           R"("source":"10.0.0.0/8","destination":"fe80::1","protocol":"udp","port":"1-9"},)"
           R"("points":["c/eth0"],"sample":10,"flow":"hosts"}]})"},
          [](std::string_view text) {
            const auto read = trace::parse_rules(text, "input");
            claim_sound(read);
            if (!read) return;
            for (const auto& rule : read->rules) {
              for (const auto& ports : {rule.match.source_port, rule.match.destination_port}) {
                claim(ports.first <= ports.second, "a range of ports holds one");
              }
            }
          }};
}
#endif

}  // namespace

std::vector<Target> input_targets() {
  std::vector<Target> targets = {
      hosts(),
      burst_workload(),
      model_file("rnic", "configs/rnics/cx6.json",
                 [](const std::string& path) { return twin::load_model(path, ""); }),
      model_file("switch", "configs/switches/ovs.json", &twin::load_switch),
      model_file("fleet", "configs/fleets/cloud.json", &twin::load_fleet),
      journal()};
#ifdef GREYNIC_FUZZ_TRACE
  targets.push_back(trace_rules());
#endif
#ifdef GREYNIC_FUZZ_TRACE_HOSTS
  targets.push_back(
      {"trace_hosts",
       {R"({"version":1,"certificates":"lab","hosts":[{"name":"a","agent":"10.0.0.7:18700"},)"
        R"({"name":"b","agent":"[fe80::1]:9"}]})"},
       [](std::string_view text) {
         claim_sound(trace_hosts::read_hosts(file_of(text, "trace_hosts.json")));
       }});
#endif
  for (Target& target : targets) {
    target.read = [read = std::move(target.read)](std::string_view text) {
      if (!bad_utf8(text)) read(text);
    };
  }
  targets.push_back(exec_answers());
  return targets;
}

}  // namespace greynic::fuzz
