// The requests of a batch file on their way through the engine, to records in the order of the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/batch_output.h"
#include "apps/batch_progress.h"
#include "core/batch_file/prompt.h"
#include "core/batch_file/request.h"
#include "core/batch_file/resume.h"
#include "core/scheduler.h"

namespace minfer {

class BatchRun {
 public:
  // Goes on behind the records of `before`. `model`: the name that records tell. All must outlive this.
  BatchRun(std::span<const BatchRequest> requests, const Tokenizer& tokenizer, std::string model,
           BatchOutput& output, const Finished& before);

  // Tokenizes what is left; requests that cannot be run get their records. Throws Error(kInterrupted) on
  // Ctrl-C.
  void prepare(const PromptRules& rules, const HParams& hparams);

  // KV slots that the requests to compute need, each for itself, in descending order; empty: there are none.
  std::vector<int32_t> kv_needs() const;

  // Throws as run_requests() and BatchOutput::append().
  ScheduleStats compute(Engine& engine, const ScheduleOptions& options, BatchProgress& progress);

  size_t n_failed() const { return n_failed_; }  // those of earlier runs among them
  size_t n_written() const { return records_.n_written(); }

 private:
  void prepare(size_t index, const PromptRules& rules, const HParams& hparams);
  void answer(size_t index, const RequestResult& result);
  void fail(size_t index, const char* code, const std::string& message);

  struct Work {
    size_t index = 0;  // of the request
    int32_t n_kv_tokens = 0;
    std::string prefill;  // what its answer begins with
  };

  std::span<const BatchRequest> requests_;
  const Tokenizer& tokenizer_;
  std::string model_;
  OrderedRecords records_;
  size_t n_failed_;
  std::vector<Request> queue_;
  std::vector<Work> work_;  // one an entry of queue_
};

}  // namespace minfer
