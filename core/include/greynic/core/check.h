#pragma once

/// GREYNIC_CHECK(condition): we are wrong when it fails; says where, and stops. One condition each.

#include <cstdio>
#include <cstdlib>

#define GREYNIC_CHECK(condition)                                                                  \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "%s:%d: internal check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)
