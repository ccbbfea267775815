#include "core/warn_once.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <set>

namespace minfer {

void warn_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(message).second) spdlog::warn("{}", message);
}

}  // namespace minfer
