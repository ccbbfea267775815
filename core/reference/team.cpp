#include "core/reference/team.h"

#include <omp.h>

#include <exception>
#include <thread>

#include "core/cancel.h"
#include "core/reference/matrix.h"

namespace minfer {
namespace {

// About 50 us: longer than what one thread does alone between two jobs, shorter than a time slice.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(int n_threads, int32_t max_cols)
    : n_threads_(n_threads), kernels_(&reference_kernels()), job_(std::make_unique<Job>()) {
  for (int i = 0; i < n_threads; ++i) tiles_.emplace_back(static_cast<size_t>(kTileRows * padded(max_cols)));
}

void Team::reserve_scores(int32_t n_positions) {
  const int64_t n = (int64_t{n_positions} + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  if (!scores_.empty() && scores_[0].size() >= static_cast<size_t>(n)) return;
  std::vector<AlignedBuffer> grown;
  for (int i = 0; i < n_threads_; ++i) grown.emplace_back(static_cast<size_t>(n + n / 2));
  scores_ = std::move(grown);
}

void Team::run(const std::function<void()>& work) {
  std::exception_ptr error;
  Job& job = *job_;
  job.over.store(n_threads_ == 1);
#pragma omp parallel num_threads(n_threads_)
  {
    const int thread = omp_get_thread_num();
    if (thread != 0) {
      follow(thread);
    } else {
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      job.over.store(true);
      job.epoch.fetch_add(1);
      job.epoch.notify_all();
    }
  }
  if (error) std::rethrow_exception(error);
}

void Team::each_erased(int64_t n, Call call, const void* body) {
  Job& job = *job_;
  if (n <= 1 || job.over.load(std::memory_order_relaxed)) {
    for (int64_t i = 0; i < n && !interrupted(); ++i) call(body, i, 0);
    return throw_if_interrupted();
  }
  job.call = call;
  job.body = body;
  job.n = n;
  job.pending.store(n, std::memory_order_relaxed);
  job.left.store(n, std::memory_order_release);
  job.epoch.fetch_add(1);
  job.epoch.notify_all();
  take_items(0);
  for (int spins = 0; job.pending.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  throw_if_interrupted();
}

// Taking an item by compare-and-swap orders it after the job's fields were written, and keeps the job in
// place until the item is done.
void Team::take_items(int thread) {
  Job& job = *job_;
  int64_t left = job.left.load(std::memory_order_acquire);
  while (left > 0) {
    if (!job.left.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    if (!interrupted()) job.call(job.body, job.n - left, thread);  // else each() throws once all are taken
    job.pending.fetch_sub(1, std::memory_order_release);
    left = job.left.load(std::memory_order_acquire);
  }
}

void Team::follow(int thread) {
  Job& job = *job_;
  for (;;) {
    const uint32_t seen = job.epoch.load();
    take_items(thread);
    if (job.over.load()) return;
    for (int spins = 0; job.epoch.load(std::memory_order_relaxed) == seen; ++spins) {
      if (spins < kSpins) {
        relax();
      } else {
        job.epoch.wait(seen);
      }
    }
  }
}

}  // namespace minfer
