// Programmatic dependent launch (sm_90 on; nothing on older cards): a kernel that was launched so may start
// before the one ahead of it in the stream has ended.
#pragma once

namespace minfer::cu {

// The next kernel may start once every block of this one has said so or ended.
__device__ __forceinline__ void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Returns when the kernels ahead have ended and their writes are seen: before the first read of what they
// write, and before the first write of what they read.
__device__ __forceinline__ void wait_for_kernels_ahead() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace minfer::cu
