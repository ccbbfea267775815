#include "core/chat_history.h"

#include <algorithm>
#include <utility>

namespace minfer {
namespace {

nlohmann::ordered_json message(const char* role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

// prompt's text from byte `begin` on, with its ranges.
RenderedPrompt tail(const RenderedPrompt& prompt, size_t begin) {
  RenderedPrompt rest{prompt.text.substr(begin), {}};
  for (const ByteRange& range : prompt.literal) {
    if (range.end > begin) rest.literal.push_back({std::max(range.begin, begin) - begin, range.end - begin});
  }
  return rest;
}

bool begins_with_scaffolding(const RenderedPrompt& prompt, std::string_view text) {
  return prompt.text.starts_with(text) && (prompt.literal.empty() || prompt.literal[0].begin >= text.size());
}

}  // namespace

ChatHistory::ChatHistory(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                         const std::optional<std::string>& system, std::string prefill)
    : template_(chat_template), tokenizer_(tokenizer), prefill_(std::move(prefill)) {
  if (system) messages_.push_back(message("system", *system));
  n_system_ = messages_.size();
}

ChatHistory::Prompt ChatHistory::ask(const std::string& text) const {
  nlohmann::ordered_json messages = messages_;
  messages.push_back(message("user", text));
  RenderedPrompt rendered = template_.render(messages);
  append_literal(rendered, prefill_);
  if (known_.empty() || !rendered.text.starts_with(known_.back().text)) {
    auto ids = encode(tokenizer_, rendered);
    return {std::move(rendered.text), std::move(ids)};
  }
  const Known& known = known_.back();
  std::vector<TokenId> ids = known.ids;
  RenderedPrompt rest = tail(rendered, known.text.size());
  const std::string end = tokenizer_.token_bytes(known.end, true);  // empty for none
  const bool ends = !end.empty() && begins_with_scaffolding(rest, end);
  if (ends) {
    ids.push_back(known.end);
    rest = tail(rest, end.size());
  }
  const auto new_ids = tokenizer_.encode(
      rest.text, {.add_special = false, .parse_special = true, .literal = rest.literal, .continues = !ends});
  ids.insert(ids.end(), new_ids.begin(), new_ids.end());
  return {std::move(rendered.text), std::move(ids)};
}

// A token of which not every byte was shown (a stop string in it, an incomplete character) is left out, with
// all behind it: the next prompt spells what is left of the text.
void ChatHistory::append_answer(const Tokenizer& tokenizer, std::string_view text,
                                std::span<const TokenId> ids, Known& known) {
  if (!ids.empty() && tokenizer.is_eog(ids.back())) {
    known.end = ids.back();
    ids = ids.first(ids.size() - 1);
  }
  for (const TokenId id : ids) {
    const std::string bytes = tokenizer.token_bytes(id);
    if (!text.starts_with(bytes)) {
      known.end = -1;
      return;
    }
    known.text += bytes;
    known.ids.push_back(id);
    text.remove_prefix(bytes.size());
  }
  if (!text.empty()) known.end = -1;
}

void ChatHistory::add(const std::string& user_text, const Prompt& prompt, std::string_view text,
                      std::span<const TokenId> ids) {
  messages_.push_back(message("user", user_text));
  messages_.push_back(message("assistant", prefill_ + std::string(text)));
  Known known{prompt.text, prompt.ids};
  append_answer(tokenizer_, text, ids, known);
  known_.push_back(std::move(known));
}

std::optional<ChatHistory::Turn> ChatHistory::take_last() {
  if (known_.empty()) return std::nullopt;
  Turn turn;
  turn.known = std::move(known_.back());
  known_.pop_back();
  turn.answer = std::move(messages_.back());
  messages_.erase(messages_.size() - 1);
  turn.message = messages_.back().at("content").get<std::string>();
  messages_.erase(messages_.size() - 1);
  return turn;
}

void ChatHistory::put_back(Turn turn) {
  messages_.push_back(message("user", std::move(turn.message)));
  messages_.push_back(std::move(turn.answer));
  known_.push_back(std::move(turn.known));
}

void ChatHistory::clear() {
  known_.clear();
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(n_system_), messages_.end());
}

}  // namespace minfer
