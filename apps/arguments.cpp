#include "apps/arguments.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/error.h"

namespace minfer {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::kUsage, what);
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const CLI::Option* find_long(const CLI::App& app, std::string_view name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_lname(std::string(name))) return option;
  }
  return nullptr;
}

const CLI::Option* find_short(const CLI::App& app, char name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_sname(std::string(1, name))) return option;
  }
  return nullptr;
}

// Levenshtein 1966: the insertions, deletions and substitutions that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // from a's beginning so far to each beginning of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// -n5, but not -ngl.
bool can_hold(const CLI::Option& option, char first) {
  return option.get_type_name() != "N" || first == '-' || (first >= '0' && first <= '9');
}

// A flag that someone who wrote `name` may have meant; empty where none is near.
std::string nearest_flag(const CLI::App& app, std::string_view name) {
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      const bool extends = known.size() >= 3 && name.size() >= 3 &&
                           (name.starts_with(known) || known.starts_with(name));  // --temperature
      const size_t distance = extends ? 1 : edit_distance(name, known);
      if (distance < least) {
        least = distance;
        nearest = known;
      }
    }
  }
  return nearest;
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& word, std::string_view name) {
  const std::string nearest = nearest_flag(app, name);
  refuse(word + ": unknown flag" +
         (nearest.empty() ? " (--help lists them)" : "; did you mean --" + nearest + "?"));
}

class Words {
 public:
  Words(const CLI::App& app, const std::vector<std::string>& words) : app_(app), words_(words) {}

  std::vector<Argument> read() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == kSystemAlias) {
        add(find_long(app_, "system-prompt"), word, {});
      } else if (word.starts_with("--") && word.size() > 2) {
        read_long(word);
      } else if (word.starts_with('-') && word.size() > 1 && word != "--") {
        read_short(word);
      } else {
        refuse("'" + word + "': not a flag; a prompt is given by -p TEXT, a model by -m FILE");
      }
    }
    return std::move(out_);
  }

 private:
  void read_long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const CLI::Option* option = find_long(app_, flag.substr(2));
    if (option == nullptr) refuse_unknown(app_, flag, flag.substr(2));
    if (equals == std::string::npos) return add(option, flag, {});
    if (!takes_value(*option)) refuse(flag + ": takes no value, but got '" + word.substr(equals + 1) + "'");
    add(option, flag, word.substr(equals + 1));
  }

  void read_short(const std::string& word) {
    const std::string_view name = std::string_view(word).substr(1);
    if (name.size() > 1 && find_long(app_, name) != nullptr) refuse_unknown(app_, word, name);  // -temp
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string flag = {'-', word[i]};
      const CLI::Option* option = find_short(app_, word[i]);
      const bool has_rest = i + 1 < word.size();
      if (option == nullptr || (takes_value(*option) && has_rest && !can_hold(*option, word[i + 1]))) {
        refuse_unknown(app_, word, name);
      }
      if (takes_value(*option) && has_rest) return add(option, flag, word.substr(i + 1));
      add(option, flag, {});
    }
  }

  // Without a value at hand, the next word is it.
  void add(const CLI::Option* option, const std::string& flag, std::optional<std::string> value) {
    if (takes_value(*option) && !value) {
      if (next_ == words_.size()) refuse(flag + ": needs a value (" + option->get_type_name() + ")");
      value = words_[next_++];
    }
    out_.push_back({option, flag, std::move(value)});
  }

  const CLI::App& app_;
  const std::vector<std::string>& words_;
  size_t next_ = 0;
  std::vector<Argument> out_;
};

}  // namespace

std::vector<Argument> read_arguments(const CLI::App& app, const std::vector<std::string>& words) {
  return Words(app, words).read();
}

}  // namespace minfer
