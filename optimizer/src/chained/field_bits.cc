#include "src/chained/field_bits.h"

#include "src/table_cut.h"

namespace greynic::optimizer::chained {

FieldBits::FieldBits(const Columns& columns) {
  const std::vector<Word> ones(columns.words(), ~Word{0});
  const Mask all = columns.unpack_mask(ones.data());
  for (const FieldMask& entry : all.fields()) {
    Match match;
    match.set(entry.field, 0, entry.bits);
    std::vector<Word> value(columns.words(), 0);
    Field field{std::vector<Word>(columns.words(), 0), {}};
    columns.pack(match, value.data(), field.bits.data());
    for (std::size_t other = 0; other < all.fields().size(); ++other) {
      if (needs_header(entry.field, all.fields()[other].field)) field.headers.push_back(other);
    }
    fields_.push_back(std::move(field));
  }
}

bool FieldBits::looks_at(const Word* row, std::size_t field) const {
  const std::vector<Word>& bits = fields_[field].bits;
  for (std::size_t w = 0; w < bits.size(); ++w) {
    if ((row[w] & bits[w]) != 0) return true;
  }
  return false;
}

bool FieldBits::less(const Word* a, const Word* b, std::size_t field) const {
  const std::vector<Word>& bits = fields_[field].bits;
  for (std::size_t w = bits.size(); w-- > 0;) {
    if (((a[w] ^ b[w]) & bits[w]) != 0) return (a[w] & bits[w]) < (b[w] & bits[w]);
  }
  return false;
}

std::vector<Word> FieldBits::with_headers(const Word* row, std::size_t field) const {
  std::vector<Word> mask(fields_[field].bits.size(), 0);
  for (std::size_t w = 0; w < mask.size(); ++w) mask[w] = row[w] & fields_[field].bits[w];
  add_headers(row, field, mask);
  return mask;
}

void FieldBits::add_headers(const Word* row, std::size_t field, std::vector<Word>& mask) const {
  for (const std::size_t header : fields_[field].headers) {
    if (looks_at(mask.data(), header) || !looks_at(row, header)) continue;
    for (std::size_t w = 0; w < mask.size(); ++w) mask[w] |= row[w] & fields_[header].bits[w];
    add_headers(row, header, mask);
  }
}

}  // namespace greynic::optimizer::chained
