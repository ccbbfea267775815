#include "core/batch_file/resume.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/batch_file/record.h"
#include "core/error.h"
#include "gguf/error.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& name, size_t line, const std::string& why) {
  throw Error(ExitCode::kUsage, fmt::format("--resume: {}, line {}: {}", gguf::printable(name), line, why));
}

// Whether a whole record tells of an error; nothing where it is none of this request.
std::optional<bool> is_error_record(std::string_view line, const BatchRequest& request) {
  const Json record = Json::parse(line, nullptr, false);
  if (!record.is_object()) return {};
  const auto id = record.find(request.is_openai ? "custom_id" : "id");
  if (id == record.end() || *id != request.id) return {};
  if (request.id.is_null() && record.value("line", Json()) != request.number) return {};
  const auto error = record.find("error");
  const bool has_error = error != record.end() && !error->is_null();
  const bool has_answer = request.is_openai ? record.contains("response") && !record.at("response").is_null()
                                            : record.contains("text");
  if (has_error == has_answer) return {};
  return has_error;
}

bool begin_alike(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  return a.substr(0, n) == b.substr(0, n);
}

}  // namespace

Finished read_finished(std::string_view output, std::span<const BatchRequest> requests,
                       const std::string& name) {
  Finished finished;
  while (finished.n_bytes < output.size()) {
    const std::string_view rest = output.substr(finished.n_bytes);
    const size_t line = finished.n_records + 1;
    if (finished.n_records == requests.size()) {
      refuse(name, line, fmt::format("the input has only {} requests", requests.size()));
    }
    const BatchRequest& request = requests[finished.n_records];
    const std::string expected =
        fmt::format("not the record of request {}, id {}", line, gguf::quoted(request.id.dump()));
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (!begin_alike(rest, record_head(request))) refuse(name, line, expected);
      break;
    }
    const auto is_error = is_error_record(rest.substr(0, end), request);
    if (!is_error) refuse(name, line, expected);
    finished.n_failed += *is_error;
    finished.n_bytes += end + 1;
    ++finished.n_records;
  }
  return finished;
}

}  // namespace minfer
