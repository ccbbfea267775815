// Ctrl-C as a question: the work in progress looks whether it was asked to stop, and ends in good order.
#pragma once

namespace minfer {

// SIGINT: the first one asks, the second one ends the process at once with exit code 130. Blocking reads
// return.
void install_interrupt_handler();

bool interrupted();

// Throws Error(kInterrupted) where interrupted().
void throw_if_interrupted();

}  // namespace minfer
