// The line of the output that answers a request: our own form, or that of OpenAI's batch output. Two runs
// write the same bytes, but for the one object "timings": nothing else in a record depends on time or
// schedule
// ("created", which OpenAI's form asks for, is 0).
#pragma once

#include <string>
#include <string_view>

#include "core/batch_file/request.h"
#include "core/scheduler.h"

namespace minfer {

// Both end with a newline. `model`: the name that OpenAI's form tells.
std::string answer_record(const BatchRequest& request, const RequestResult& result,
                          const Tokenizer& tokenizer, const std::string& model);
// `code`: a word for programs, in OpenAI's form.
std::string error_record(const BatchRequest& request, const std::string& code, const std::string& message);

// The beginning that every record of this request has, however it ends.
std::string record_head(const BatchRequest& request);

}  // namespace minfer
