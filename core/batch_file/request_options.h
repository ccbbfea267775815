// The options in the body of a request.
#pragma once

#include "core/batch_file/fields.h"
#include "core/batch_file/request.h"

namespace minfer {

// Overwrites what the body sets. Throws Error(kUsage): a value that is out of range, or a field that asks for
// what is not supported and would change the answer (n of 2, a grammar, ...).
void read_request_options(Fields& body, BatchRequest& request);

// The messages of a chat with content made one text: an array of text parts is joined by newlines. Throws
// Error(kUsage) naming the message and what is wrong with it.
nlohmann::ordered_json read_messages(const nlohmann::ordered_json& messages);

}  // namespace minfer
