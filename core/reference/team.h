// Private to the reference engine: the threads that share an operation's work, and the scratch memory of
// each.
//
// OpenMP makes the threads, for one forward pass at a time. Inside the pass the work is handed out here: an
// OpenMP loop waits for every thread of the team, and spins for milliseconds where another process holds a
// processor; each() waits only for work that has been taken, so a thread that gets no processor holds nobody
// up. Results do not depend on who takes what.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/reference/aligned_buffer.h"
#include "core/reference/kernels.h"

namespace minfer {

class Team {
 public:
  // `max_cols`: of the widest matrix.
  Team(int n_threads, int32_t max_cols);

  int n_threads() const { return n_threads_; }
  const ReferenceKernels& kernels() const { return *kernels_; }

  // Runs `work` on this thread while the others stand by for each(). Passes its exceptions on.
  void run(const std::function<void()>& work);

  // Calls body(i, thread) once for every i < n, in any order, on any thread of the team; returns when all are
  // done. Outside run(), or where n is 1, on this thread alone. The body does not throw; each() itself throws
  // Error(kInterrupted) where interrupted(), with some i left out.
  template <typename Body>
  void each(int64_t n, const Body& body) {
    each_erased(
        n, [](const void* b, int64_t i, int thread) { (*static_cast<const Body*>(b))(i, thread); }, &body);
  }

  float* tile(int thread) { return tiles_[static_cast<size_t>(thread)].data(); }     // kTileRows decoded rows
  float* scores(int thread) { return scores_[static_cast<size_t>(thread)].data(); }  // of one query head
  // Room for the scores of n positions. Throws std::bad_alloc.
  void reserve_scores(int32_t n_positions);

 private:
  using Call = void (*)(const void* body, int64_t i, int thread);

  void each_erased(int64_t n, Call call, const void* body);
  void take_items(int thread);
  void follow(int thread);

  // One job at a time. It is replaced only when nothing of it is pending, so whoever has taken an item may
  // read it.
  struct Job {
    Call call = nullptr;
    const void* body = nullptr;
    int64_t n = 0;
    std::atomic<int64_t> left{0};     // items not yet taken
    std::atomic<int64_t> pending{0};  // items not yet done
    std::atomic<uint32_t> epoch{0};   // changes with every job, and at the end
    std::atomic<bool> over{true};
  };

  int n_threads_;
  const ReferenceKernels* kernels_;
  std::vector<AlignedBuffer> tiles_, scores_;
  std::unique_ptr<Job> job_;
};

}  // namespace minfer
