#pragma once

#include <gtest/gtest.h>

#include "greynic/web/page.h"

/// Pages of a greynic without ECharts hold no pictures, and say so (Report.SaysWhyItHasNoPictures).
#define NEEDS_PICTURES()                                                                        \
  if (!web::check_live_pages()) {                                                               \
    GTEST_SKIP() << "this greynic was built without the npm package echarts; scripts/setup.sh " \
                    "--web installs it, then build again";                                      \
  }
