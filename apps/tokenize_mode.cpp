#include <nlohmann/json.hpp>

#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "apps/prompt.h"
#include "core/tokenizer/tokenizer.h"
#include "gguf/reader.h"

namespace minfer {

ExitCode run_tokenize(const Options& options) {
  const std::string text = read_prompt(options);
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  const nlohmann::json ids = make_prompt(options, text, file, *tokenizer).ids;
  write_stdout(ids.dump() + "\n");
  return ExitCode::kOk;
}

}  // namespace minfer
