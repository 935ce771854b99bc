#include "src/ranged/spans.h"

#include <algorithm>
#include <bit>

namespace greynic::optimizer::ranged {

bool disjoint(const Spans& a, const Spans& b) {
  for (std::size_t i = 0; i < kPortFields; ++i) {
    if (a[i].low > b[i].high || b[i].low > a[i].high) return true;
  }
  return false;
}

bool disjoint(const std::vector<Spans>& a, const std::vector<Spans>& b) {
  return std::all_of(a.begin(), a.end(), [&](const Spans& box) {
    return std::all_of(b.begin(), b.end(),
                       [&](const Spans& other) { return disjoint(box, other); });
  });
}

void take_away(Spans box, const Spans& taken, std::vector<Spans>& left) {
  if (disjoint(box, taken)) {
    left.push_back(box);
    return;
  }
  for (std::size_t i = 0; i < kPortFields; ++i) {
    Spans part = box;
    if (box[i].low < taken[i].low) {
      part[i].high = taken[i].low - 1;
      left.push_back(part);
      box[i].low = taken[i].low;
    }
    part = box;
    if (box[i].high > taken[i].high) {
      part[i].low = taken[i].high + 1;
      left.push_back(part);
      box[i].high = taken[i].high;
    }
  }
}

std::vector<Spans> without(std::vector<Spans> boxes, const std::vector<Spans>& taken) {
  for (const Spans& other : taken) {
    std::vector<Spans> left;
    for (const Spans& box : boxes) take_away(box, other, left);
    boxes = std::move(left);
  }
  return boxes;
}

void OneLength::add(const Span& span) {
  const std::uint32_t width = span.high - span.low + 1;
  same_ = same_ && (width_ == 0 || width_ == width);
  width_ = width;
  aligned_ = aligned_ && std::has_single_bit(width) && span.low % width == 0;
}

}  // namespace greynic::optimizer::ranged
