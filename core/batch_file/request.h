// What one piece of a batch file asks for: a plain prompt, or a JSON object of our own form
//   {"id": "a", "prompt" | "messages": ..., options}
// or a line as OpenAI's batch files have them
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": ..., options}}
// with the same options: the completions API's, and of the local servers' extras those that the command line
// has.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch_file/split.h"
#include "core/completion.h"

namespace minfer {

struct BatchRequest {
  int64_t number = 0;         // BatchPiece::number
  nlohmann::ordered_json id;  // a text or an integer; null where the piece has none that can be used
  bool is_openai = false;     // the record takes OpenAI's form
  std::string error;          // why it cannot be run; empty: it can, as far as the file alone tells

  // One of the two: messages are null, or a non-empty array of objects with a role and, as one text, content.
  nlohmann::ordered_json messages;
  std::string prompt;
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();  // tools and the like
  bool add_generation_prompt = true;

  GenerateOptions options;
  bool has_seed = false;  // options.sampling.seed is the request's own
};

struct BatchFile {
  std::vector<BatchRequest> requests;    // one a piece, in order
  std::set<std::string> ignored_fields;  // names that mean nothing to us
};

// Total: what cannot be used becomes a request with an error. `defaults` are the options that a request does
// not set itself. A missing id is the piece's number; a piece with an id that an earlier one has errs.
BatchFile parse_batch(const std::vector<BatchPiece>& pieces, BatchFormat format,
                      const GenerateOptions& defaults);

}  // namespace minfer
