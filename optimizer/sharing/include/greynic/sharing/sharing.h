#pragma once

/// Should the connections between some hosts share QPs, and how many? A fitted model tells what
/// they reach with a QP each, with the driver's doorbells and with doorbells of their own, and what
/// a broker reaches that carries all of them over few QPs and one thread. What promises most is
/// advised, if it promises over a tenth: so far a law may be wrong. Else the advice is to leave things as they are.
///
/// How: the law is taken apart into the stations of one RNIC (threads, contexts of QPs, units, port),
/// and the messages of each choice are played through a network of them, some virtual milliseconds
/// long. docs/broker/advice.md derives it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"
#include "greynic/model/model.h"

namespace greynic::sharing {

/// Connections of one kind from one host to another.
struct Demand {
  std::string from, to;  ///< the host that asks and the one that is asked
  std::uint32_t connections = 1;
  Operation operation = Operation::kRead;  ///< READ or WRITE
  std::uint64_t message_bytes = 65536;
  std::uint32_t outstanding = 1;  ///< messages that a connection has under way
};

struct Matrix {
  std::vector<Demand> demands;
  std::uint32_t threads = 1;  ///< of each host, that post and poll when nothing is shared
  double broker_ns = 30;      ///< that a broker's thread takes longer for a message than its own
};

/// docs/formats/connections.md. kBadInput, also for more than can be played through.
[[nodiscard]] Result<Matrix> read_matrix(const std::string& path);

enum class Choice : std::uint8_t { kOwn, kOwnDoorbells, kShare };

/// How a broker shares. Messages beyond `bulk_bytes` have QPs of their own; with `bulk_qps` 0 there
/// is one class.
struct Setting {
  std::uint32_t latency_qps = 1, bulk_qps = 1;  ///< to each peer
  std::uint64_t bulk_bytes = 16384;
  std::uint64_t in_flight_bytes = 131072;  ///< under way on a QP
};

/// What one kind of connections gets.
struct Reached {
  double own_gbps = 0, advised_gbps = 0;
};

struct Advice {
  Choice choice = Choice::kOwn;
  Setting setting;  ///< the best one when sharing, also where it is not advised
  model::PredictedMeasure gain{1, 1, 1};       ///< goodput of all over that of a QP each, 95 %
  model::PredictedMeasure if_shared{1, 1, 1};  ///< the same if all share, advised or not
  std::vector<Reached> demands;                ///< in the order of the matrix
  std::uint32_t own_qps = 0, advised_qps = 0;  ///< of the host that has most
  /// Sharing is advised where the prediction has been off by more than a tenth: a host has more QPs than
  /// its chip holds, and over a tenth of them READ.
  bool unsure = false;
  bool extrapolated = false;  ///< the law was asked outside of what it was fitted to
};

/// One of models that were fitted to different sizes: the one answers that was fitted nearest to
/// what is asked, the surest of equals. At least one model.
[[nodiscard]] std::unique_ptr<model::Model> nearest_of(
    std::vector<std::unique_ptr<model::Model>> models);

/// kBadInput when the model predicts no bandwidth or cannot take what the matrix asks, kTooBig when
/// more happens in a nanosecond than can be played through.
[[nodiscard]] Result<Advice> advise(const model::Model& model, const Matrix& matrix);

/// docs/formats/sharing_advice.md, for `greynic broker --advice`.
[[nodiscard]] std::string to_json_text(const Advice& advice, const Matrix& matrix);

/// What a broker needs of the file.
struct BrokerAdvice {
  Choice choice = Choice::kOwn;
  Setting setting;
};
[[nodiscard]] Result<BrokerAdvice> read_advice(const std::string& path);

}  // namespace greynic::sharing
