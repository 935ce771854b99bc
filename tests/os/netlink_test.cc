#include "greynic/os/netlink.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "greynic/os/network_namespace.h"
#include "netlink_answers.h"

namespace greynic::os {
namespace {

/// An acknowledgement as the kernel sends it, with words of its own when there are any.
std::vector<std::uint8_t> acknowledgement(std::uint32_t sequence, int error,
                                          const std::string& words = "") {
  std::vector<std::uint8_t> bytes(sizeof(nlmsghdr) + sizeof(nlmsgerr));
  if (!words.empty()) {
    const nlattr attribute = {static_cast<std::uint16_t>(sizeof(nlattr) + words.size() + 1),
                              NLMSGERR_ATTR_MSG};
    const auto* from = reinterpret_cast<const std::uint8_t*>(&attribute);
    bytes.insert(bytes.end(), from, from + sizeof attribute);
    bytes.insert(bytes.end(), words.begin(), words.end());
    do bytes.push_back(0);
    while (bytes.size() % 4 != 0);
  }
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(bytes.size());
  header.nlmsg_type = NLMSG_ERROR;
  header.nlmsg_flags = NLM_F_CAPPED | (words.empty() ? 0 : NLM_F_ACK_TLVS);
  header.nlmsg_seq = sequence;
  nlmsgerr answer{};
  answer.error = -error;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &answer, sizeof answer);
  return bytes;
}

// Claim:  whatever the kernel refuses a request for, the refusal carries that request's own index.
// Oracle: the index at which the refusal was planted.
// Method: each kind of error at each place of a batch, some with the kernel's own words.
TEST(BatchAnswers, NamesTheRequestThatWasRefused) {
  constexpr std::uint32_t kFirst = 41;
  constexpr std::uint32_t kRequests = 7;
  for (const int error : {EPERM, EINVAL, EOPNOTSUPP, ENOSPC, EEXIST, ENOENT}) {
    for (std::uint32_t at = 0; at < kRequests; ++at) {
      BatchAnswers answers(kFirst, kRequests);
      for (std::uint32_t i = 0; i < kRequests; ++i) {
        EXPECT_FALSE(answers.complete());
        const std::string words = i == at && at % 2 == 1 ? "no such key" : "";
        answers.take(acknowledgement(kFirst + i, i == at ? error : 0, words));
      }
      ASSERT_TRUE(answers.complete());
      ASSERT_TRUE(answers.refusal().has_value());
      EXPECT_EQ(answers.refusal()->index, at) << std::strerror(error);
      const Error& told = answers.refusal()->error;
      EXPECT_EQ(told.code, error == EPERM ? ErrorCode::kMissing : ErrorCode::kRefused);
      EXPECT_NE(told.message.find(std::strerror(error)), std::string::npos) << told.message;
      EXPECT_EQ(told.message.find("(no such key)") != std::string::npos, at % 2 == 1);
      EXPECT_EQ(told.message.find("CAP_NET_ADMIN") != std::string::npos, error == EPERM);
    }
  }
}

// Claim:  of several refusals in a batch the first is told; answers to earlier batches are not
//         taken for this one's.
TEST(BatchAnswers, TellsTheFirstRefusal) {
  BatchAnswers answers(10, 3);
  answers.take(acknowledgement(9, EPERM));
  EXPECT_FALSE(answers.complete());
  std::vector<std::uint8_t> together = acknowledgement(10, 0);
  for (const auto& next : {acknowledgement(11, ENOSPC), acknowledgement(12, EINVAL)}) {
    together.insert(together.end(), next.begin(), next.end());
  }
  answers.take(together);
  ASSERT_TRUE(answers.complete());
  EXPECT_EQ(answers.refusal()->index, 1U);
  EXPECT_NE(answers.refusal()->error.message.find(std::strerror(ENOSPC)), std::string::npos);
}

// Claim:  messages keep attributes, nested ones too, as the kernel reads them.
TEST(NetlinkMessage, NestsAttributes) {
  NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE, ifinfomsg{});
  message.put_text(IFLA_IFNAME, "abcd");
  const std::size_t outer = message.open(IFLA_LINKINFO);
  message.put_value(7, std::uint16_t{513});
  const std::size_t inner = message.open(IFLA_INFO_DATA);
  message.append(std::uint32_t{99});
  message.close(inner);
  message.close(outer);
  std::string name;
  std::uint64_t number = 0;
  std::uint64_t deep = 0;
  each_attribute(message.bytes().subspan(sizeof(nlmsghdr) + sizeof(ifinfomsg)),
                 [&](std::uint16_t type, ByteView value) {
                   if (type == IFLA_IFNAME) name.assign(value.begin(), value.end() - 1);
                   if (type != IFLA_LINKINFO) return;
                   each_attribute(value, [&](std::uint16_t in, ByteView content) {
                     if (in == 7) number = native_number(content);
                     if (in == IFLA_INFO_DATA) deep = native_number(content);
                   });
                 });
  EXPECT_EQ(name, "abcd");
  EXPECT_EQ(number, 513U);
  EXPECT_EQ(deep, 99U);
  nlmsghdr header{};
  std::memcpy(&header, message.bytes().data(), sizeof header);
  EXPECT_EQ(header.nlmsg_len, message.bytes().size());
}

// Claim:  the running kernel's refusal of one message of several batches names that message.
// Oracle: the place of the one message that asks for what cannot be.
// Method: addresses for the loopback of a namespace of its own; one is for no interface.
TEST(NetlinkSocket, NamesTheMessageThatTheKernelRefused) {
  const auto place = NetworkNamespace::create();
  if (!place) GTEST_SKIP() << place.error().message;
  ASSERT_TRUE(place->inside([] {
    auto socket = NetlinkSocket::create();
    ASSERT_TRUE(socket) << socket.error().message;
    const auto found = links(*socket);
    ASSERT_TRUE(found) << found.error().message;
    const auto add_route = [&](std::size_t count, std::size_t bad) {
      std::vector<NetlinkMessage> messages;
      for (std::size_t i = 0; i < count; ++i) {
        ifaddrmsg header{};
        header.ifa_family = AF_INET;
        header.ifa_prefixlen = 32;
        header.ifa_index = i == bad ? 9999U : static_cast<unsigned>(found->at("lo"));
        NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, header);
        const auto address = static_cast<std::uint32_t>(0x0100007f + (i << 16U));
        message.put_value(IFA_LOCAL, address);
        messages.push_back(std::move(message));
      }
      return messages;
    };
    for (const std::size_t bad : {0U, 5U, 63U, 64U, 150U}) {
      auto messages = add_route(200, bad);
      std::size_t refused = 12345;
      const auto sent = socket->send(messages, &refused);
      ASSERT_FALSE(sent);
      EXPECT_EQ(refused, bad) << sent.error().message;
    }
  }));
}

// Claim:  one thing is asked for and answered without a list, and what is not there is refused with
//         the kernel's words; the socket serves further questions after both.
// Oracle: every machine has the interface "lo", whose number is 1.
TEST(NetlinkSocket, AsksAboutOneThing) {
  auto socket = NetlinkSocket::create();
  if (!socket) GTEST_SKIP() << socket.error().message;
  const auto ask_for = [&](int index) {
    ifinfomsg link{};
    link.ifi_index = index;
    return socket->ask(NetlinkMessage(RTM_GETLINK, 0, link));
  };
  const auto missing = ask_for(999'999);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kRefused);
  EXPECT_NE(missing.error().message.find("No such device"), std::string::npos);
  const auto answers = ask_for(1);
  ASSERT_TRUE(answers.has_value()) << answers.error().message;
  ASSERT_EQ(answers->size(), 1U);
  std::string name;
  each_attribute(ByteView(answers->front().payload).subspan(sizeof(ifinfomsg)),
                 [&](std::uint16_t type, ByteView value) {
                   if (type == IFLA_IFNAME) name = text_of(value);
                 });
  EXPECT_EQ(name, "lo");
}

}  // namespace
}  // namespace greynic::os
