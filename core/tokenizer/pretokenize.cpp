#include "core/tokenizer/pretokenize.h"

#include <pcre2.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/tokenizer/pretokenizers.h"
#include "core/utf8.h"

namespace minfer {
namespace {

const PretokenizerEntry* find_entry(std::string_view name) {
  const auto* const entry = std::find_if(std::begin(kPretokenizers), std::end(kPretokenizers),
                                         [&](const PretokenizerEntry& e) { return e.traits.name == name; });
  return entry == std::end(kPretokenizers) ? nullptr : entry;
}

// \s and \S as Unicode's White_Space, inside brackets and outside.
std::string with_unicode_spaces(std::string_view expression) {
  constexpr std::string_view kSpaces = "\\t-\\r \\x{85}\\p{Z}";
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c != '\\' || i + 1 == expression.size()) {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's') {
      out.append(in_class ? "" : "[").append(kSpaces).append(in_class ? "" : "]");
    } else if (escaped == 'S') {
      out.append("[^").append(kSpaces).append("]");
    } else {
      out.append({c, escaped});
    }
  }
  return out;
}

std::string pcre_message(int code) {
  PCRE2_UCHAR text[160];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// The first byte that belongs to a run of the other kind (valid UTF-8, or not) than the one that starts at
// `from`.
size_t run_end(std::string_view text, size_t from, bool& valid) {
  const auto size_at = [&](size_t at) { return std::max(0, utf8_char_size(text.substr(at))); };
  valid = size_at(from) > 0;
  size_t at = from;
  while (at < text.size()) {
    const int size = size_at(at);
    if ((size > 0) != valid) break;
    at += valid ? static_cast<size_t>(size) : 1;
  }
  return at;
}

}  // namespace

const PretokenizerTraits* find_pretokenizer(std::string_view name) {
  const PretokenizerEntry* const entry = find_entry(name);
  return entry ? &entry->traits : nullptr;
}

std::string known_pretokenizers() {
  std::string names;
  for (const PretokenizerEntry& entry : kPretokenizers) {
    if (!names.empty()) names += ", ";
    names += entry.traits.name;
  }
  return names;
}

class Pretokenizer::Expression {
 public:
  explicit Expression(const char* text) {
    const std::string rewritten = with_unicode_spaces(text);
    int error = 0;
    PCRE2_SIZE at = 0;
    // $ is the end of the piece alone, as in the models' own libraries.
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, nullptr));
    if (!code_) {
      throw Error(ExitCode::kRuntime, "pre-tokenizer expression " + rewritten + " at " + std::to_string(at) +
                                          ": " + pcre_message(error));
    }
    // Where there is no JIT (the library lacks it, or the system forbids writable code), pcre2_match
    // interprets.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    context_.reset(pcre2_match_context_create(nullptr));
    // The limits stop patterns that explode; these only ever walk back over one run, which may be the whole
    // text.
    pcre2_set_match_limit(context_.get(), std::numeric_limits<uint32_t>::max());
  }

  // Appends to `ends` (offsets from `base`) the pieces of `piece`, valid UTF-8, that starts at `offset`.
  void split(std::string_view piece, size_t offset, pcre2_match_data* match,
             std::vector<uint32_t>& ends) const {
    size_t at = 0;
    const auto push = [&](size_t end) { ends.push_back(static_cast<uint32_t>(offset + end)); };
    while (at < piece.size() && next(piece, at, match)) {
      const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(match);
      if (found[0] > at) push(found[0]);
      push(found[1]);
      at = found[1];
    }
    if (at < piece.size()) push(piece.size());
  }

 private:
  bool next(std::string_view piece, size_t from, pcre2_match_data* match) const {
    constexpr uint32_t kOptions = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    const auto* const text = reinterpret_cast<PCRE2_SPTR>(piece.data());
    int rc = pcre2_match(code_.get(), text, piece.size(), from, kOptions, match, context_.get());
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code_.get(), text, piece.size(), from, kOptions | PCRE2_NO_JIT, match, context_.get());
    }
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    if (rc < 0) {
      throw Error(ExitCode::kRuntime,
                  "pre-tokenizing " + std::to_string(piece.size()) + " bytes: " + pcre_message(rc));
    }
    return true;
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
};

Pretokenizer::Pretokenizer(std::string_view name) {
  for (const char* text : find_entry(name)->expressions) {
    if (!text) break;
    expressions_.push_back(std::make_unique<Expression>(text));
  }
}

Pretokenizer::~Pretokenizer() = default;

std::vector<uint32_t> Pretokenizer::split(std::string_view text) const {
  // Only the whole match is of interest: one pair of offsets.
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  std::vector<uint32_t> all, pieces, finer;
  for (size_t from = 0, end = 0; from < text.size(); from = end) {
    bool valid = false;
    end = run_end(text, from, valid);
    pieces.assign(1, static_cast<uint32_t>(end));
    for (const auto& expression : expressions_) {
      if (!valid) break;
      finer.clear();
      size_t start = from;
      for (const uint32_t piece_end : pieces) {
        expression->split(text.substr(start, piece_end - start), start, match.get(), finer);
        start = piece_end;
      }
      pieces.swap(finer);
    }
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  return all;
}

}  // namespace minfer
