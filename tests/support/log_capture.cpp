#include "tests/support/log_capture.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

namespace minfer::test {

LogCapture::LogCapture() : before_(spdlog::default_logger()) {
  auto logger =
      std::make_shared<spdlog::logger>("capture", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
  logger->set_pattern("%l: %v");
  spdlog::set_default_logger(std::move(logger));
}

LogCapture::~LogCapture() {
  spdlog::set_default_logger(before_);
}

}  // namespace minfer::test
