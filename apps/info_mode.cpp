#include <spdlog/fmt/fmt.h>

#include <map>

#include "apps/device.h"
#include "apps/modes.h"
#include "apps/output.h"

namespace minfer {
namespace {

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("{:<18}{}\n", label, gguf::printable(value));
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string describe_file(const gguf::Reader& file) {
  const auto text = [&](std::string_view key) {
    return std::string(file.metadata().get_string(key).value_or("-"));
  };
  std::string out = line("file", file.name());
  out += line("format", fmt::format("GGUF {}, {} file{}, {}", file.version(), file.n_shards(),
                                    file.n_shards() == 1 ? "" : "s", megabytes(file.file_bytes())));
  out += line("name", text("general.name"));
  out += line("architecture", text("general.architecture"));
  return out;
}

// Counts and bytes of each tensor type, by its own type and not by what general.file_type claims.
std::string describe_tensors(const gguf::Reader& file) {
  struct Sum {
    uint64_t n_tensors = 0, n_elements = 0, n_bytes = 0;
  };
  std::map<gguf::TensorType, Sum> sums;
  Sum all;
  for (const gguf::Tensor& tensor : file.tensors()) {
    for (Sum* sum : {&sums[tensor.type], &all}) {
      sum->n_tensors += 1;
      sum->n_elements += tensor.n_elements();
      sum->n_bytes += tensor.data.size();
    }
  }
  std::string out = line("parameters", fmt::format("{:.2f} M", static_cast<double>(all.n_elements) / 1e6));
  for (const auto& [type, sum] : sums) {
    const gguf::TypeInfo* info = gguf::type_info(type);
    out += line("tensors " + std::string(info->name),
                fmt::format("{:5} {:>12}{}", sum.n_tensors, megabytes(sum.n_bytes),
                            info->supported ? "" : "  not supported"));
  }
  return out + line("tensors in all", fmt::format("{:5} {:>12}", all.n_tensors, megabytes(all.n_bytes)));
}

std::string describe_tokenizer(const Tokenizer& tokenizer) {
  const auto special = [&](TokenId id) {
    return id < 0 ? std::string("none") : fmt::format("{} {}", id, tokenizer.token_bytes(id, true));
  };
  std::string eog;
  for (const TokenId id : tokenizer.eog_ids())
    eog += fmt::format("{}{}", eog.empty() ? "" : ", ", special(id));
  std::string out =
      line("tokenizer",
           tokenizer.model() + (tokenizer.pretokenizer().empty() ? "" : ", " + tokenizer.pretokenizer()));
  out += line("vocabulary", std::to_string(tokenizer.n_vocab()));
  out += line("BOS", special(tokenizer.bos_id()) + (tokenizer.adds_bos() ? " (added)" : ""));
  out += line("EOS", special(tokenizer.eos_id()) + (tokenizer.adds_eos() ? " (added)" : ""));
  return out + line("end of generation", eog.empty() ? "none" : eog);
}

std::string describe_hparams(const HParams& h) {
  std::string out = line("layers", std::to_string(h.n_layer));
  out += line("n_embd", std::to_string(h.n_embd));
  out += line("n_ff", std::to_string(h.n_ff));
  out += line("heads", fmt::format("{} query, {} key/value, {} wide", h.n_head, h.n_head_kv, h.head_dim));
  const char* scaling = h.rope_scaling == RopeScaling::kYarn     ? "yarn"
                        : h.rope_scaling == RopeScaling::kLinear ? "linear"
                                                                 : "none";
  out += line(
      "rope",
      fmt::format("{}, {} dims, base {}, scaling {}{}",
                  h.rope_pairing == RopePairing::kNeox ? "neox" : "norm", h.n_rot, h.rope_freq_base, scaling,
                  h.rope_scaling == RopeScaling::kNone ? "" : fmt::format(" by {}", h.rope_scale)));
  return out + line("trained context", std::to_string(h.n_ctx_train));
}

std::string describe_memory(const gguf::Reader& file, const Engine& engine, int32_t n_ctx) {
  const uint64_t kv = engine.kv_bytes(n_ctx);
  std::string out = line("KV cache", fmt::format("{} for {} tokens, {:.1f} KB a token", megabytes(kv), n_ctx,
                                                 static_cast<double>(kv) / n_ctx / 1e3));
  return out + line("memory needed",
                    fmt::format("{} (weights and KV cache; a run takes KV for its prompt and -n only)",
                                megabytes(file.file_bytes() + kv)));
}

}  // namespace

ExitCode run_info(const Options& options) {
  const gguf::Reader file = gguf::Reader::open(options.model);
  write_stdout(describe_file(file) + describe_tensors(file));
  // What follows throws for a model that minfer cannot run, and then the reason stands below what is known.
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  write_stdout(describe_tokenizer(*tokenizer));
  const HParams hparams = HParams::read(file);
  write_stdout(describe_hparams(hparams));
  const auto engine = make_cpu_engine(options, file, *tokenizer);
  write_stdout(describe_memory(
      file, *engine, options.generation.n_ctx > 0 ? options.generation.n_ctx : hparams.n_ctx_train));
  return ExitCode::kOk;
}

}  // namespace minfer
