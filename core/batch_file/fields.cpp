#include "core/batch_file/fields.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "core/error.h"
#include "gguf/error.h"

namespace minfer {

using Json = nlohmann::ordered_json;

void refuse_field(const std::string& name, const Json& value, const std::string& wanted) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  throw Error(ExitCode::kUsage, name + ": " + gguf::quoted(text) + " is not " + wanted);
}

std::optional<int32_t> as_integer(const Json& value, Range<int32_t> allowed) {
  if (!value.is_number_integer()) return {};
  // Unsigned ones may be too large for the signed type.
  const bool in_range =
      value.is_number_unsigned()
          ? std::cmp_greater_equal(value.get<uint64_t>(), allowed.lowest) &&
                std::cmp_less_equal(value.get<uint64_t>(), allowed.highest)
          : value.get<int64_t>() >= allowed.lowest && value.get<int64_t>() <= allowed.highest;
  if (!in_range) return {};
  return value.get<int32_t>();
}

const Json* Fields::find(const std::string& name) {
  known_.insert(name);
  const auto field = object_.find(name);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

bool Fields::read(const std::string& name, bool& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) refuse_field(name, *value, "true or false");
  target = value->get<bool>();
  return true;
}

bool Fields::read(const std::string& name, std::string& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_string()) refuse_field(name, *value, "a text");
  target = value->get<std::string>();
  return true;
}

bool Fields::read(const std::string& name, uint64_t& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_number_unsigned())
    refuse_field(name, *value, "a whole number from 0 to 18446744073709551615");
  target = value->get<uint64_t>();
  return true;
}

bool Fields::read(const std::string& name, int32_t& target, Range<int32_t> allowed) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  const auto number = as_integer(*value, allowed);
  if (!number) {
    refuse_field(name, *value, fmt::format("a whole number from {} to {}", allowed.lowest, allowed.highest));
  }
  target = *number;
  return true;
}

bool Fields::read(const std::string& name, double& target, Range<double> allowed) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_number() || value->get<double>() < allowed.lowest ||
      value->get<double>() > allowed.highest) {
    refuse_field(name, *value, fmt::format("a number from {} to {}", allowed.lowest, allowed.highest));
  }
  target = value->get<double>();
  return true;
}

bool Fields::read(const std::string& name, std::vector<std::string>& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  const Json texts = value->is_array() ? *value : Json::array({*value});
  target.clear();
  for (const Json& text : texts) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      refuse_field(name, *value, "a text or an array of texts, none of them empty");
    }
    target.push_back(text.get<std::string>());
  }
  return true;
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace minfer
