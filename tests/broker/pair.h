#pragma once

/// Two hosts of a fabric whose brokers have met.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "greynic/broker/fabric_node.h"

namespace greynic::broker {

struct Pair {
  std::unique_ptr<twin::Fabric> fabric;
  std::unique_ptr<FabricNode> a, b;

  explicit Pair(const FabricNodeOptions& options = {}, const twin::FabricSpec& spec = {}) {
    fabric = std::move(*twin::Fabric::create(spec));
    a = std::move(*FabricNode::create(*fabric, 0, options));
    b = std::move(*FabricNode::create(*fabric, 1, options));
    EXPECT_TRUE(FabricNode::meet(*a, *b));
  }
};

}  // namespace greynic::broker
