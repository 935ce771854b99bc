#pragma once

/// Queue pairs of a device that links to many hosts share. A device is fast with some hundred of them,
/// and slower with each one more, as its cache holds no more. So links have at most so many: when a
/// link needs one and all are taken, the one that rested longest is joined to its host instead. That
/// costs one call to the host's agent; the memory that is exposed there stays, and so do its keys.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "rdma.h"

namespace greynic::remote {

class QueuePairs {
 public:
  /// Joins a queue pair of ours with the one of a link's host.
  using Join = std::function<Result<void>(RdmaQueue&)>;

  QueuePairs(std::shared_ptr<const verbs::Device> device, std::size_t most)
      : device_(std::move(device)), most_(most > 0 ? most : 1) {}

 private:
  struct Lane {
    explicit Lane(RdmaReader made) : reader(std::move(made)) {}
    RdmaReader reader;
    std::uint64_t link = 0;  ///< that it is joined for; 0: none
    bool busy = false;
  };

 public:
  /// A reader, for its holder alone until this goes.
  class Taken {
   public:
    Taken(QueuePairs& from, Lane& lane) : from_(&from), lane_(&lane) {}
    ~Taken() {
      if (from_ != nullptr) from_->give_back(*lane_);
    }
    Taken(Taken&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), lane_(other.lane_) {}
    Taken& operator=(Taken&&) = delete;
    [[nodiscard]] RdmaReader& reader() const { return lane_->reader; }

   private:
    QueuePairs* from_;
    Lane* lane_;
  };
  /// The reader of that link. `link` is a number of its own, never 0; one thread at a time takes for
  /// one link. Waits for `patience` at most while others use all of them, then kIo. Errors of `join`;
  /// kRefused: the device has none.
  [[nodiscard]] Result<Taken> take(std::uint64_t link, std::chrono::nanoseconds patience,
                                   const Join& join);
  /// The link is no more.
  void forget(std::uint64_t link);

  struct Counts {
    std::size_t queue_pairs = 0;
    std::uint64_t joined = 0;  ///< how often one was joined to a host
  };
  [[nodiscard]] Counts counts() const;

 private:
  void give_back(Lane& lane);

  std::shared_ptr<const verbs::Device> device_;
  const std::size_t most_;
  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable given_back_;
  std::list<Lane> lanes_;  ///< who rests longest comes first
  std::uint64_t joined_ = 0;
};

}  // namespace greynic::remote
