#pragma once

/// This process's seat in virtual time: what it asks the sequencer, and its clock.

#include <mutex>

#include "preload/objects.h"
#include "protocol/turns.h"

namespace greynic::lab::turns {

/// True once the process has joined a lab in virtual time; nothing below may be called before.
bool taken();
/// Takes the seat when the environment names a lab in virtual time. False, with the reason on
/// standard error, when there is one but no seat.
bool join(std::uint32_t host);

/// A question under way: the seat is ours until the end of the scope.
class Question {
 public:
  Question();
  ~Question();
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  TurnSeat* operator->() const { return seat_; }
  /// Waits for the answer; gives its error number.
  int ask(Ask what);

 private:
  TurnSeat* seat_;
};

/// Virtual nanoseconds. Reading them takes time too: at least so much.
double clock_ns(double cost_ns);

int create_cq(Cq& cq);
int destroy_cq(const Cq& cq);
int arm(const Cq& cq);
/// Waits for an event of the channel; gives its queue.
Cq& wait_event(const EventChannel& channel);
int create_srq(const Srq& srq);
int destroy_srq(const Srq& srq);
/// The pages around this memory become the lab's, with what is in them.
int add_memory(std::uint32_t key, void* address, std::size_t length, std::uint64_t begin,
               unsigned access);
int drop_memory(std::uint32_t key);
int create_qp(const Qp& qp);
int modify_qp(const Qp& qp);
int destroy_qp(const Qp& qp);
int post_send(const Qp& qp, const SendWork& work);
int post_receive(const Qp& qp, const ReceiveWork& work);
int post_receive(const Srq& srq, const ReceiveWork& work);
int poll(const Cq& cq, int most, ibv_wc* out);

}  // namespace greynic::lab::turns
