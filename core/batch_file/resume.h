// How far an earlier run came, by what it wrote.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/batch_file/request.h"

namespace minfer {

struct Finished {
  size_t n_records = 0;  // of the first so many requests; errors count as finished
  size_t n_failed = 0;   // of those: errors
  size_t n_bytes = 0;    // where their records end; what stands behind is half a record
};

// Throws Error(kUsage), naming the line, where `output` is not what a run of these requests leaves behind: a
// record of another request, of none, or no record. `name` is the file's, for errors.
Finished read_finished(std::string_view output, std::span<const BatchRequest> requests,
                       const std::string& name);

}  // namespace minfer
