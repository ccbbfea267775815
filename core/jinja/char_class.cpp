#include "core/jinja/char_class.h"

#include <array>
#include <memory>
#include <stdexcept>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace minfer::jinja {
namespace {

class Pattern {
 public:
  explicit Pattern(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr));
    if (!code_) throw std::logic_error("char_class: a pattern that does not compile");
  }

  // The end of the match at or after `begin`; npos: none.
  size_t match_end(std::string_view bytes, size_t begin) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
    const int n = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(bytes.data()), bytes.size(), begin, 0,
                              match.get(), nullptr);
    return n < 0 ? std::string_view::npos : pcre2_get_ovector_pointer(match.get())[1];
  }

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

}  // namespace

bool consists_of(std::string_view bytes, CharClass char_class) {
  // Possessive, so that no class goes back over what it took. Superscripts are Python's digits that are not
  // decimal.
  static const std::array<Pattern, 6> kPatterns = {
      Pattern(R"(\A\p{L}++\z)"),
      Pattern(R"(\A[\p{L}\p{N}]++\z)"),
      Pattern(R"(\A\p{Nd}++\z)"),
      Pattern(R"(\A[\p{Nd}\x{b2}\x{b3}\x{b9}\x{2070}\x{2074}-\x{2079}\x{2080}-\x{2089}]++\z)"),
      Pattern(R"(\A\p{N}++\z)"),
      Pattern(R"(\A[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*+\z)"),
  };
  return !bytes.empty() && kPatterns[static_cast<size_t>(char_class)].match_end(bytes, 0) == bytes.size();
}

size_t count_words(std::string_view bytes) {
  static const Pattern kWord(R"([\p{L}\p{N}_]++)");
  size_t n_words = 0;
  for (size_t at = 0; (at = kWord.match_end(bytes, at)) != std::string_view::npos;) ++n_words;
  return n_words;
}

}  // namespace minfer::jinja
