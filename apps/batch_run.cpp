#include "apps/batch_run.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/batch_file/record.h"
#include "core/cancel.h"
#include "core/error.h"

namespace minfer {
namespace {

constexpr const char* kInvalidRequest = "invalid_request";  // by what the request says
constexpr const char* kRequestFailed = "request_failed";    // it could not be run here

}  // namespace

BatchRun::BatchRun(std::span<const BatchRequest> requests, const Tokenizer& tokenizer, std::string model,
                   BatchOutput& output, const Finished& before)
    : requests_(requests),
      tokenizer_(tokenizer),
      model_(std::move(model)),
      records_(output, requests.size(), before.n_records),
      n_failed_(before.n_failed) {}

void BatchRun::prepare(const PromptRules& rules, const HParams& hparams) {
  for (size_t i = records_.n_written(); i < requests_.size(); ++i) {
    throw_if_interrupted();
    prepare(i, rules, hparams);
  }
}

void BatchRun::prepare(size_t index, const PromptRules& rules, const HParams& hparams) {
  const BatchRequest& request = requests_[index];
  if (!request.error.empty()) return fail(index, kInvalidRequest, request.error);
  try {
    auto prompt = encode_request(request, rules, tokenizer_);
    // Made once more by the scheduler: what cannot be is the request's fault, and no failure of the run.
    const int32_t n_kv = Completion(hparams, tokenizer_, prompt, request.options).n_kv_tokens();
    queue_.push_back({std::move(prompt), request.options});
    work_.push_back({index, n_kv, is_chat(request, rules) ? rules.prefill_response : ""});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    fail(index, kInvalidRequest, error.what());
  }
}

std::vector<int32_t> BatchRun::kv_needs() const {
  std::vector<int32_t> needs;
  for (const Work& work : work_) needs.push_back(work.n_kv_tokens);
  std::ranges::sort(needs, std::greater());
  return needs;
}

ScheduleStats BatchRun::compute(Engine& engine, const ScheduleOptions& options, BatchProgress& progress) {
  const auto done = [&](size_t i, RequestResult result) {
    result.text.insert(0, work_[i].prefill);
    answer(work_[i].index, result);
    progress.finish_one();
  };
  return run_requests(engine, tokenizer_, queue_, options, done,
                      [&](const ScheduleStats& stats) { progress.step(stats); });
}

void BatchRun::answer(size_t index, const RequestResult& result) {
  if (result.error) return fail(index, kRequestFailed, *result.error);
  records_.put(index, answer_record(requests_[index], result, tokenizer_, model_));
}

void BatchRun::fail(size_t index, const char* code, const std::string& message) {
  ++n_failed_;
  records_.put(index, error_record(requests_[index], code, message));
}

}  // namespace minfer
