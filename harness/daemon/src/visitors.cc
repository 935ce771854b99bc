#include "visitors.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace greynic::daemon {
namespace {

template <typename Count>
void lower(std::map<std::string, Count>& counts, const std::string& key) {
  const auto found = counts.find(key);
  if (--found->second == 0) counts.erase(found);
}

template <typename Count>
std::size_t count_at(const std::map<std::string, Count>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

/// The key with the largest count; counts is not empty.
std::string largest(const std::map<std::string, std::size_t>& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

void Visitors::cut_all() {
  while (!book_.empty()) remove(book_.begin(), false);
}

std::size_t& Visitors::count_of(Stage stage) {
  if (stage == Stage::kSilent) return counts_.silent;
  return stage == Stage::kStranger ? counts_.strangers : counts_.guests;
}

std::uint64_t Visitors::add(Visitor visitor) {
  ++counts_.accepted;
  ++count_of(visitor.stage);
  ++waiting_of_[visitor.address];
  by_peer_[visitor.peer] = ++last_number_;
  book_.emplace(last_number_, std::move(visitor));
  return last_number_;
}

Visitors::Visitor* Visitors::find(std::uint64_t number) {
  const auto found = book_.find(number);
  return found == book_.end() ? nullptr : &found->second;
}

const Visitors::Visitor* Visitors::find(const std::string& peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : &book_.at(found->second);
}

Visitors::Book::iterator Visitors::oldest_waiting(std::string address) {
  if (address.empty() && !waiting_of_.empty()) address = largest(waiting_of_);
  auto stranger = book_.end();
  for (auto entry = book_.begin(); entry != book_.end(); ++entry) {
    const Visitor& visitor = entry->second;
    if (visitor.address != address) continue;
    if (visitor.stage == Stage::kSilent) return entry;
    if (visitor.stage == Stage::kStranger && stranger == book_.end()) stranger = entry;
  }
  return stranger;
}

void Visitors::make_room(const std::string& address) {
  while (count_at(waiting_of_, address) >= limits_.waiting_of_one) {
    remove(oldest_waiting(address), true);
  }
  while (waiting() >= limits_.waiting) remove(oldest_waiting({}), true);
}

bool Visitors::cut_one() {
  const auto found = oldest_waiting({});
  if (found == book_.end()) return false;
  remove(found, true);
  return true;
}

Visitors::Visitor& Visitors::make_stranger(std::uint64_t number) {
  --counts_.silent;
  ++counts_.strangers;
  Visitor& visitor = book_.at(number);
  visitor.stage = Stage::kStranger;
  return visitor;
}

int Visitors::hand_on(std::uint64_t number, int duplicate) {
  return std::exchange(make_stranger(number).socket, duplicate);
}

void Visitors::hand_on(std::uint64_t number, std::unique_ptr<Relay> relay) {
  make_stranger(number).relay = std::move(relay);
}

bool Visitors::counts_bytes() const {
  return limits_.bytes_a_proof != UINT64_MAX || limits_.bytes_a_proof_of_all != UINT64_MAX;
}

void Visitors::carry(std::uint64_t number, Relay::End end, std::uint32_t events) {
  const auto entry = book_.find(number);
  if (entry == book_.end()) return;  // cut in the same turn
  Visitor& visitor = entry->second;
  const std::uint64_t own = limits_.bytes_a_proof - visitor.unproven;
  const std::uint64_t left = std::min(own, limits_.bytes_a_proof_of_all - unproven_);
  std::uint64_t carried = 0;
  const Relay::Went went = visitor.relay->carry(end, events, left, carried);
  visitor.unproven += carried;
  unproven_ += carried;
  if (went == Relay::Went::kOn) return;
  if (went == Relay::Went::kEnded || own == 0) return remove(entry, went != Relay::Went::kEnded);
  remove(std::max_element(
             book_.begin(), book_.end(),
             [](const auto& a, const auto& b) { return a.second.unproven < b.second.unproven; }),
         true);
}

bool Visitors::make_guest(const std::string& peer) {
  const auto number = by_peer_.find(peer);
  if (number == by_peer_.end()) return false;  // it has ended meanwhile
  const auto entry = book_.find(number->second);
  Visitor& visitor = entry->second;
  unproven_ -= std::exchange(visitor.unproven, 0);
  if (visitor.stage == Stage::kGuest) return true;
  if (counts_.guests >= limits_.guests ||
      count_at(guests_of_, visitor.address) >= limits_.guests_of_one) {
    remove(entry, true);
    return false;
  }
  --count_of(visitor.stage);
  lower(waiting_of_, visitor.address);
  visitor.stage = Stage::kGuest;
  ++counts_.guests;
  ++guests_of_[visitor.address];
  return true;
}

void Visitors::forget(std::uint64_t number) {
  if (const auto found = book_.find(number); found != book_.end()) remove(found, false);
}

void Visitors::cut(const std::string& peer) {
  const auto number = by_peer_.find(peer);
  if (number != by_peer_.end()) remove(book_.find(number->second), true);
}

void Visitors::cut_late(Clock::time_point now) {
  for (auto entry = book_.begin(); entry != book_.end();) {
    const auto current = entry++;
    const bool late = current->second.stage != Stage::kGuest &&
                      now - current->second.since > limits_.prove_within;
    if (late) remove(current, true);
  }
}

void Visitors::remove(Book::iterator entry, bool by_us) {
  Visitor& visitor = entry->second;
  unproven_ -= visitor.unproven;
  visitor.relay.reset();  // before its socket closes
  --count_of(visitor.stage);
  lower(visitor.stage == Stage::kGuest ? guests_of_ : waiting_of_, visitor.address);
  if (by_us) {
    ++counts_.cut;
    constexpr std::size_t kMostNames = 1000;
    if (cut_of_.size() < kMostNames) ++cut_of_[visitor.address];
  }
  // The duplicate of a socket that was handed on: its new owner sees the connection end.
  shutdown(visitor.socket, SHUT_RDWR);
  close(visitor.socket);
  if (const auto found = by_peer_.find(visitor.peer);
      found != by_peer_.end() && found->second == entry->first) {
    by_peer_.erase(found);
  }
  book_.erase(entry);
}

std::string Visitors::most_cut() {
  if (cut_of_.empty()) return {};
  const std::string address = largest(cut_of_);
  std::string told = fmt::format("{} ({})", address, cut_of_[address]);
  cut_of_.clear();
  return told;
}

}  // namespace greynic::daemon
