#include "apps/declare_options.h"

#include "apps/option_values.h"
#include "core/option_ranges.h"

namespace minfer {

void declare_prompt(CLI::App& app, Options& options) {
  CLI::Option* prompt = add_text(app, "-p,--prompt", options.prompt,
                                 "The prompt, completed as raw text; '-' reads standard input, verbatim");
  add_name(app, "-f,--file", "FILE", options.prompt_file, "Read the prompt from a file, verbatim")
      ->excludes(prompt);
  app.add_flag("--trim-newline", options.trim_newline,
               "Drop one newline (\\n or \\r\\n) at the end of -f and -p -; without this it is a part of the "
               "prompt");
  app.add_flag("-e,--escape", options.escape,
               "Read \\n \\t \\r \\\\ \\\" \\' \\xHH \\uHHHH \\u{H...} in -p TEXT; never in files");
  app.add_flag("--parse-special", options.parse_special,
               "Read '<|im_end|>' and the like in a raw prompt as control tokens");
  app.add_flag("--display-prompt", options.display_prompt, "Print the prompt ahead of the answer");
}

void declare_chat(CLI::App& app, Options& options) {
  app.add_flag("--chat", options.chat,
               "Through the model's chat template: one turn with -p or -f, else a conversation");
  CLI::Option* system = add_text(app, "--system-prompt", options.system_prompt, "The system message");
  add_name(app, "--system-file", "FILE", options.system_file, "Read the system message from a file")
      ->excludes(system);
  add_text(app, "--prefill-response", options.prefill_response, "What the answer begins with");
  add_name(app, "--chat-template", "FILE", options.chat_template,
           "A Jinja template instead of the model's own");
}

void declare_generation(CLI::App& app, Options& options) {
  GenerateOptions& generation = options.generation;
  add_integer(app, "-n,--n-predict", generation.n_predict, kNPredictRange,
              "Tokens to generate at most; -1: until the context is full (default 512)");
  add_integer(app, "-c,--ctx-size", generation.n_ctx, {0, kMaxCount},
              "Context: tokens of prompt and completion together; 0: as trained, in a chat at most "
              "8192; of a --perplexity window 512 (default 0)");
  add_texts(app, "--stop", generation.stop,
            "End before this text, which is not printed; may be given several times");
  app.add_flag("--ignore-eos", generation.ignore_eos, "Go on past end-of-generation tokens");
}

void declare_sampling(CLI::App& app, Options& options) {
  SamplerOptions& s = options.generation.sampling;
  add_number(app, "--temp", s.temp, kTempRange, "Temperature; 0: the likeliest token (default 0)");
  add_integer(app, "--top-k", s.top_k, kTopKRange, "Among the K likeliest; 0: all (default 0)");
  add_number(app, "--top-p", s.top_p, kTopPRange,
             "Among the likeliest that reach this share; 1: all (default 1)");
  add_number(app, "--min-p", s.min_p, kMinPRange,
             "Among those at least this likely, as a share of the likeliest (default 0)");
  add_number(app, "--repeat-penalty", s.repeat_penalty, kRepeatPenaltyRange,
             "Against recent tokens; 1: none (default 1)");
  add_integer(app, "--repeat-last-n", s.repeat_last_n, kRepeatLastNRange,
              "Recent tokens that the three penalties see, prompt included; -1: all (default 64)");
  add_number(app, "--presence-penalty", s.presence_penalty, kPresencePenaltyRange,
             "Off the logit of tokens seen (default 0)");
  add_number(app, "--frequency-penalty", s.frequency_penalty, kFrequencyPenaltyRange,
             "Off the logit for each time seen (default 0)");
  add_logit_biases(app, "--logit-bias", s.logit_bias,
                   "Add to a token's logit: ID+2.5, ID-2.5, ID-inf; several times");
  add_seed(app, "--seed", options.seed, "Of the draws; the one in use is logged (default: drawn)");
  add_optional_integer(app, "--logprobs", options.generation.n_logprobs, kLogprobsRange,
                       "With --json or --batch: logprobs of each token and of the N likeliest");
}

void declare_batch(CLI::App& app, Options& options) {
  BatchFlags& batch = options.batch;
  add_name(app, "--batch", "FILE", batch.input, "Answer every prompt of a file; '-' reads standard input");
  add_name(app, "--output", "FILE", batch.output,
           "Where the records go, one JSON object a line (default -: stdout)");
  add_choice<BatchFormat>(app, "--batch-format", batch.format,
                          {{"jsonl", BatchFormat::kJsonLines}, {"lines", BatchFormat::kLines}},
                          "jsonl: a request a line; lines: a prompt a line (default jsonl; *.txt: lines)");
  add_name(app, "--batch-delimiter", "TEXT", batch.delimiter,
           "Prompts are plain text with this between them");
  const std::string by_null = "Prompts are plain text with NUL bytes between them";
  app.add_flag("--batch-null", by_null);  // counted, bound to nothing
  app.add_flag("--resume", batch.resume, "Keep what --output holds and do the rest");
  add_integer_or_auto(
      app, "--parallel", batch.n_parallel, {1, 1024},
      "Sequences at once; auto: what fits, at most 64 on a card, 16 on the CPU (default auto)");
}

void declare_model(CLI::App& app, Options& options) {
  add_name(app, "-m,--model", "FILE", options.model, "Model file (GGUF; the first one of a split model)");
  add_choice<DeviceChoice>(
      app, "--device", options.device,
      {{"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}},
      "auto, cpu or cuda (default auto)");
  add_choice<cu::F16Cache>(
      app, "--f16-cache", options.f16_cache,
      {{"auto", cu::F16Cache::kAuto}, {"on", cu::F16Cache::kOn}, {"off", cu::F16Cache::kOff}},
      "cuda: weights in f16 too, for prefill: auto (where it fits), on, off");
  add_integer(app, "-t,--threads", options.n_threads, {0, 1024},
              "CPU threads; 0: one a processor (default 0)");
  add_name(app, "--pretokenizer", "NAME", options.pretokenizer,
           "Use this pre-tokenizer instead of the file's");
}

void declare_measuring(CLI::App& app, Options& options) {
  BenchOptions& bench = options.bench;
  add_integers(app, "--bench-prefill", bench.prefill, kMaxCount,
               "Prompt lengths to time; 0: none (default 2048)");
  add_integers(app, "--bench-decode", bench.decode, kMaxCount,
               "Numbers of tokens to decode; 0: none (default 128)");
  add_integers(app, "--bench-batch", bench.batch, 1024,
               "Numbers of sequences that decode side by side (default 1)");
  add_integer(app, "--bench-depth", bench.depth, {0, kMaxCount},
              "Tokens in the KV cache before the clock starts");
  add_integer(app, "--bench-repetitions", bench.n_repetitions, {1, 100000},
              "Runs of each, after a warm-up (default 5)");
  add_integer(app, "--profile-prefill", options.n_profile, {1, kMaxCount},
              "Tokens of the profiled prompt (default 2048)");
  app.add_flag("--verify-layers", options.verify_layers, "Errors of the residual stream by layer too");
  app.add_flag("--json", options.json, "The answer, its timings, or the figures as JSON objects, one a line");
}

void declare_log(CLI::App& app, Options& options) {
  CLI::Option* quiet =
      app.add_flag("-q,--quiet", options.quiet, "Only errors on stderr; the answer is whole");
  app.add_flag("-v,--verbose", options.verbose, "More on stderr and in --log-file")->excludes(quiet);
  add_name(app, "--log-file", "FILE", options.log_file,
           "Append the log to a file as well, with times; -q does not silence it");
}

}  // namespace minfer
