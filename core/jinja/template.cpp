#include "core/jinja/template.h"

#include <fmt/format.h>

#include "core/jinja/interpreter.h"

namespace minfer::jinja {

Error::Error(const std::string& message, int line, int column, bool raised)
    : std::runtime_error(raised ? message : fmt::format("line {}, column {}: {}", line, column, message)),
      message_(message),
      line_(line),
      column_(column),
      raised_(raised) {}

Template::Template(std::string_view source) : program_(parse(source)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;

Rendered Template::render(const nlohmann::ordered_json& input, const nlohmann::ordered_json& variables,
                          const std::tm& now, const Limits& limits) const {
  Runtime runtime(program_->source, limits, now);
  TextBuilder out(runtime);
  Interpreter(*program_, runtime, input, variables).run(out);
  return {out.take_bytes(), out.take_input()};
}

}  // namespace minfer::jinja
