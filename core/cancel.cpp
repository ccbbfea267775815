#include "core/cancel.h"

#include <csignal>
#include <cstdlib>

#include "core/error.h"

namespace minfer {
namespace {

volatile std::sig_atomic_t g_interrupts = 0;

extern "C" void on_interrupt(int) {
  if (g_interrupts > 0) std::_Exit(static_cast<int>(ExitCode::kInterrupted));
  g_interrupts = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a read from a terminal must return
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() {
  return g_interrupts != 0;
}

void throw_if_interrupted() {
  if (interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
}

}  // namespace minfer
