#include "core/process.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace minfer {

uint64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double seconds_since_start() {
  // Field 22 of /proc/self/stat: start time in clock ticks since boot. Field 2, the command, may hold spaces
  // and ends with the last ')'.
  std::ifstream in("/proc/self/stat");
  std::string line;
  std::getline(in, line);
  const size_t command_end = line.rfind(')');
  if (command_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(command_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double start_ticks = 0;
  timespec now{};
  if (!(fields >> start_ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double boot_seconds = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return std::max(0.0, boot_seconds - start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

uint64_t total_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t available_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string key; in >> key;) {
    uint64_t kib = 0;
    if (key == "MemAvailable:" && in >> kib) return kib * 1024;
    in.ignore(256, '\n');
  }
  return 0;
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace minfer
