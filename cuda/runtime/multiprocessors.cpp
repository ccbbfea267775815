#include "cuda/runtime/multiprocessors.h"

#include "cuda/runtime/check.h"

namespace minfer::cu {

int multiprocessors() {
  static const int n = [] {
    int device = 0, count = 0;
    check(cudaGetDevice(&device), "multiprocessors");
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    return count;
  }();
  return n;
}

}  // namespace minfer::cu
