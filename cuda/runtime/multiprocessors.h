// How wide the card is.
#pragma once

namespace minfer::cu {

int multiprocessors();  // of the device that was current at the first call: there is one in a run

}  // namespace minfer::cu
