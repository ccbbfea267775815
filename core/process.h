// What the operating system knows about this process.
#pragma once

#include <cstdint>

namespace minfer {

uint64_t peak_memory_bytes();  // largest resident set so far, mapped files included
double seconds_since_start();  // since the process was started; 0 where the system does not say
uint64_t total_memory_bytes();
uint64_t
available_memory_bytes();  // what an allocation may take without swapping; 0 where the system does not say
int usable_processors();   // processors that this process may run on, at least 1

}  // namespace minfer
