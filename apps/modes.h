// What minfer-cli can do, one file a mode. Each writes its answer to stdout and throws on failure.
#pragma once

#include "apps/options.h"
#include "core/error.h"

namespace minfer {

ExitCode run_generate(const Options& options);
ExitCode run_conversation(const Options& options);
ExitCode run_batch(const Options& options);
ExitCode run_perplexity(const Options& options);
ExitCode run_tokenize(const Options& options);
ExitCode run_info(const Options& options);
ExitCode run_bench(const Options& options);
ExitCode run_profile(const Options& options);
ExitCode run_verify(const Options& options);
ExitCode run_list_devices(const Options& options);
ExitCode run_version();

}  // namespace minfer
