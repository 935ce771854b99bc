#include "kinds.h"

#include "greynic/target/target.h"
#ifdef GREYNIC_WITH_TWIN
#include "greynic/twin/twin.h"
#endif

namespace greynic::cli {

void register_kinds() {
#ifdef GREYNIC_WITH_TWIN
  target::register_kind(twin::kind());
#endif
}

}  // namespace greynic::cli
