// The table of pre-tokenizers: names and expressions. Included by pretokenize.cpp only.
//
// The expressions are the models' own (their tokenizer.json), in the form in which llama.cpp has them where
// that is the same: a sequence of splits, contractions spelled out so that no Unicode case folding takes
// part. \s means Unicode White_Space (pretokenize.cpp rewrites it: PCRE2's own \s has U+180E too, which no
// model's has).
#pragma once

#include <array>
#include <string_view>

#include "core/tokenizer/pretokenize.h"

namespace minfer {

#define MINFER_CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define MINFER_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MINFER_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define MINFER_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MINFER_CJK "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

// Radford et al. 2019, Language Models are Unsupervised Multitask Learners: the expression of encoder.py.
inline constexpr char kGpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
inline constexpr char kLlama3[] = MINFER_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" MINFER_SPACES;
inline constexpr char kQwen2[] =
    MINFER_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" MINFER_SPACES;
inline constexpr char kQwen35[] = MINFER_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" MINFER_SPACES;
inline constexpr char kSeedCoder[] =
    MINFER_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" MINFER_SPACES;
inline constexpr char kBailingMoe[] =
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
// Letters by case. The models' own classes, where llama.cpp approximates them by [^a-z] and [^A-Z].
inline constexpr char kTekken[] =
    "[^\\r\\n\\p{L}\\p{N}]?" MINFER_UPPER "*" MINFER_LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" MINFER_UPPER
    "+" MINFER_LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" MINFER_SPACES;
inline constexpr char kGpt4o[] =
    "[^\\r\\n\\p{L}\\p{N}]?" MINFER_UPPER "*" MINFER_LOWER "+" MINFER_CONTRACTIONS
    "?|[^\\r\\n\\p{L}\\p{N}]?" MINFER_UPPER "+" MINFER_LOWER "*" MINFER_CONTRACTIONS
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" MINFER_SPACES;
inline constexpr char kDeepseekV3[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" MINFER_SPACES;
// Cased letters, but for those that the model's list leaves out.
inline constexpr char kDeepseekLlmLetters[] =
    "\\s?[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{"
    "295}-\\x{2af}"
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{"
    "3a1}"
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{"
    "13f5}"
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}"
    "-\\x{1d9a}"
    "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}"
    "\\x{1f5b}"
    "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-"
    "\\x{1fcc}"
    "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}"
    "\\x{2107}"
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-"
    "\\x{2134}"
    "\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-"
    "\\x{2ce4}"
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-"
    "\\x{a787}"
    "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}"
    "-\\x{ff5a}"
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{"
    "10cf2}"
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]+";
inline constexpr char kDeepseekLlmSigns[] =
    "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+";
// The model has \s+$. The lookbehind changes no match: it keeps a run that does not reach the end from being
// tried again from each of its characters.
inline constexpr char kTrailingSpaces[] = "(?<!\\s)\\s++$";
inline constexpr char kWords[] =
    " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+";

#undef MINFER_SPACES
#undef MINFER_UPPER
#undef MINFER_LOWER

struct PretokenizerEntry {
  PretokenizerTraits traits;
  std::array<const char*, 6> expressions;  // in turn; null ends the list
};

// In alphabetical order.
inline constexpr PretokenizerEntry kPretokenizers[] = {
    {{"a.x-4.0"}, {kGpt2}},
    {{"bailingmoe"}, {kBailingMoe}},
    {{"bailingmoe2"}, {kBailingMoe}},
    {{"bloom"}, {kWords}},
    {{"chatglm-bpe"}, {kLlama3}},
    {{"codeshell"}, {"\\p{N}", kGpt2}},
    {{"command-r"}, {"\\p{N}", kGpt2}},
    {{"dbrx"}, {kLlama3}},
    {{"deepseek-coder"}, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", MINFER_CJK, "\\p{N}"}},
    {{"deepseek-llm"},
     {"[\\r\\n]", kDeepseekLlmLetters, kDeepseekLlmSigns, kTrailingSpaces, MINFER_CJK, "\\p{N}+"}},
    {{"deepseek-r1-qwen"}, {kQwen2}},
    {{"deepseek-v3"},
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+", kDeepseekV3}},
    {{"default"}, {"[\\p{P}$+<=>^~|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {{"exaone"}, {"\\p{N}", kGpt2}},
    {{"exaone4"}, {kGpt2}},
    {{"falcon"}, {"[\\p{P}$+<=>^~|`]+", kGpt2, "[0-9][0-9][0-9]"}},
    {{"falcon-h1", true, true}, {kLlama3}},
    {{"falcon3", true, true}, {kLlama3}},
    {{"gigachat"}, {kGpt2}},
    {{"glm4", true}, {kLlama3}},
    {{"gpt-2"}, {kGpt2}},
    {{"gpt-4o"}, {kGpt4o}},
    {{"gpt3-finnish"}, {kWords}},
    {{"granite-docling"}, {kGpt2}},
    {{"grok-2"}, {kQwen2}},
    {{"hunyuan"}, {kQwen2}},
    {{"hunyuan-dense"},
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+", kDeepseekV3}},
    {{"jais"}, {kGpt2}},
    {{"jina-de"}, {kGpt2}},
    {{"jina-es"}, {kGpt2}},
    {{"jina-v1-en"}, {kGpt2}},
    {{"jina-v2-code"}, {kGpt2}},
    {{"jina-v2-de"}, {kGpt2}},
    {{"jina-v2-es"}, {kGpt2}},
    {{"kanana2"}, {kGpt4o}},
    {{"kormo"}, {kQwen2}},
    {{"lfm2", true, true}, {kLlama3}},
    {{"llada-moe"}, {kBailingMoe}},
    {{"llama-bpe", true, true}, {kLlama3}},
    {{"llama-v3", true, true}, {kLlama3}},
    {{"llama3", true, true}, {kLlama3}},
    {{"llama4"}, {kGpt4o}},
    {{"megrez"}, {kQwen2}},
    {{"mellum"}, {kGpt2}},
    {{"midm-2.0", true, true}, {kLlama3}},
    {{"minerva-7b"}, {"\\p{N}", kGpt2}},
    {{"modern-bert"}, {kGpt2}},
    {{"mpt"}, {kGpt2}},
    {{"olmo"}, {kGpt2}},
    {{"phi-2"}, {kGpt2}},
    {{"pixtral", true, true}, {kLlama3}},
    {{"poro-chat"}, {kWords}},
    {{"qwen2"}, {kQwen2}},
    {{"qwen35"}, {kQwen35}},
    {{"refact"}, {"\\p{N}", kGpt2}},
    {{"roberta-bpe"}, {kGpt2}},
    {{"seed-coder"}, {kSeedCoder}},
    {{"smaug-bpe"}, {kLlama3}},
    {{"smollm"}, {"\\p{N}", kGpt2}},
    {{"solar-open"}, {kQwen2}},
    {{"stablelm2"}, {kQwen2}},
    {{"starcoder"}, {"\\p{N}", kGpt2}},
    {{"tekken", true, true}, {kTekken}},
    {{"trillion"}, {kGpt2}},
    {{"viking"}, {kWords, "\\p{N}"}},
};

#undef MINFER_CONTRACTIONS
#undef MINFER_CJK

}  // namespace minfer
