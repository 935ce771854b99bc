#include "traffic/quick_clock.h"

#include <fstream>
#include <string>

namespace greynic::verbs {

bool MachineTime::counter_is_trusted() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return file >> name && name == "tsc";
#else
  return false;
#endif
}

}  // namespace greynic::verbs
