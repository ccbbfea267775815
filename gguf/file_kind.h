// What a file is that is no GGUF model, in words that say what to do about it. All throw Error, one line that
// names the file, and return where there is nothing to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "gguf/metadata.h"

namespace minfer::gguf {

// Throws unless `bytes` begin as a little-endian GGUF file of a version that minfer reads.
void require_gguf(std::span<const std::byte> bytes, const std::string& file_name);

// Throws where another GGUF file begins at one of `places` (in bytes; past the end is fine): shards joined
// into one.
void require_single(std::span<const std::byte> bytes, std::initializer_list<uint64_t> places,
                    const std::string& file_name);

// Throws where the keys say that this is an adapter, a projector or another companion of a model.
void require_model(const Metadata& metadata, const std::string& file_name);

}  // namespace minfer::gguf
