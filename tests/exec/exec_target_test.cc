#include "greynic/exec/exec_target.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "greynic/target/interrupt.h"

namespace greynic::exec {
namespace {

using target::MeasureRequest;

class ExecTarget : public ::testing::Test {
 protected:
  /// Writes a Python script and opens it as a target.
  std::unique_ptr<target::Target> open_script(const std::string& body,
                                              const std::string& prefix = "") {
    std::string name = (std::filesystem::temp_directory_path() / "greynic-exec-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file >= 0) ::close(file);
    scripts_.push_back(name);
    std::ofstream(name) << "import json, os, sys, time\n"
                           "def say(**answer): print(json.dumps(answer), flush=True)\n"
                        << body;
    return open_command(prefix + "exec python3 " + name);
  }
  static std::unique_ptr<target::Target> open_command(const std::string& command) {
    auto spec = target::parse_specs("exec:" + command);
    EXPECT_TRUE(spec);
    auto opened = kind().open(spec->front());
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  ~ExecTarget() override {
    for (const std::string& script : scripts_) std::filesystem::remove(script);
  }

  static std::vector<MeasureRequest> requests(int count) {
    std::vector<MeasureRequest> requests;
    for (int i = 0; i < count; ++i) {
      requests.push_back(
          {.configuration = {{"qp_count", static_cast<double>(i)}, {"my_own", std::string("x")}},
           .repeat = i % 2,
           .duration = std::chrono::milliseconds(250),
           .seed = 18446744073709551615ULL});
    }
    return requests;
  }

  /// Measures and sorts what comes by request.
  static std::vector<Observation> measure(target::Target& device,
                                          const std::vector<MeasureRequest>& requests) {
    std::vector<Observation> observations(requests.size());
    const auto done = device.measure(requests, [&](std::size_t index, Observation observation) {
      EXPECT_EQ(observations[index].outcome, Outcome::kNotRun) << "answered twice: " << index;
      observations[index] = std::move(observation);
      return true;
    });
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return observations;
  }

 private:
  std::vector<std::string> scripts_;
};

// Claim:  requests and answers look as DESIGN.md says, and every field arrives.
TEST_F(ExecTarget, SpeaksJsonLines) {
  auto device = open_script(
      "for line in sys.stdin:\n"
      "  assert line.startswith('{\"id\":'), line\n"
      "  r = json.loads(line)\n"
      "  assert r['configuration']['my_own'] == 'x' and r['seconds'] == 0.25\n"
      "  assert r['seed'] == 18446744073709551615\n"
      "  say(id=r['id'], bandwidth_gbps=91.2 + r['configuration']['qp_count'],\n"
      "      latency_us_p50=3.1, counters={'rx_bytes': 17})\n");
  const auto asked = requests(50);
  const auto got = measure(*device, asked);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].outcome, Outcome::kMeasured) << got[i].reason;
    EXPECT_DOUBLE_EQ(got[i].value("bandwidth_gbps").value(), 91.2 + static_cast<double>(i));
    EXPECT_EQ(got[i].value("latency_us_p50"), 3.1);
    EXPECT_EQ(got[i].counters_after.at("rx_bytes"), 17);
    EXPECT_EQ(got[i].asked, asked[i].configuration);
    EXPECT_EQ(got[i].repeat, asked[i].repeat);
    EXPECT_EQ(got[i].seed, asked[i].seed);
  }
}

// Claim:  answers may come in any order, also when the command first reads everything.
TEST_F(ExecTarget, TakesAnswersInAnyOrder) {
  auto device = open_script(
      "rs = [json.loads(sys.stdin.readline()) for _ in range(500)]\n"
      "for r in reversed(rs):\n"
      "  say(id=r['id'], bandwidth_gbps=r['configuration']['qp_count'])\n"
      "sys.stdin.readline()\n");
  const auto got = measure(*device, requests(500));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].value("bandwidth_gbps"), static_cast<double>(i));
  }
}

// Claim:  one process serves all calls of measure().
TEST_F(ExecTarget, KeepsTheCommandAlive) {
  auto device = open_script(
      "for line in sys.stdin: say(id=json.loads(line)['id'], pid_number=os.getpid())\n");
  const auto first = measure(*device, requests(2));
  const auto second = measure(*device, requests(2));
  EXPECT_TRUE(first[0].value("pid_number"));
  EXPECT_EQ(first[0].value("pid_number"), second[1].value("pid_number"));
}

// Claim:  what the device refuses is an outcome with its reason.
TEST_F(ExecTarget, KeepsRefusalsAsOutcomes) {
  auto device = open_script(
      "for line in sys.stdin:\n"
      "  i = json.loads(line)['id']\n"
      "  say(id=i, outcome=['refused', 'failed', 'timed_out', 'too_short'][i % 4], reason='R%d' % "
      "i)\n");
  const auto got = measure(*device, requests(4));
  EXPECT_EQ(got[0].outcome, Outcome::kFailed);
  EXPECT_EQ(got[1].outcome, Outcome::kTimedOut);
  EXPECT_EQ(got[2].outcome, Outcome::kTooShort);
  EXPECT_EQ(got[3].outcome, Outcome::kRefused);
  EXPECT_EQ(got[3].reason, "R4");
}

// Claim:  the command's exit is an outcome of what it still owes, and of nothing else.
TEST_F(ExecTarget, TurnsTheCommandsExitIntoOutcomes) {
  auto device = open_script(
      "for line in sys.stdin:\n"
      "  i = json.loads(line)['id']\n"
      "  if i == 4: sys.exit(7)\n"
      "  say(id=i, bandwidth_gbps=1)\n");
  const auto got = measure(*device, requests(6));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].outcome, Outcome::kMeasured);
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(got[i].outcome, Outcome::kFailed);
    EXPECT_NE(got[i].reason.find("status 7"), std::string::npos) << got[i].reason;
  }
  auto killed = open_script("os.kill(os.getpid(), 11)\n");
  EXPECT_NE(measure(*killed, requests(1))[0].reason.find("signal 11"), std::string::npos);
}

// Claim:  a line that cannot be understood becomes a failed outcome that names the line.
// Method: ten kinds of them, each in the place of one answer, between good answers.
TEST_F(ExecTarget, TurnsMalformedLinesIntoFailedOutcomes) {
  auto device = open_script(R"py(
bad = ['garbage', '[1]', '{"bandwidth_gbps":1}', '{"id":"x","bandwidth_gbps":1}', '{"id":%d',
       '{"id":%d,"bandwidth_gbps":"fast"}', '{"id":%d,"outcome":"great"}', '{"id":%d}',
       '{"id":%d,"bandwidth_gbps":NaN}', '{"id":%d,"bandwidth_gbps":1,"bandwidth_gbps":2}',
       '{"id":%d,"counters":[1],"bandwidth_gbps":1}', '{"id":%d,"outcome":"not_run"}']
for line in sys.stdin:
  i = json.loads(line)['id']
  if i % 2: say(id=i, bandwidth_gbps=1)
  else:
    text = bad[i // 2 - 1]
    print(text % i if '%' in text else text, flush=True)
)py");
  const auto got = measure(*device, requests(24));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(got[i].outcome, Outcome::kMeasured) << i << got[i].reason;
    } else {
      EXPECT_EQ(got[i].outcome, Outcome::kFailed) << i;
      EXPECT_NE(got[i].reason.find("line " + std::to_string(i + 1)), std::string::npos)
          << i << ": " << got[i].reason;
    }
  }
}

// Claim:  a stray print does not cost a request its true answer, nor does an answer to nothing.
TEST_F(ExecTarget, SurvivesChatter) {
  auto device = open_script(
      "print('hello, I am a tool', flush=True)\n"
      "say(id=99999, bandwidth_gbps=1)\n"
      "for line in sys.stdin:\n"
      "  print('measuring', flush=True)\n"
      "  say(id=json.loads(line)['id'], bandwidth_gbps=2)\n");
  for (const Observation& got : measure(*device, requests(5))) {
    EXPECT_EQ(got.outcome, Outcome::kMeasured) << got.reason;
  }
}

// Claim:  silence beyond the limit ends the command, and what it owes has timed out. (The limit is
//         long enough for a busy machine to start the command; ctest's own limit sees a hang.)
TEST_F(ExecTarget, TimesOut) {
  auto device = open_script(
      "say(id=json.loads(sys.stdin.readline())['id'], bandwidth_gbps=1)\n"
      "time.sleep(1000)\n",
      "timeout=3s ");
  const auto got = measure(*device, requests(3));
  EXPECT_EQ(got[0].outcome, Outcome::kMeasured);
  EXPECT_EQ(got[1].outcome, Outcome::kTimedOut);
  EXPECT_EQ(got[2].outcome, Outcome::kTimedOut);
  EXPECT_NE(got[1].reason.find("3 s"), std::string::npos) << got[1].reason;
}

// Claim:  no byte but an answer that is owed starts the clock again: blank lines, answers to
//         nothing, lines that are read but not answered.
TEST_F(ExecTarget, TimesOutWhateverElseIsPrinted) {
  for (const char* chatter :
       {"print(flush=True)", "say(id=99999, bandwidth_gbps=1)",
        "sys.stdout.write('x'); sys.stdout.flush()", "sys.stdin.readline()"}) {
    auto device = open_script(
        "say(id=json.loads(sys.stdin.readline())['id'], bandwidth_gbps=1)\n"
        "while True:\n"
        "  time.sleep(0.1)\n"
        "  " +
            std::string(chatter) + "\n",
        "timeout=3s ");
    auto asked = requests(3);
    if (std::string_view(chatter).starts_with("sys.stdin")) {
      asked = requests(2000);
      for (auto& request : asked) request.configuration.set("long", std::string(500, 'l'));
    }
    const auto got = measure(*device, asked);
    EXPECT_EQ(got[0].outcome, Outcome::kMeasured) << chatter << ": " << got[0].reason;
    EXPECT_EQ(got[1].outcome, Outcome::kTimedOut) << chatter << ": " << got[1].reason;
    EXPECT_EQ(got[2].outcome, Outcome::kTimedOut) << chatter << ": " << got[2].reason;
  }
}

// Claim:  a command that prints without end is ended after so many bytes, long before its time.
// Oracle: the limit of time is an hour, which ctest would not wait for.
TEST_F(ExecTarget, EndsWhoPrintsWithoutEnd) {
  for (const char* command : {"timeout=3600s exec yes ''", "timeout=3600s exec yes '{\"id\":77}'",
                              "timeout=3600s exec cat /dev/zero"}) {
    auto device = open_command(command);
    const auto got = measure(*device, requests(2));
    for (const Observation& one : got) {
      EXPECT_EQ(one.outcome, Outcome::kFailed) << command << ": " << one.reason;
    }
  }
}

// Claim:  what the command cannot swallow at once does not block: 2 MB of requests, read slowly.
TEST_F(ExecTarget, DoesNotBlockOnAFullPipe) {
  auto device = open_script(
      "for line in sys.stdin: say(id=json.loads(line)['id'], bandwidth_gbps=1, pad=0.5)\n");
  auto asked = requests(4000);
  for (auto& request : asked) request.configuration.set("long", std::string(500, 'l'));
  for (const Observation& got : measure(*device, asked)) {
    ASSERT_EQ(got.outcome, Outcome::kMeasured) << got.reason;
  }
}

// Claim:  a sink that wants no more ends measure(), and late answers do not disturb the next.
TEST_F(ExecTarget, StopsWhenTheSinkSaysSo) {
  auto device = open_script(
      "for line in sys.stdin:\n"
      "  r = json.loads(line)\n"
      "  say(id=r['id'], bandwidth_gbps=r['configuration']['qp_count'])\n");
  int seen = 0;
  const auto asked = requests(100);
  ASSERT_TRUE(device->measure(asked, [&](std::size_t, const Observation&) { return ++seen < 3; }));
  EXPECT_EQ(seen, 3);
  const auto got = measure(*device, requests(7));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].value("bandwidth_gbps"), static_cast<double>(i));
  }
}

// Claim:  Ctrl-C while the command thinks ends measure() at once.
TEST_F(ExecTarget, CanBeInterrupted) {
  auto device = open_script("time.sleep(1000)\n");
  const target::InterruptGuard guard;
  ::raise(SIGINT);
  const auto asked = requests(1);
  const auto done = device->measure(asked, [](std::size_t, const Observation&) { return true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
}

// Claim:  a command that is not there is a missing program, not a device's failure.
TEST_F(ExecTarget, SaysWhenThereIsNoCommand) {
  auto device = open_command("/nowhere/measure.sh");
  const auto asked = requests(1);
  const auto done = device->measure(asked, [](std::size_t, const Observation&) { return true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(exit_code(done.error().code), 3);
  EXPECT_NE(done.error().message.find("/nowhere/measure.sh"), std::string::npos);
  EXPECT_FALSE(kind().open(target::parse_specs("exec:  ")->front()));
  EXPECT_FALSE(kind().open(target::parse_specs("exec:timeout=30 true")->front()));
}

}  // namespace
}  // namespace greynic::exec
