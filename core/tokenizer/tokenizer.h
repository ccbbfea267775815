// Text to token ids and back, as the model file says. Bytes in, bytes out: total on any input, valid UTF-8 or
// not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "core/byte_range.h"
#include "gguf/metadata.h"

namespace minfer {

struct TokenizerOptions {
  std::string
      pretokenizer;  // --pretokenizer NAME: instead of the file's tokenizer.ggml.pre; empty: the file's
};

struct EncodeOptions {
  bool add_special = true;  // BOS / EOS where the file asks for them; never a second one
  bool parse_special =
      false;  // text that spells a control token becomes that token (user-defined tokens always do)
  std::span<const ByteRange> literal =
      {};                  // ... but not where it touches one of these; ascending, disjoint, none empty
  bool continues = false;  // the text goes on where another one ended: SentencePiece puts no space before it
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Throws Error(kModelFile): no or unknown tokenizer, inconsistent vocabulary, unknown pre-tokenizer (with
  // the known ones). The metadata must outlive the tokenizer.
  static std::unique_ptr<Tokenizer> from_metadata(const gguf::Metadata& metadata,
                                                  const TokenizerOptions& options = {});

  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;

  // The bytes that a token stands for; empty for ids outside the vocabulary, and for control tokens unless
  // `with_special`.
  virtual std::string token_bytes(TokenId id, bool with_special = false) const = 0;
  // A whole sequence, its leading space taken away where encode put one (SentencePiece).
  virtual std::string decode(std::span<const TokenId> ids, bool with_special = false) const = 0;

  virtual std::string model() const = 0;         // "gpt2", "llama"
  virtual std::string pretokenizer() const = 0;  // name in use; empty for SentencePiece
  virtual int32_t n_vocab() const = 0;
  virtual bool is_eog(TokenId id) const = 0;         // any end-of-generation token of the file
  virtual std::vector<TokenId> eog_ids() const = 0;  // ascending
  virtual TokenId bos_id() const = 0;                // -1: none
  virtual TokenId eos_id() const = 0;                // -1: none
  virtual bool adds_bos() const = 0;
  virtual bool adds_eos() const = 0;
  // Id of the token spelled exactly so (as the file spells it), -1 where there is none.
  virtual TokenId find(std::string_view piece) const = 0;
};

}  // namespace minfer
