#include "core/batch_file/request.h"

#include <spdlog/fmt/fmt.h>

#include <map>

#include "core/batch_file/fields.h"
#include "core/batch_file/request_options.h"
#include "core/error.h"
#include "core/utf8.h"
#include "gguf/error.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kChatUrl = "/v1/chat/completions";
constexpr const char* kTextUrl = "/v1/completions";
constexpr int kDeepest = 100;  // nesting; what walks the value later does so by recursion

void check_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const int size = utf8_char_size(text.substr(at));
    if (size <= 0) throw Error(ExitCode::kUsage, fmt::format("invalid UTF-8 at byte {}", at + 1));
    at += static_cast<size_t>(size);
  }
}

// Right for JSON; of anything else no more than a guess, which the parser then refuses.
void check_nesting(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > kDeepest) throw Error(ExitCode::kUsage, fmt::format("nested deeper than {}", kDeepest));
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
}

Json parse_object(std::string_view text) {
  check_nesting(text);
  Json value;
  try {
    value = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ExitCode::kUsage, fmt::format("not JSON, from byte {} on", error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(ExitCode::kUsage, "a number that is too large");
  }
  if (!value.is_object())
    throw Error(ExitCode::kUsage, "not a JSON object, but " + std::string(value.type_name()));
  return value;
}

// Nothing where the field is absent.
Json read_id(Fields& fields, const std::string& name) {
  const Json* id = fields.find(name);
  if (id == nullptr) return nullptr;
  if (!id->is_string() && !id->is_number_integer()) refuse_field(name, *id, "a text or a whole number");
  return *id;
}

// What is asked, chat or text; `url` where the line names the API.
void read_question(Fields& body, const std::string& url, BatchRequest& request) {
  const Json* messages = body.find("messages");
  const bool has_prompt = body.read("prompt", request.prompt);
  if (messages != nullptr && has_prompt)
    throw Error(ExitCode::kUsage, "messages and prompt: one of them at a time");
  if (messages == nullptr && !has_prompt) throw Error(ExitCode::kUsage, "has neither messages nor prompt");
  if (url == kChatUrl && has_prompt)
    throw Error(ExitCode::kUsage, "prompt: belongs to " + std::string(kTextUrl));
  if (url == kTextUrl && !has_prompt)
    throw Error(ExitCode::kUsage, "messages: belong to " + std::string(kChatUrl));
  if (has_prompt && request.prompt.empty()) throw Error(ExitCode::kUsage, "the prompt is empty");
  if (messages != nullptr) request.messages = read_messages(*messages);
}

class Parser {
 public:
  Parser(BatchFormat format, const GenerateOptions& defaults) : format_(format), defaults_(defaults) {}

  void add(const BatchPiece& piece) {
    BatchRequest& request = file_.requests.emplace_back();
    request.number = piece.number;
    request.options = defaults_;
    const bool is_json = format_ == BatchFormat::kJsonLines;
    if (!is_json) request.id = piece.number;
    try {
      check_utf8(piece.text);
      if (is_json) return read_json(parse_object(piece.text), request);
      request.prompt = piece.text;
      if (request.prompt.empty()) throw Error(ExitCode::kUsage, "the prompt is empty");
    } catch (const Error& error) {
      request.error = error.what();
    }
  }

  BatchFile take() {
    // A line of which nothing can be read is taken for one of the kind that the file begins with.
    for (BatchRequest& request : file_.requests) {
      if (request.id.is_null()) request.is_openai = request.is_openai || begins_openai_;
    }
    return std::move(file_);
  }

 private:
  void read_json(const Json& line, BatchRequest& request) {
    Fields fields(line);
    request.is_openai = line.contains("custom_id") || line.contains("body");
    if (!seen_kind_) begins_openai_ = request.is_openai;
    seen_kind_ = true;
    take_id(read_id(fields, request.is_openai ? "custom_id" : "id"), request);
    if (request.is_openai) {
      read_openai_line(fields, request);
    } else {
      read_body(fields, "", request);
    }
    note_unread(fields);
  }

  void take_id(Json id, BatchRequest& request) {
    if (id.is_null() && request.is_openai) throw Error(ExitCode::kUsage, "has no custom_id");
    request.id = id.is_null() ? Json(request.number) : std::move(id);
    const auto [first, is_new] = ids_.emplace(request.id.dump(), request.number);
    if (is_new) return;
    throw Error(ExitCode::kUsage,
                fmt::format("{}: {} is the id of line {} too", request.is_openai ? "custom_id" : "id",
                            gguf::quoted(first->first), first->second));
  }

  void read_openai_line(Fields& fields, BatchRequest& request) {
    std::string method = "POST", url;
    fields.read("method", method);
    if (method != "POST") throw Error(ExitCode::kUsage, "method: " + gguf::quoted(method) + " is not POST");
    if (fields.read("url", url) && url != kChatUrl && url != kTextUrl) {
      throw Error(ExitCode::kUsage,
                  "url: " + gguf::quoted(url) + " is neither " + kChatUrl + " nor " + kTextUrl);
    }
    const Json* body = fields.find("body");
    if (body == nullptr) throw Error(ExitCode::kUsage, "has no body");
    if (!body->is_object()) refuse_field("body", *body, "an object");
    Fields inner(*body);
    read_body(inner, url, request);
    note_unread(inner);
  }

  static void read_body(Fields& body, const std::string& url, BatchRequest& request) {
    read_question(body, url, request);
    read_request_options(body, request);
  }

  void note_unread(const Fields& fields) {
    for (std::string& name : fields.unread()) file_.ignored_fields.insert(std::move(name));
  }

  BatchFormat format_;
  const GenerateOptions& defaults_;
  BatchFile file_;
  std::map<std::string, int64_t> ids_;  // as JSON, so that 1 and "1" differ; and the number of their piece
  bool seen_kind_ = false, begins_openai_ = false;
};

}  // namespace

BatchFile parse_batch(const std::vector<BatchPiece>& pieces, BatchFormat format,
                      const GenerateOptions& defaults) {
  Parser parser(format, defaults);
  for (const BatchPiece& piece : pieces) parser.add(piece);
  return parser.take();
}

}  // namespace minfer
