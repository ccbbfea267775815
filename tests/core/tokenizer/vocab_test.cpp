#include "core/tokenizer/vocab.h"

#include <array>

#include "core/error.h"
#include "tests/support/alloc_meter.h"
#include "tests/support/catch.h"
#include "tests/support/mutate.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;
using test::TinyTokenizer;
using test::TinyVocab;

constexpr EncodeOptions kParse{.add_special = true, .parse_special = true};

void set_bos_and_eos(TinyVocab& vocab, uint32_t bos, uint32_t eos, bool add_bos, bool add_eos) {
  vocab.more = [=](gguf::Writer& file) {
    file.add_u32("tokenizer.ggml.bos_token_id", bos);
    file.add_u32("tokenizer.ggml.eos_token_id", eos);
    file.add_bool("tokenizer.ggml.add_bos_token", add_bos);
    file.add_bool("tokenizer.ggml.add_eos_token", add_eos);
  };
}

bool refuses(const TinyVocab& vocab, const std::string& what) {
  const test::Refusal refused = test::refusal(vocab);
  INFO(refused.message);
  return refused.code == static_cast<int>(ExitCode::kModelFile) &&
         refused.message.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("vocab: BOS and EOS by the file's flags, never twice", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId bos = vocab.add("<bos>", TokenType::kControl), eos = vocab.add("<stop>", TokenType::kControl);
  set_bos_and_eos(vocab, static_cast<uint32_t>(bos), static_cast<uint32_t>(eos), true, true);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->adds_eos());
  CHECK(tokenizer->encode("a") == Ids{bos, 'a', eos});
  CHECK(tokenizer->encode("") == Ids{bos, eos});
  CHECK(tokenizer->encode("a", {.add_special = false, .parse_special = false}) == Ids{'a'});
  CHECK(tokenizer->encode("<bos>a<stop>", kParse) == Ids{bos, 'a', eos});
  CHECK(tokenizer->encode("<bos>", kParse) == Ids{bos, eos});
  CHECK(tokenizer->encode("<stop>", kParse) == Ids{bos, eos});
  CHECK(tokenizer->encode("<bos><bos>", kParse) == Ids{bos, bos, eos});  // the text's own are kept
  CHECK(tokenizer->encode("<bos>") == Ids{bos, '<', 'b', 'o', 's', '>', eos});
}

TEST_CASE("vocab: one token may be both BOS and EOS", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const auto both = static_cast<uint32_t>(vocab.add("<|endoftext|>", TokenType::kControl));
  set_bos_and_eos(vocab, both, both, true, true);
  const auto id = static_cast<TokenId>(both);
  CHECK(TinyTokenizer(vocab)->encode("a") == Ids{id, 'a', id});
  CHECK(TinyTokenizer(vocab)->encode("") == Ids{id, id});
}

TEST_CASE("vocab: where the file does not say, SentencePiece and llama-bpe add BOS, the others nothing",
          "[tokenizer]") {
  CHECK(TinyTokenizer(test::sentencepiece_vocab())->encode("") == Ids{1});
  TinyVocab vocab = test::byte_level_vocab();
  vocab.more = [](gguf::Writer& file) { file.add_u32("tokenizer.ggml.bos_token_id", 7); };
  CHECK_FALSE(TinyTokenizer(vocab)->adds_bos());
  vocab.pre = "llama-bpe";
  CHECK(TinyTokenizer(vocab)->encode("a") == Ids{7, 'a'});
}

TEST_CASE("vocab: user-defined tokens are always parsed, control and unknown ones where asked for",
          "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId user = vocab.add("<tool>", TokenType::kUserDefined);
  const TokenId control = vocab.add("<ctrl>", TokenType::kControl);
  const TokenId unknown = vocab.add("<unk>", TokenType::kUnknown);
  const TokenId longer = vocab.add("<tool><tool>", TokenType::kUserDefined);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("a<tool>b") == Ids{'a', user, 'b'});
  CHECK(tokenizer->encode("<tool><tool><tool>") == Ids{longer, user});
  CHECK(tokenizer->encode("<ctrl><unk>", kParse) == Ids{control, unknown});
  CHECK(tokenizer->encode("<ctrl>").size() == 6);
  CHECK(tokenizer->encode("<unk>").size() == 5);
  CHECK(tokenizer->token_bytes(user) == "<tool>");
  CHECK(tokenizer->token_bytes(control).empty());
  CHECK(tokenizer->token_bytes(control, true) == "<ctrl>");
  CHECK(tokenizer->decode(Ids{'a', control, 'b'}) == "ab");
  CHECK(tokenizer->decode(Ids{'a', control, 'b'}, true) == "a<ctrl>b");
}

TEST_CASE("vocab: detokenizing is total on ids", "[tokenizer]") {
  for (const TinyVocab& vocab : {test::byte_level_vocab(), test::sentencepiece_vocab()}) {
    const TinyTokenizer tokenizer(vocab);
    const TokenId n = tokenizer->n_vocab();
    for (const TokenId id :
         {-1, -2, n, n + 1, std::numeric_limits<TokenId>::min(), std::numeric_limits<TokenId>::max()}) {
      CHECK(tokenizer->token_bytes(id).empty());
      CHECK(tokenizer->token_bytes(id, true).empty());
      CHECK_FALSE(tokenizer->is_eog(id));
    }
    CHECK(tokenizer->decode(Ids{-5, n, 'a' + (vocab.model == "llama" ? 3 : 0)}) == "a");
  }
}

TEST_CASE("vocab: generation ends at every end token that the file names or that is known by its text",
          "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId im_end = vocab.add("<|im_end|>");  // marked as ordinary text: still hidden
  const TokenId eos = vocab.add("<stop>", TokenType::kControl),
                eot = vocab.add("<done>", TokenType::kControl);
  const TokenId eom = vocab.add("<more>", TokenType::kControl),
                pad = vocab.add("<|fim_pad|>", TokenType::kControl);
  const TokenId prefix = vocab.add("<|fim_prefix|>", TokenType::kControl);
  vocab.more = [=](gguf::Writer& file) {
    file.add_u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
    file.add_u32("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(eot));
    file.add_u32("tokenizer.ggml.eom_token_id", static_cast<uint32_t>(eom));
  };
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->eog_ids() == Ids{im_end, eos, eot, eom, pad});
  for (const TokenId id : tokenizer->eog_ids()) CHECK(tokenizer->is_eog(id));
  CHECK_FALSE(tokenizer->is_eog(prefix));
  CHECK_FALSE(tokenizer->is_eog('a'));
  CHECK(tokenizer->token_bytes(im_end).empty());
  CHECK(tokenizer->encode("<|im_end|>").size() == 10);
  CHECK(tokenizer->encode("<|im_end|>", kParse) == Ids{im_end});
}

TEST_CASE("vocab: special ids outside the vocabulary count as absent", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  set_bos_and_eos(vocab, 256, 0xffffffffu, true, true);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->bos_id() == -1);
  CHECK(tokenizer->eos_id() == -1);
  CHECK(tokenizer->encode("a") == Ids{'a'});
  CHECK(tokenizer->eog_ids().empty());
}

TEST_CASE("vocab: scores and types must be one a token", "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  vocab.scores.pop_back();
  CHECK(refuses(vocab, "tokenizer.ggml.scores holds 258 values for 259 tokens"));
  vocab = test::sentencepiece_vocab();
  vocab.types.push_back(1);
  CHECK(refuses(vocab, "tokenizer.ggml.token_type holds 260 values for 259 tokens"));
}

TEST_CASE("vocab: what is no vocabulary is refused", "[tokenizer]") {
  TinyVocab vocab;
  CHECK(refuses(vocab, "tokenizer.ggml.tokens"));
  vocab = test::byte_level_vocab();
  for (const char* model : {"bert", "t5", "rwkv", ""}) {
    vocab.model = model;
    CHECK(refuses(vocab, std::string("'") + model + "' is not supported; supported are 'gpt2'"));
  }
  gguf::Writer writer;
  writer.add_string("general.architecture", "llama");
  const auto file = writer.finish();
  const auto reader = gguf::Reader::from_bytes(file);
  CHECK_THROWS_AS(Tokenizer::from_metadata(reader.metadata()), Error);
  gguf::Writer wrong;
  wrong.add_u32("tokenizer.ggml.model", 3);
  const auto wrong_file = wrong.finish();
  const auto wrong_reader = gguf::Reader::from_bytes(wrong_file);
  CHECK_THROWS_AS(Tokenizer::from_metadata(wrong_reader.metadata()), Error);
}

TEST_CASE("vocab: byte tokens by name", "[tokenizer]") {
  CHECK(byte_token_value("<0x00>") == uint8_t{0});
  CHECK(byte_token_value("<0xfF>") == uint8_t{255});
  for (const char* text : {"", "<0x0>", "<0x000>", "<0xG0>", "<0x-1>", "<0x 1>", "<1x00>", "<0x00)"}) {
    CHECK_FALSE(byte_token_value(text));
  }
}

TEST_CASE("vocab: empty, equal and strange tokens do no harm", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  vocab.add("", TokenType::kUserDefined);
  vocab.add("", TokenType::kControl);
  vocab.add("dup", TokenType::kUserDefined);
  const TokenId last = vocab.add("dup", TokenType::kUserDefined);
  vocab.add(std::string("\0x", 2), TokenType::kUserDefined);
  vocab.add("\xff\xfe");
  vocab.types.back() = 77;
  vocab.add("\xff\xfd\xc4");
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("adupb") == Ids{'a', last, 'b'});
  CHECK(tokenizer->find("") == -1);
  for (TokenId id = 0; id < tokenizer->n_vocab(); ++id) tokenizer->token_bytes(id, true);
  CHECK(tokenizer->token_bytes(tokenizer->n_vocab() - 1) == "\xff\xfd\xc4");
}

TEST_CASE("vocab: damaged vocabularies load or are refused, within a small multiple of their size",
          "[tokenizer]") {
  TinyVocab bpe = test::byte_level_vocab();
  for (const auto& [left, right] : {std::pair{"a", "b"}, {"ab", "c"}, {"t", "h"}, {"th", "e"}})
    bpe.add_merge(left, right);
  bpe.add("<|im_end|>", TokenType::kControl);
  TinyVocab spm = test::sentencepiece_vocab();
  for (const char* text : {"t", "h", "e", "th", "the"}) spm.add(text, TokenType::kNormal, -1.0f);
  size_t n_loaded = 0;
  for (const TinyVocab& vocab : {bpe, spm}) {
    const auto original = test::vocab_file(vocab);
    test::Mutator mutator(17);
    for (int round = 0; round < 2000; ++round) {
      const auto file = mutator.mutate(original, original.size());
      try {
        const test::AllocMeter meter(64 * file.size() + (size_t{1} << 20));
        const auto reader = gguf::Reader::from_bytes(file);
        const auto tokenizer = Tokenizer::from_metadata(reader.metadata());
        const auto ids = tokenizer->encode("the abc \xff<|im_end|>", kParse);
        tokenizer->decode(ids, true);
        ++n_loaded;
      } catch (const gguf::Error&) {
      } catch (const Error&) {
      }
    }
  }
  CHECK(n_loaded > 100);
}

}  // namespace minfer
