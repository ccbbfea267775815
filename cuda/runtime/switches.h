// The switches of measurements: environment variables named MINFER_..., refused where they make no sense.
#pragma once

namespace minfer::cu {

// The number that `name` is set to, `unset` where it is not set or empty. Throws Error(kUsage) with the range
// where it is anything but a whole number from min to max.
int switch_number(const char* name, int min, int max, int unset);
bool switch_is_on(const char* name, bool unset);  // 0 or 1

}  // namespace minfer::cu
