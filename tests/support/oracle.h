// Where the tests find right answers and real models.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace minfer::test {

// Files in folder `kind` (dequant, tokenizer, parity, real, templates) of the oracle whose name ends with
// `suffix`, sorted. The oracle is $MINFER_ORACLE_DIR, else ../shared/oracle beside the checkout, else
// tests/data. Empty when there are none; throws when there are none and MINFER_REQUIRE_ORACLE=1.
std::vector<std::filesystem::path> oracle_files(const std::string& kind, const std::string& suffix);

// A model file by name, in $MINFER_MODEL_DIR (folders, colon-separated), else models/ of the checkout and
// ../shared/models. Nothing when there is none; throws then when MINFER_REQUIRE_ORACLE=1.
std::optional<std::filesystem::path> find_model(const std::string& file_name);

// The same for a model by what it is: the first GGUF file (of a split model, the first shard) whose name
// begins with `name`, upper and lower case and punctuation aside ("smollm2-135m-instruct-q4_1":
// SmolLM2-135M-Instruct.Q4_1.gguf).
std::optional<std::filesystem::path> find_model_like(const std::string& name);

std::string read_file(const std::filesystem::path& path);

}  // namespace minfer::test
