// Where the records of a batch go, one write a record: whatever ends the process, those written are there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/options.h"

namespace minfer {

// A file belongs to one run at a time. What it holds is never lost: it has to be empty, or to be resumed.
class BatchOutput {
 public:
  // Throws Error(kUsage): cannot be opened, is the input itself, is in use by another run, holds something
  // and there is no --resume.
  explicit BatchOutput(const BatchFlags& flags);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  // What an earlier run left.
  const std::string& found() const { return found_; }
  // Takes away all that stands behind the first n bytes of found().
  void keep(size_t n_bytes);
  // Throws Error(kRuntime) with the system's reason (full disk, closed pipe).
  void append(std::string_view record);
  const std::string& name() const { return name_; }

 private:
  void refuse(const std::string& why) const;
  void take_file(const BatchFlags& flags);

  std::string name_;
  int fd_;
  std::string found_;
};

// Puts records that come in any order into the order of the requests: each is written as soon as those before
// it are.
class OrderedRecords {
 public:
  OrderedRecords(BatchOutput& output, size_t n_requests, size_t n_written)
      : output_(output), waiting_(n_requests), n_written_(n_written) {}

  void put(size_t index, std::string record);
  size_t n_written() const { return n_written_; }

 private:
  BatchOutput& output_;
  std::vector<std::optional<std::string>> waiting_;
  size_t n_written_;
};

}  // namespace minfer
