// How far a batch is: one line rewritten in place on a terminal, a line of the log every so often elsewhere.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/scheduler.h"
#include "core/stopwatch.h"

namespace minfer {

// A line at the bottom of the terminal; lines of the log take its place, and it comes back below them.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);  // cut to the terminal's width
  void clear();

 private:
  class ClearingSink;
  std::shared_ptr<ClearingSink> sink_;
  bool shown_ = false;
};

class BatchProgress {
 public:
  // n_finished of n_requests are done already. `animated`: stderr is a terminal that nothing else is written
  // to.
  BatchProgress(size_t n_requests, size_t n_finished, bool animated);

  void finish_one() { ++n_finished_; }
  void step(const ScheduleStats& stats);

 private:
  std::string describe(const ScheduleStats& stats) const;

  size_t n_requests_, n_before_, n_finished_;
  std::unique_ptr<StatusLine> line_;  // null off a terminal
  Stopwatch clock_;
  double next_ = 0;  // when the next line is due, in seconds
};

}  // namespace minfer
