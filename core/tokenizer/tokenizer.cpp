#include "core/tokenizer/tokenizer.h"

#include "core/error.h"
#include "core/tokenizer/vocab_tokenizer.h"
#include "gguf/error.h"

namespace minfer {
namespace {

constexpr const char* kModelKey = "tokenizer.ggml.model";

std::unique_ptr<Tokenizer> make_tokenizer(const gguf::Metadata& metadata, const TokenizerOptions& options) {
  const auto model = metadata.get_string(kModelKey);
  if (!model)
    throw Error(ExitCode::kModelFile, std::string("the model file holds no tokenizer (") + kModelKey + ")");
  if (*model == "gpt2") return make_bpe_tokenizer(metadata, options);
  if (*model == "llama") {
    if (!options.pretokenizer.empty()) {
      throw Error(ExitCode::kUsage,
                  "--pretokenizer " + gguf::quoted(options.pretokenizer) +
                      ": the model's tokenizer is SentencePiece, which has no pre-tokenizer");
    }
    return make_sentencepiece_tokenizer(metadata);
  }
  throw Error(ExitCode::kModelFile,
              std::string(kModelKey) + " " + gguf::quoted(*model) +
                  " is not supported; supported are 'gpt2' (byte-level BPE) and 'llama' "
                  "(SentencePiece BPE)");
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_metadata(const gguf::Metadata& metadata,
                                                    const TokenizerOptions& options) {
  try {
    return make_tokenizer(metadata, options);
  } catch (const gguf::Error& error) {
    throw Error(ExitCode::kModelFile, error.what());
  }
}

}  // namespace minfer
