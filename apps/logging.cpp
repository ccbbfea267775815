#include "apps/logging.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace minfer {

void set_up_logging(LogLevel level) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool colors = no_color == nullptr || *no_color == '\0';
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(colors ? spdlog::color_mode::automatic
                                                                               : spdlog::color_mode::never);
  auto logger = std::make_shared<spdlog::logger>("minfer", std::move(sink));
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(level == LogLevel::kQuiet     ? spdlog::level::err
                    : level == LogLevel::kVerbose ? spdlog::level::debug
                                                  : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace minfer
