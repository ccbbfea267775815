// The fields of a JSON object that a stranger wrote: typed, in range, none overlooked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/option_ranges.h"

namespace minfer {

// Readers return whether the field is there; null counts as absent. All throw Error(kUsage) with the field's
// name, its value and what is allowed.
class Fields {
 public:
  explicit Fields(const nlohmann::ordered_json& object) : object_(object) {}  // an object that outlives this

  // The field's value; nullptr where it is absent or null.
  const nlohmann::ordered_json* find(const std::string& name);

  bool read(const std::string& name, bool& target);
  bool read(const std::string& name, std::string& target);
  bool read(const std::string& name, uint64_t& target);
  bool read(const std::string& name, int32_t& target, Range<int32_t> allowed);
  bool read(const std::string& name, double& target, Range<double> allowed);
  // A text or an array of texts, none of them empty.
  bool read(const std::string& name, std::vector<std::string>& target);

  // Names that nobody asked for.
  std::vector<std::string> unread() const;

 private:
  const nlohmann::ordered_json& object_;
  std::set<std::string> known_;
};

// "temperature: '"hot"' is not a number from 0 to 2"
[[noreturn]] void refuse_field(const std::string& name, const nlohmann::ordered_json& value,
                               const std::string& wanted);

// A whole number in the range, if it is one.
std::optional<int32_t> as_integer(const nlohmann::ordered_json& value, Range<int32_t> allowed);

}  // namespace minfer
