#include "core/scheduler.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/sequence.h"
#include "core/stopwatch.h"

namespace minfer {
namespace {

// A shorter common prefix is computed again: so few rows beside those of other sequences cost less than
// waiting for the donor's step and copying.
constexpr int32_t kMinShared = 32;

// An engine may add up in another order where a step has this few rows (cuda: gemv instead of gemm). A longer
// prompt is cut so that no part of it has to be computed in a step of so few.
constexpr int32_t kFewRows = 8;

// A request that has been taken up.
struct Active {
  Active(size_t i, const Request& request, const Engine& engine, const Tokenizer& tokenizer)
      : index(i),
        prompt(request.prompt),
        completion(engine.hparams(), tokenizer, request.prompt, request.options) {}

  int32_t n_prompt() const { return static_cast<int32_t>(prompt.size()); }

  size_t index;
  std::span<const TokenId> prompt;
  Completion completion;
  std::unique_ptr<Sequence> sequence;
  const Active* donor = nullptr;  // waits until this one has computed n_shared tokens, and copies them
  int32_t n_shared = 0;
  std::optional<TokenId> next;  // what to compute next, once the prompt is computed
  std::optional<std::string> error;
  double queue_seconds = 0;
  Stopwatch since_admission;
};

// Of n_left rows of a prompt, how many go into a step that has n_taken rows and has room for n_max.
int32_t chunk_rows(int32_t n_left, int32_t n_taken, int32_t n_max) {
  const int32_t n_room = n_max - n_taken;
  if (n_left <= n_room) return n_left;
  const int32_t n_kept_back = kFewRows + 1;
  const int32_t n_balanced = std::min(n_room, n_left - n_kept_back);
  return n_balanced > 0 && n_taken + n_balanced > kFewRows ? n_balanced : n_room;
}

// FNV-1a (Fowler, Noll and Vo 1991) over the tokens that two prompts must have in common to share anything.
uint64_t hash_of_beginning(std::span<const TokenId> prompt) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const TokenId id : prompt.first(std::min<size_t>(prompt.size(), kMinShared))) {
    hash = (hash ^ static_cast<uint32_t>(id)) * 0x100000001b3;
  }
  return hash;
}

class Scheduler {
 public:
  Scheduler(Engine& engine, const Tokenizer& tokenizer, std::span<const Request> requests,
            const ScheduleOptions& options, const std::function<void(size_t, RequestResult)>& done)
      : engine_(engine), tokenizer_(tokenizer), requests_(requests), options_(options), done_(done) {
    for (size_t i = 0; i < requests.size(); ++i) last_with_[hash_of_beginning(requests[i].prompt)] = i;
  }

  // Takes up what there is room for, and computes one step; false once every request is done.
  bool step();
  ScheduleStats stats() const {
    ScheduleStats stats = stats_;
    stats.seconds = clock_.seconds();
    return stats;
  }

 private:
  void admit();
  bool prepare_next();
  bool find_room(Active& a);
  void find_donor(Active& a) const;
  void take_over_retained(Active& a);
  void copy_prefix(Active& a);
  void note_reused(Active& a);
  void compose();
  void add_row(Active& a, int32_t pos, TokenId token, Want want);
  void add_prompt_rows(Active& a);
  void accept(Active& a, const RowResult& result);
  void retire();
  void finish(std::unique_ptr<Active> a);
  bool is_finished(const Active& a) const;
  bool is_wanted_as_donor(const Active& a) const;

  int32_t n_rows() const { return static_cast<int32_t>(batch_.rows.size()); }
  int32_t kv_length(const Active& a) const { return engine_.kv_length(a.sequence->id()); }

  Engine& engine_;
  const Tokenizer& tokenizer_;
  std::span<const Request> requests_;
  ScheduleOptions options_;
  const std::function<void(size_t, RequestResult)>& done_;

  size_t n_prepared_ = 0;                           // requests that are in pending_, or beyond
  std::unique_ptr<Active> pending_;                 // the next one, until there is room for it
  std::vector<std::unique_ptr<Active>> active_;     // in order of admission
  std::unique_ptr<Active> retained_;                // done; its KV is kept for a request to come
  std::unordered_map<uint64_t, size_t> last_with_;  // by hash_of_beginning: the last request that has it

  Batch batch_;
  std::vector<Active*> asking_;  // whose rows want a result, in the order of the batch
  ScheduleStats stats_;
  Stopwatch clock_;
};

bool Scheduler::step() {
  admit();
  if (active_.empty()) return false;
  throw_if_interrupted();
  compose();
  const std::span<const RowResult> results = engine_.forward(batch_);
  // Before anyone finishes: a donor's whole prompt is computed by then, so nobody loses the one he waits for.
  for (const auto& a : active_) copy_prefix(*a);
  for (size_t i = 0; i < results.size(); ++i) accept(*asking_[i], results[i]);
  ++stats_.n_steps;
  retire();
  return true;
}

// In the order of the requests: nobody overtakes one that waits for room.
void Scheduler::admit() {
  while (active_.size() < static_cast<size_t>(options_.n_parallel) && prepare_next()) {
    if (!find_room(*pending_)) return;
    pending_->queue_seconds = clock_.seconds();
    pending_->since_admission = Stopwatch();
    if (pending_->error) {
      finish(std::move(pending_));
    } else {
      active_.push_back(std::move(pending_));
    }
    stats_.n_parallel_peak = std::max(stats_.n_parallel_peak, static_cast<int32_t>(active_.size()));
  }
}

// Sees to it that pending_ is the next request that can run at all; false where there is none.
bool Scheduler::prepare_next() {
  while (!pending_ && n_prepared_ < requests_.size()) {
    const size_t index = n_prepared_++;
    try {
      pending_ = std::make_unique<Active>(index, requests_[index], engine_, tokenizer_);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kUsage) throw;
      RequestResult result;
      result.generation.n_prompt = static_cast<int32_t>(requests_[index].prompt.size());
      result.error = error.what();
      result.queue_seconds = clock_.seconds();
      done_(index, std::move(result));
    }
  }
  return pending_ != nullptr;
}

// Gives it a sequence and what it can reuse, or an error where there is no room even alone. False: not before
// another one has finished.
bool Scheduler::find_room(Active& a) {
  const int32_t n_tokens = a.completion.n_kv_tokens();
  const bool fits = engine_.kv_fits(n_tokens);
  if (!fits && !retained_ && !active_.empty()) return false;
  find_donor(a);
  if (!fits && retained_) {
    if (a.donor == retained_.get() && retained_->completion.n_kv_tokens() >= n_tokens) {
      take_over_retained(a);
      return true;
    }
    retained_.reset();
    return find_room(a);
  }
  try {
    a.sequence = std::make_unique<Sequence>(engine_, n_tokens);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kDevice) throw;
    if (std::exchange(retained_, nullptr)) return find_room(a);
    if (!active_.empty()) return false;
    a.error = error.what();
    return true;
  }
  copy_prefix(a);
  return true;
}

// The one that shares most; of equals the earliest request. Prompts count as they are, computed or not. What
// is left to compute of `a` are more than kFewRows rows.
void Scheduler::find_donor(Active& a) const {
  a.donor = nullptr;
  a.n_shared = 0;
  const auto consider = [&](const Active& donor) {
    const auto n_equal = std::ranges::mismatch(a.prompt, donor.prompt).in1 - a.prompt.begin();
    const int32_t n = std::min(static_cast<int32_t>(n_equal), a.n_prompt() - kFewRows - 1);
    if (n < kMinShared || n < a.n_shared) return;
    if (n == a.n_shared && donor.index > a.donor->index) return;
    a.donor = &donor;
    a.n_shared = n;
  };
  for (const auto& donor : active_) consider(*donor);
  if (retained_) consider(*retained_);
}

// In place of a copy for which there is no room.
void Scheduler::take_over_retained(Active& a) {
  a.sequence = std::move(retained_->sequence);
  retained_.reset();
  engine_.kv_truncate(a.sequence->id(), a.n_shared);
  note_reused(a);
}

void Scheduler::copy_prefix(Active& a) {
  if (a.donor == nullptr || kv_length(*a.donor) < a.n_shared) return;
  engine_.kv_copy(a.donor->sequence->id(), a.sequence->id(), a.n_shared);
  note_reused(a);
}

void Scheduler::note_reused(Active& a) {
  a.donor = nullptr;
  a.completion.generation().n_reused = a.n_shared;
  stats_.n_prompt_tokens += a.n_shared;
  stats_.n_reused_tokens += a.n_shared;
}

// Sequences that decode had a row each in the last step, so they have room in this one.
void Scheduler::compose() {
  batch_.rows.clear();
  asking_.clear();
  for (const auto& a : active_) {
    if (a->next) add_row(*a, kv_length(*a), *a->next, a->completion.want());
  }
  for (const auto& a : active_) {
    if (!a->next && a->donor == nullptr) add_prompt_rows(*a);
  }
}

void Scheduler::add_row(Active& a, int32_t pos, TokenId token, Want want) {
  batch_.add(a.sequence->id(), pos, token, want);
  if (want != Want::kNothing) asking_.push_back(&a);
}

void Scheduler::add_prompt_rows(Active& a) {
  const int32_t begin = kv_length(a);
  const int32_t n = chunk_rows(a.n_prompt() - begin, n_rows(), options_.n_batch_rows);
  for (int32_t pos = begin; pos < begin + n; ++pos) {
    const bool last = pos + 1 == a.n_prompt();
    add_row(a, pos, a.prompt[static_cast<size_t>(pos)], last ? a.completion.want() : Want::kNothing);
  }
  stats_.n_prompt_tokens += n;
}

void Scheduler::accept(Active& a, const RowResult& result) {
  Generation& generation = a.completion.generation();
  const size_t n_before = generation.ids.size();
  try {
    if (!a.completion.done()) a.next = a.completion.accept(result, engine_);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kRuntime) throw;
    a.error = error.what();
    return;
  }
  stats_.n_generated_tokens += static_cast<int64_t>(generation.ids.size() - n_before);
  const double seconds = a.since_admission.seconds();
  if (n_before == 0) generation.prefill_seconds = seconds;
  generation.decode_seconds = seconds - generation.prefill_seconds;
}

bool Scheduler::is_finished(const Active& a) const {
  return a.error || (a.completion.done() && kv_length(a) >= a.n_prompt());
}

void Scheduler::retire() {
  const auto finished = std::stable_partition(active_.begin(), active_.end(),
                                              [this](const auto& a) { return !is_finished(*a); });
  std::vector<std::unique_ptr<Active>> leaving(std::make_move_iterator(finished),
                                               std::make_move_iterator(active_.end()));
  active_.erase(finished, active_.end());
  for (auto& a : leaving) finish(std::move(a));
}

void Scheduler::finish(std::unique_ptr<Active> a) {
  Generation& generation = a->completion.generation();
  stats_.n_near_ties += generation.n_near_ties;
  RequestResult result{.text = a->error ? std::string() : a->completion.take_text(),
                       .generation = std::move(generation),
                       .error = a->error,
                       .queue_seconds = a->queue_seconds};
  const size_t index = a->index;
  if (is_wanted_as_donor(*a)) {
    retained_ = std::move(a);
  } else if (retained_ && !is_wanted_as_donor(*retained_)) {
    retained_.reset();
  }
  a.reset();
  done_(index, std::move(result));
}

bool Scheduler::is_wanted_as_donor(const Active& a) const {
  const size_t next = pending_ ? pending_->index : n_prepared_;
  return !a.error && a.n_prompt() > kMinShared + kFewRows &&
         last_with_.at(hash_of_beginning(a.prompt)) >= next;
}

}  // namespace

ScheduleStats run_requests(Engine& engine, const Tokenizer& tokenizer, std::span<const Request> requests,
                           const ScheduleOptions& options,
                           const std::function<void(size_t index, RequestResult)>& done,
                           const std::function<void(const ScheduleStats&)>& progress) {
  if (options.n_parallel < 1 || options.n_batch_rows < 1) {
    throw Error(ExitCode::kUsage,
                fmt::format("{} sequences at once in steps of {} rows: needs 1 or more of each",
                            options.n_parallel, options.n_batch_rows));
  }
  Scheduler scheduler(engine, tokenizer, requests, options, done);
  while (scheduler.step()) {
    if (progress) progress(scheduler.stats());
  }
  return scheduler.stats();
}

}  // namespace minfer
