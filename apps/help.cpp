#include "apps/help.h"

#include <spdlog/fmt/fmt.h>

#include "apps/arguments.h"

namespace minfer {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kIndent = 30;  // where the help of a flag begins

constexpr const char* kHeader =
    "minfer-cli runs a GGUF model: completes a text, talks, answers files of prompts.\n"
    "The answer goes to stdout, everything else to stderr.\n\n"
    "  minfer-cli -m model.gguf -p 'Once upon a time' -n 100    complete a raw text\n"
    "  minfer-cli -m model.gguf --chat                          talk, on a terminal\n"
    "  minfer-cli -m model.gguf --chat -p 'Hello' --temp 0.7    one turn of a chat\n"
    "  minfer-cli -m model.gguf --batch in.jsonl --output out.jsonl --resume\n";

constexpr const char* kFooter =
    "\nA value follows its flag, or an equals sign; it may look like a flag itself. A\n"
    "flag given twice counts as given last, unless its help says otherwise.\n\n"
    "Exit codes: 0 done, 1 runtime error (or a failed request of a batch), 2 usage,\n"
    "3 model file, 4 device or memory, 130 interrupted (Ctrl-C, SIGTERM, SIGHUP).\n";

std::string names(const CLI::Option& option) {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + name; };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) {
    if (name == "system-prompt") add(kSystemAlias);
    add("--" + name);
  }
  return option.get_type_name().empty() ? out : out + " " + option.get_type_name();
}

// Words until the line is full, and the next line below the first one's beginning.
std::string wrapped(std::string_view text) {
  std::string out;
  size_t column = kIndent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > kIndent && column + 1 + word.size() > kWidth) {
      out += '\n' + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + '\n';
}

std::string entry(const CLI::Option& option) {
  const std::string left = "  " + names(option);
  const bool fits = left.size() + 2 <= kIndent;
  return fits ? fmt::format("{:<{}}{}", left, kIndent, wrapped(option.get_description()))
              : left + '\n' + std::string(kIndent, ' ') + wrapped(option.get_description());
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string out = kHeader;
  for (const std::string& group : app.get_groups()) {
    out += "\n" + group + ":\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) out += entry(*option);
    }
  }
  return out + kFooter;
}

}  // namespace minfer
