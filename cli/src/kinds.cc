#include "kinds.h"

#include "greynic/target/target.h"

namespace greynic::cli {

void register_kinds() {}

}  // namespace greynic::cli
