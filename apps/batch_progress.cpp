#include "apps/batch_progress.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace minfer {
namespace {

constexpr double kSecondsPerFrame = 0.1;
constexpr double kSecondsPerLogLine = 10;
constexpr size_t kDefaultWidth = 80;

size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultWidth;
}

// A terminal that is gone is no reason to stop.
void write_stderr(std::string_view text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

// "1:02:03", "2:03"
std::string clock_time(double seconds) {
  const auto s = static_cast<int64_t>(std::lround(std::min(seconds, 1e9)));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

// Stands first in the logger, so that it is told of a line before the terminal is.
class StatusLine::ClearingSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ClearingSink(StatusLine& line) : line_(line) {}

 private:
  void sink_it_(const spdlog::details::log_msg&) override { line_.clear(); }
  void flush_() override {}
  StatusLine& line_;
};

StatusLine::StatusLine() : sink_(std::make_shared<ClearingSink>(*this)) {
  auto& sinks = spdlog::default_logger()->sinks();
  sinks.insert(sinks.begin(), sink_);
}

StatusLine::~StatusLine() {
  clear();
  std::erase(spdlog::default_logger()->sinks(), sink_);
}

void StatusLine::show(const std::string& text) {
  write_stderr(
      fmt::format("\r{}\x1b[K", text.substr(0, terminal_width() - 1)));  // erases what stood to the right
  shown_ = true;
}

void StatusLine::clear() {
  if (shown_) write_stderr("\r\x1b[K");
  shown_ = false;
}

BatchProgress::BatchProgress(size_t n_requests, size_t n_finished, bool animated)
    : n_requests_(n_requests),
      n_before_(n_finished),
      n_finished_(n_finished),
      line_(animated ? std::make_unique<StatusLine>() : nullptr),
      next_(animated ? 0 : kSecondsPerLogLine) {}

void BatchProgress::step(const ScheduleStats& stats) {
  const double now = clock_.seconds();
  if (now < next_) return;
  next_ = now + (line_ ? kSecondsPerFrame : kSecondsPerLogLine);
  if (line_) {
    line_->show(describe(stats));
  } else {
    spdlog::info("{}", describe(stats));
  }
}

std::string BatchProgress::describe(const ScheduleStats& stats) const {
  const size_t n_now = n_finished_ - n_before_;
  const auto n_left = static_cast<double>(n_requests_ - n_finished_);
  const double rate = stats.seconds > 0 ? static_cast<double>(stats.n_generated_tokens) / stats.seconds : 0;
  return fmt::format("{}/{} requests, {:.1f} tokens/s, {} left", n_finished_, n_requests_, rate,
                     n_now > 0 ? clock_time(stats.seconds * n_left / static_cast<double>(n_now)) : "n/a");
}

}  // namespace minfer
