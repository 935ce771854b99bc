#pragma once

/// The broker's core without a network: over a device that takes what is posted, and with one peer
/// that answers each call with the same words, so that its lanes come up.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "application.h"
#include "fuzz.h"

namespace greynic::fuzz {

/// Completes nothing before it is told to. It knows what is registered, as an RNIC does.
class SilentDevice final : public broker::Device {
 public:
  bool has_immediate() const override { return immediate; }
  Result<broker::Memory> register_memory(std::span<std::byte> memory, broker::Access) override {
    registered_[++key_] = memory;
    return broker::Memory{reinterpret_cast<std::uint64_t>(memory.data()), key_, key_};
  }
  void deregister(const broker::Memory& memory) override {
    for (const Posted& one : posted) {
      claim(one.keys[0] != memory.local_key && one.keys[1] != memory.local_key,
            "memory stays registered while requests on it are under way");
    }
    claim(registered_.erase(memory.local_key) == 1,
          "memory that was registered is given back once");
  }
  std::uint32_t mtu_bytes() const override { return 4096; }
  Result<broker::QpNumber> create_qp(Transport, std::uint32_t, std::uint32_t) override {
    return ++qp;
  }
  broker::QpAddress address_of(broker::QpNumber) const override { return {}; }
  Result<void> connect(broker::QpNumber, const broker::QpAddress&) override { return {}; }
  void to_error(broker::QpNumber at) override { failed.push_back(at); }
  void destroy(broker::QpNumber at) override {
    std::erase(failed, at);
    std::erase_if(posted, [&](const Posted& one) { return one.completion.qp == at; });
  }
  std::size_t post(broker::QpNumber at, std::span<const broker::Work> list) override {
    if (has_failed(at)) return 0;
    for (const broker::Work& work : list) {
      Posted one{.completion = {.id = work.id, .qp = at}, .keys = {}};
      for (std::size_t i = 0; i < work.piece_count; ++i) {
        claim(is_registered(work.pieces[i]), "what is posted lies in registered memory");
        one.keys[i] = work.pieces[i].local_key;
      }
      posted.push_back(one);
    }
    return list.size();
  }
  std::size_t post_receives(std::span<const std::uint64_t> ids,
                            std::span<const broker::Piece> buffers, broker::QpNumber) override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      claim(is_registered(buffers[i]), "a receive lies in registered memory");
      receives.emplace_back(ids[i], buffers[i]);
    }
    return ids.size();
  }
  [[nodiscard]] bool has_failed(broker::QpNumber at) const {
    return std::find(failed.begin(), failed.end(), at) != failed.end();
  }

  struct Posted {
    broker::Completion completion;
    std::array<std::uint32_t, 2> keys;
  };
  bool immediate = true;
  broker::QpNumber qp = 0;  ///< the one made last
  std::vector<Posted> posted;
  std::vector<broker::QpNumber> failed;
  std::vector<std::pair<std::uint64_t, broker::Piece>> receives;

 private:
  [[nodiscard]] bool is_registered(const broker::Piece& piece) const {
    const auto found = registered_.find(piece.local_key);
    if (found == registered_.end()) return false;
    const auto begin = reinterpret_cast<std::uint64_t>(found->second.data());
    return piece.address >= begin && piece.bytes <= found->second.size() &&
           piece.address - begin <= found->second.size() - piece.bytes;
  }
  std::uint32_t key_ = 0;
  std::map<std::uint32_t, std::span<std::byte>> registered_;
};

class SilentOwner final : public broker::Owner {
 public:
  void on_incoming(broker::AppId, std::uint16_t port, broker::VirtualQpn number) override {
    if (app != nullptr) app->on_incoming(port, number, Transport::kRC, {});
  }
  void on_open(broker::AppId, broker::VirtualQpn number) override {
    if (app != nullptr) app->on_open(number);
  }
  void on_received(broker::AppId, broker::VirtualQpn number, std::uint64_t total) override {
    if (app != nullptr) app->on_received(number, total);
  }
  void on_sent(broker::AppId, broker::VirtualQpn number, std::uint64_t total) override {
    if (app != nullptr) app->on_sent(number, total);
  }
  void on_transferred(broker::AppId, broker::VirtualQpn, std::uint64_t) override {}
  void on_finished(broker::AppId, broker::VirtualQpn number) override {
    if (app != nullptr) app->on_finished(number);
  }
  void on_closed(broker::AppId, broker::VirtualQpn number, int error) override {
    if (app != nullptr) app->on_closed(number, error);
  }
  void on_returned(broker::AppId, std::uint32_t region) override { returned.push_back(region); }
  void on_detached(broker::AppId) override {}
  void call_peer(broker::PeerId, std::vector<std::byte> bytes) override { calls.push_back(bytes); }
  void on_peer_broken(broker::PeerId, const char* reason) override { broken = reason; }

  broker::Application* app = nullptr;
  std::vector<std::uint32_t> returned;
  std::vector<std::vector<std::byte>> calls;
  std::string broken;
};

struct LoneCore {
  SilentDevice device;
  SilentOwner owner;
  std::unique_ptr<broker::Core> core;

  explicit LoneCore(bool immediate) {
    device.immediate = immediate;
    broker::CoreOptions options;
    options.receive_credits = 32;
    core = std::move(*broker::Core::create(device, owner, options));
    (void)core->add_peer(1);
    answer_calls();
    core->flush();
  }
  void answer_calls() {
    while (!owner.calls.empty()) {
      for (const auto& call : std::exchange(owner.calls, {})) core->on_peer_call(1, call);
    }
  }
  /// All that is posted is done, or flushed where a QP has failed, which is then made anew.
  void complete() {
    while (!device.posted.empty()) {
      std::vector<broker::Completion> list;
      for (const auto& one : std::exchange(device.posted, {})) {
        list.push_back(one.completion);
        if (device.has_failed(one.completion.qp)) list.back().status = broker::Status::kFlushed;
      }
      core->on_completions(list);
      core->flush();
    }
    for (const broker::QpNumber qp : std::vector(device.failed)) core->on_drained(qp);
    answer_calls();
    core->flush();
  }
  /// Lays bytes into a receive, the one posted first or last, and tells of it as `one` says. False:
  /// there is none.
  bool receive(std::span<const std::byte> bytes, broker::Completion one, bool last = false) {
    if (device.receives.empty()) return false;
    const auto next = last ? device.receives.end() - 1 : device.receives.begin();
    const auto [id, piece] = *next;
    device.receives.erase(next);
    std::memcpy(reinterpret_cast<void*>(piece.address), bytes.data(), bytes.size());
    one.id = id;
    one.is_receive = true;
    one.bytes = static_cast<std::uint32_t>(bytes.size());
    one.has_immediate = device.immediate;
    core->on_completions(std::span(&one, 1));
    core->flush();
    return true;
  }
};

}  // namespace greynic::fuzz
