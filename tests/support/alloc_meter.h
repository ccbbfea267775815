// Measures what the code under test allocates with operator new. A program that uses it gets its own operator
// new and delete, over malloc and free (so that AddressSanitizer still sees every block); outside a meter
// they do nothing more.
#pragma once

#include <cstddef>

namespace minfer::test {

// Records, on the thread that made it and while it lives, the largest single allocation. One above `limit` is
// recorded and refused with std::bad_alloc, so that a hostile size never reaches the system. Meters nest; the
// inner one counts.
class AllocMeter {
 public:
  explicit AllocMeter(size_t limit);
  ~AllocMeter();
  AllocMeter(const AllocMeter&) = delete;
  AllocMeter& operator=(const AllocMeter&) = delete;

  size_t largest() const { return largest_; }  // bytes
  size_t total() const { return total_; }      // bytes of all allocations together, freed or not
  bool admit(size_t n_bytes);                  // for operator new

 private:
  size_t limit_;
  size_t largest_ = 0;
  size_t total_ = 0;
  AllocMeter* outer_;
};

}  // namespace minfer::test
