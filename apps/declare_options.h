// Every flag of minfer-cli, in the groups in which --help shows them.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/options.h"

namespace minfer {

void declare_prompt(CLI::App& app, Options& options);
void declare_chat(CLI::App& app, Options& options);
void declare_generation(CLI::App& app, Options& options);
void declare_sampling(CLI::App& app, Options& options);
void declare_batch(CLI::App& app, Options& options);
void declare_model(CLI::App& app, Options& options);
void declare_measuring(CLI::App& app, Options& options);
void declare_log(CLI::App& app, Options& options);

}  // namespace minfer
