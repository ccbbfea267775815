#include "apps/logging.h"

#include <fcntl.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace minfer {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kQuiet:
      return spdlog::level::err;
    case LogLevel::kNormal:
      return spdlog::level::info;
    case LogLevel::kVerbose:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

spdlog::sink_ptr stderr_sink(LogLevel level) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool colors = no_color == nullptr || *no_color == '\0';
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(colors ? spdlog::color_mode::automatic
                                                                               : spdlog::color_mode::never);
  sink->set_pattern("%^%l%$: %v");
  sink->set_level(spdlog_level(level));
  return sink;
}

// spdlog would make folders that are not there, and say why only in part.
void check_opens(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw Error(ExitCode::kUsage, "--log-file " + path + ": " + std::strerror(errno));
  ::close(fd);
}

spdlog::sink_ptr file_sink(LogLevel level, const std::string& path) {
  check_opens(path);
  auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  sink->set_level(spdlog_level(level == LogLevel::kQuiet ? LogLevel::kNormal : level));
  return sink;
}

}  // namespace

void set_up_logging(LogLevel level, const std::string& file) {
  auto logger = std::make_shared<spdlog::logger>("minfer", stderr_sink(level));
  if (!file.empty()) logger->sinks().push_back(file_sink(level, file));
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);  // whatever ends the process, the lines are there
  // A log that cannot be written ends no run; it is said once, where it can be.
  logger->set_error_handler([said = false](const std::string& what) mutable {
    if (!said) std::fprintf(stderr, "error: the log: %s\n", what.c_str());
    said = true;
  });
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace minfer
