#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/jinja/interpreter.h"

namespace minfer::jinja {
namespace {

using Json = nlohmann::ordered_json;

Value text_from(Runtime& runtime, const std::string& bytes, bool is_input) {
  if (!is_input || bytes.empty()) return Value::text(runtime.view(bytes));
  return Value::text(runtime.view(bytes, runtime.keep({{0, bytes.size()}})));
}

// A role is a name, of which templates make tokens ('<|' + role + '|>'); one that spells more than a name is
// text.
bool is_role(const std::string& key, const Json& value) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return key == "role" && value.is_string() &&
         value.get_ref<const std::string&>().find_first_not_of(kLetters) == std::string::npos;
}

Value convert(Runtime& runtime, const Json& json, bool is_input, int depth) {
  if (depth > runtime.limits().depth) {
    runtime.fail(fmt::format("variables nested more than {} deep", runtime.limits().depth));
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > uint64_t{INT64_MAX}) {
        runtime.fail(fmt::format("{} in the variables is an integer beyond 64 bits", json.get<uint64_t>()));
      }
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string:
      return text_from(runtime, json.get_ref<const std::string&>(), is_input);
    case Json::value_t::array: {
      List* list = runtime.new_list();
      for (const Json& item : json) runtime.append(*list, convert(runtime, item, is_input, depth + 1));
      return Value::list(list);
    }
    case Json::value_t::object: {
      Dict* dict = runtime.new_dict();
      for (const auto& [key, item] : json.get_ref<const Json::object_t&>()) {
        runtime.set(*dict, text_from(runtime, key, is_input),
                    convert(runtime, item, is_input && !is_role(key, item), depth + 1));
      }
      return Value::dict(dict);
    }
    default:
      return {};
  }
}

}  // namespace

Value from_json(Runtime& runtime, const Json& json, bool is_input) {
  return convert(runtime, json, is_input, 0);
}

}  // namespace minfer::jinja
